/*
 * The book as sessions and nodes come and go, and what each pass has said of those that wait.
 */
#include "sched/sched.h"

#include "sched/explain.h"
#include "sched/fill.h"

/* Shapes that no job has any more are dropped when they are most of the table. */
#define SHAPES_KEPT 1024

void sched_init(struct sched *s)
{
    *s = (struct sched){.options = pass_default};
    book_init(&s->book);
    map_init(&s->handles);
}

static void forget_after(struct sched *s)
{
    if (s->has_after)
        place_done(&s->after);
    s->has_after = false;
}

void sched_done(struct sched *s)
{
    forget_after(s);
    book_done(&s->book);
    map_done(&s->handles, NULL);
    free(s->notes);
}

/* --- what there is ------------------------------------------------------------------------ */

/* Handles live in the map as pointers, one higher: a map has no NULL. */
uint32_t sched_job(const struct sched *s, const char *id)
{
    return (uint32_t)(uintptr_t)map_get(&s->handles, id) - 1;
}

void sched_node_put(struct sched *s, const struct node *n, const struct sched_withheld *withheld)
{
    forget_after(s);
    fill_node(&s->book, n, withheld);
}

void sched_node_remove(struct sched *s, const char *name)
{
    uint32_t node = book_node_find(&s->book, name);

    forget_after(s);
    if (node != BOOK_NONE)
        book_node_remove(&s->book, node);
}

/* --- accounts ------------------------------------------------------------------------------- */

static uint32_t number_or(struct book *b, const char *name, uint32_t none)
{
    return name[0] ? book_name(b, name) : none;
}

void sched_account_put(struct sched *s, const struct account *a)
{
    struct book *b = &s->book;
    _cleanup_free_ struct tree_quota *quotas = xnew_array(struct tree_quota, a->quota_count);
    uint32_t parent = a->parent[0] ? tree_find(&b->tree, a->parent) : TREE_NONE;
    struct tree_account to = {.name = (char *)a->name,
        .parent = parent,
        .shares = a->shares,
        .quotas = quotas,
        .user_sessions = a->user_sessions,
        .user_milli = a->user_gpus,
        .user_debug_milli = a->user_debug_gpus,
        .user_window = a->user_gpu_hours == ACCOUNT_NO_LIMIT
            ? UINT64_MAX
            : (uint64_t)a->user_gpu_hours * 3600 * SHAPE_WHOLE};

    for (uint32_t i = 0; i < a->quota_count; i++) {
        const struct account_quota *q = &a->quotas[i];
        struct tree_quota *t = &quotas[to.quota_count];

        *t = (struct tree_quota){.group = number_or(b, q->group, TREE_NONE),
            .model = TREE_ANY_MODEL,
            .guarantee = q->guarantee,
            .deserved = q->deserved,
            .max = q->max};
        if (!q->gpu_model[0] || book_model(b, q->gpu_model, &t->model) == 0)
            to.quota_count++;
    }
    tree_put(&b->tree, &to);
}

void sched_account_remove(struct sched *s, const char *name)
{
    uint32_t account = tree_find(&s->book.tree, name);

    if (account != TREE_NONE)
        tree_close(&s->book.tree, account);
}

void sched_use_put(
    struct sched *s, const struct account_use *u, uint32_t window_days, uint64_t now_usec)
{
    struct book *b = &s->book;
    uint32_t account = u->account[0] ? tree_find(&b->tree, u->account) : TREE_NONE;
    struct tree_leaf *leaf = &b->tree.leaves[tree_leaf(&b->tree, account, book_name(b, u->user))];

    leaf->used = u->used;
    leaf->used_at = u->used_at;
    leaf->window = account_use_window(u, window_days, now_usec);
}

void sched_weight_put(struct sched *s, const char *gpu_model, uint32_t milli)
{
    uint8_t model;

    if (book_model(&s->book, gpu_model, &model) == 0)
        s->book.model_weight[model] = milli;
}

uint32_t sched_weight(const struct sched *s, const char *gpu_model)
{
    for (uint32_t i = 0; i < s->book.model_count; i++)
        if (str_eq(s->book.models[i], gpu_model))
            return s->book.model_weight[i];
    return BOOK_WEIGHT;
}

uint64_t sched_claimed(const struct sched *s, const char *id)
{
    uint32_t h = sched_job(s, id);

    return h == BOOK_NONE ? 0 : s->book.jobs[h].claimed;
}

/* --- sessions ------------------------------------------------------------------------------- */

static uint32_t add_job(struct sched *s, const char *id, const struct book_job *job)
{
    uint32_t h = book_job_add(&s->book, job);

    map_set(&s->handles, id, (void *)(uintptr_t)(h + 1));
    s->notes = xgrow(s->notes, &s->note_cap, h + 1, sizeof(*s->notes));
    s->notes[h] = (struct sched_note){0};
    STR_SET(s->notes[h].id, id);
    return h;
}

void sched_session_put(struct sched *s, const struct session *session, uint64_t now_usec)
{
    uint32_t h = sched_job(s, session->id);
    bool waits = session->state == SESSION_PENDING, holds = fill_holds(session);
    struct book_job job;

    if (!waits && !holds) {
        sched_session_remove(s, session->id);
        return;
    }
    job = fill_job(&s->book, session, now_usec);
    if (h == BOOK_NONE) {
        h = add_job(s, session->id, &job);
    } else {
        if (s->book.jobs[h].state == JOB_RUNS) {
            book_job_stop(&s->book, h);
            s->notes[h].seen = false;
        }
        book_job_change(&s->book, h, &job);
    }
    if (!waits) {
        _cleanup_free_ struct book_share *shares = fill_shares(&s->book, session);

        book_job_start(&s->book, h, shares, fill_started(session));
    }
}

void sched_session_remove(struct sched *s, const char *id)
{
    uint32_t h = sched_job(s, id);

    if (h == BOOK_NONE)
        return;
    book_job_remove(&s->book, h);
    map_remove(&s->handles, id);
}

/* --- passes ------------------------------------------------------------------------------- */

static void take_start(const struct sched *s, uint32_t job, struct sched_start *ret)
{
    const struct book_job *j = &s->book.jobs[job];

    *ret = (struct sched_start){.size = s->book.shapes[j->shape].size};
    STR_SET(ret->session, s->notes[job].id);
    ret->shares = xnew_array(struct sched_share, ret->size);
    for (uint32_t i = 0; i < ret->size; i++)
        ret->shares[i] = (struct sched_share){
            s->book.nodes[j->shares[i].node].name, j->shares[i].gpus};
}

/* Is it news? */
static bool take_note(
    struct sched *s, const struct decision *d, uint32_t position, const struct census *groups)
{
    struct sched_note *n = &s->notes[d->job];
    const struct shape *shape = book_shape_of(&s->book, &s->book.jobs[d->job]);
    enum sched_code code = explain_code(&groups[shape->group], shape, (enum verdict)d->verdict);
    bool news;

    if (code == CODE_PRIORITY && d->blocker == BOOK_NONE)
        code = CODE_CLOSING;
    news = !n->seen || n->code != code;
    n->seen = true;
    n->verdict = d->verdict;
    n->code = (uint8_t)code;
    n->position = position;
    n->start = d->start;
    n->word = d->word;
    n->account = d->verdict == VERDICT_QUOTA ? d->blocker : TREE_NONE;
    n->blocker = d->verdict == VERDICT_PRIORITY && d->blocker != BOOK_NONE
        ? s->book.jobs[d->blocker].num
        : 0;
    return news;
}

static void take_victims(
    const struct sched *s, const struct pass_result *from, struct sched_result *ret)
{
    ret->victims = xnew_array(struct sched_victim, from->victim_count);
    ret->victim_count = from->victim_count;
    for (uint32_t i = 0; i < from->victim_count; i++) {
        STR_SET(ret->victims[i].session, s->notes[from->victims[i].job].id);
        STR_SET(ret->victims[i].for_session, s->notes[from->victims[i].for_job].id);
    }
    ret->wake_usec = MIN_OF(ret->wake_usec, from->wake_usec);
}

/* Who has waited long enough for few switches takes any. The next time that somebody has. */
static uint64_t relax_jobs(struct book *b, uint64_t now_usec)
{
    uint64_t next = BOOK_FOREVER;

    book_for_each_job(i, b)
    {
        struct book_job to = b->jobs[i];
        struct shape shape = b->shapes[to.shape];

        if (to.state != JOB_WAITS || !to.relax)
            continue;
        if (to.relax > now_usec) {
            next = MIN_OF(next, to.relax);
            continue;
        }
        shape.switches = 0;
        to.relax = 0;
        to.shape = book_shape(b, &shape);
        book_job_change(b, i, &to);
    }
    return next;
}

void sched_run(struct sched *s, uint64_t now_usec, struct sched_result *ret)
{
    _cleanup_free_ struct census *groups = NULL;
    struct pass_result result;
    uint32_t position = 0;

    *ret = (struct sched_result){.wake_usec = relax_jobs(&s->book, now_usec)};
    forget_after(s);
    if (s->book.shape_count > SHAPES_KEPT &&
        s->book.shape_count > 2 * (s->book.waiting + s->book.running))
        book_drop_shapes(&s->book);
    pass_run(&s->book, &s->options, now_usec, &result);
    groups = explain_census(&s->book);
    ret->started = xnew_array(struct sched_start, result.started);
    ret->news = xcalloc(result.count - result.started + 1, sizeof(*ret->news));
    for (uint32_t i = 0; i < result.count; i++) {
        const struct decision *d = &result.list[i];

        if (d->verdict == VERDICT_START)
            take_start(s, d->job, &ret->started[ret->started_count++]);
        else if (take_note(s, d, ++position, groups))
            STR_SET(ret->news[ret->news_count++], s->notes[d->job].id);
        if (d->verdict == VERDICT_BEGIN)
            ret->wake_usec = MIN_OF(ret->wake_usec, s->book.jobs[d->job].begin);
    }
    take_victims(s, &result, ret);
    pass_result_done(&result);
}

void sched_start_done(struct sched_start *start)
{
    free(TAKE_PTR(start->shares));
}

void sched_result_done(struct sched_result *r)
{
    for (size_t i = 0; i < r->started_count; i++)
        sched_start_done(&r->started[i]);
    free(TAKE_PTR(r->started));
    free(TAKE_PTR(r->news));
    free(TAKE_PTR(r->victims));
    *r = (struct sched_result){0};
}

/* What the last pass has said of it; NULL: none has seen it waiting. */
static const struct sched_note *note_of(const struct sched *s, const char *id)
{
    uint32_t h = sched_job(s, id);

    return h != BOOK_NONE && s->notes[h].seen && s->book.jobs[h].state == JOB_WAITS ? &s->notes[h]
                                                                                    : NULL;
}

void sched_brief(const struct sched *s, const struct session *session, struct sched_reason *ret)
{
    const struct sched_note *n = note_of(s, session->id);

    *ret = (struct sched_reason){0};
    explain_words(session, n ? (enum sched_code)n->code : CODE_QUEUED, ret);
    if (!n)
        return;
    ret->position = n->position;
    ret->start_usec = n->start;
    ret->blocker = n->blocker;
    explain_quota(&s->book, session, n, ret);
}

void sched_explain(struct sched *s, const struct session *session, struct sched_reason *ret)
{
    const struct sched_note *n = note_of(s, session->id);
    const struct shape *shape = n ? book_shape_of(&s->book, &s->book.jobs[n - s->notes]) : NULL;

    sched_brief(s, session, ret);
    if (!s->has_after) {
        place_init(&s->after, &s->book);
        s->has_after = true;
    }
    explain_reason(&s->after, session, shape, n ? (enum sched_code)n->code : CODE_QUEUED, ret);
    if (n)
        explain_quota(&s->book, session, n, ret);
}

int64_t sched_factors(
    const struct sched *s, const char *id, uint64_t now_usec, struct order_factors *ret)
{
    uint32_t h = sched_job(s, id);

    *ret = (struct order_factors){0};
    return h == BOOK_NONE
        ? 0
        : order_priority(&s->book, &s->book.jobs[h], &s->options.order, now_usec, ret);
}

void sched_plan(
    const struct sched *s, void (*each)(const struct sched_planned *p, void *arg), void *arg)
{
    const struct book *b = &s->book;

    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];
        struct sched_planned p = {.session = s->notes[i].id,
            .runs = j->state == JOB_RUNS,
            .start_usec = j->started,
            .size = book_shape_of(b, j)->size};
        _cleanup_free_ struct sched_share *shares = NULL;

        if (!j->shares)
            continue;
        p.end_usec = j->limit < BOOK_FOREVER - j->started ? j->started + j->limit : BOOK_FOREVER;
        shares = xnew_array(struct sched_share, p.size);
        for (uint32_t k = 0; k < p.size; k++)
            if (j->shares[k].node != BOOK_NONE)
                shares[k] = (struct sched_share){
                    b->nodes[j->shares[k].node].name, j->shares[k].gpus};
        p.shares = shares;
        each(&p, arg);
    }
}

/* --- what if ------------------------------------------------------------------------------ */

static void copy(struct sched *to, const struct sched *from)
{
    *to = (struct sched){.options = from->options};
    book_copy(&to->book, &from->book);
    map_copy(&to->handles, &from->handles);
    to->notes = xmemdup(from->notes, from->note_cap * sizeof(*from->notes));
    to->note_cap = from->note_cap;
}

bool sched_try(const struct sched *s, const struct session *session, uint64_t now_usec,
    struct sched_start *ret_start, struct sched_reason *ret_reason)
{
    struct sched_result result;
    struct sched other;
    bool starts = false;

    copy(&other, s);
    sched_session_put(&other, session, now_usec);
    sched_run(&other, now_usec, &result);
    *ret_start = (struct sched_start){0};
    for (size_t i = 0; i < result.started_count; i++) {
        if (!str_eq(result.started[i].session, session->id))
            continue;
        starts = true;
        *ret_start = result.started[i];
        result.started[i].shares = NULL;
    }
    /* Names of nodes are the copy's. */
    for (uint32_t i = 0; i < ret_start->size; i++)
        ret_start->shares[i]
            .node = s->book.nodes[book_node_find(&s->book, ret_start->shares[i].node)].name;
    if (!starts)
        sched_explain(&other, session, ret_reason);
    sched_result_done(&result);
    sched_done(&other);
    return starts;
}

/* --- leases --------------------------------------------------------------------------------- */

static bool overlap(const struct book *b, const struct book_job *x, const struct book_job *y)
{
    for (uint32_t i = 0; i < book_shape_of(b, x)->size; i++)
        for (uint32_t k = 0; k < book_shape_of(b, y)->size; k++) {
            const struct book_share *p = &x->shares[i], *q = &y->shares[k];

            /* Without GPUs it is CPUs and memory that are wanted: all of a node's are alike. */
            if (p->node == q->node && p->node != BOOK_NONE &&
                (!p->gpus || !q->gpus || (p->gpus & q->gpus)))
                return true;
        }
    return false;
}

uint64_t sched_wanted_by(const struct sched *s, const char *id)
{
    const struct book *b = &s->book;
    uint32_t h = sched_job(s, id);

    if (h == BOOK_NONE || b->jobs[h].state != JOB_RUNS)
        return 0;
    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];

        if (j->state == JOB_WAITS && j->shares && overlap(b, j, &b->jobs[h]))
            return j->num;
    }
    return 0;
}

/* Planned starts by handle, after a pass over b; 0: none. */
static uint64_t *starts_of(struct book *b, const struct pass_options *o, uint64_t now_usec,
    uint32_t **ret_order, uint32_t *ret_count)
{
    uint64_t *starts = xnew_array(uint64_t, b->job_count + 1);
    struct pass_result r;

    pass_run(b, o, now_usec, &r);
    *ret_order = xnew_array(uint32_t, r.count + 1);
    *ret_count = r.count;
    for (uint32_t i = 0; i < r.count; i++) {
        (*ret_order)[i] = r.list[i].job;
        starts[r.list[i].job] = r.list[i].start;
    }
    pass_result_done(&r);
    return starts;
}

size_t sched_would_move(const struct sched *s, const struct session *changed, uint64_t now_usec,
    struct sched_moved *ret, size_t max)
{
    uint32_t h = sched_job(s, changed->id), count, other;
    _cleanup_free_ uint64_t *before = NULL, *after = NULL;
    _cleanup_free_ uint32_t *order = NULL, *ignored = NULL;
    struct book b, c;
    size_t n = 0;

    if (h == BOOK_NONE || s->book.jobs[h].state != JOB_RUNS)
        return 0;
    book_copy(&b, &s->book);
    book_copy(&c, &s->book);
    c.jobs[h].limit = fill_job(&c, changed, now_usec).limit;
    before = starts_of(&b, &s->options, now_usec, &order, &count);
    after = starts_of(&c, &s->options, now_usec, &ignored, &other);
    for (uint32_t i = 0; i < count && n < max; i++) {
        uint32_t job = order[i];

        if (before[job] && (!after[job] || after[job] > before[job]))
            ret[n++] = (struct sched_moved){
                s->book.jobs[job].num, before[job], after[job] ? after[job] : BOOK_FOREVER};
    }
    book_done(&b);
    book_done(&c);
    return n;
}
