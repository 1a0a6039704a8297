/*
 * The pass. Within it what is free only shrinks, so a shape that has found no room finds none
 * later, and one that was kept off by a reservation is kept off for every longer time, too: each
 * shape is tried a few times, not once for each job.
 */
#include "sched/pass.h"

const struct pass_options pass_default = {.order = {.work = 1000,
                                              .expansion = 500,
                                              .fair = 500,
                                              .half_life_usec = 7 * 86400 * UINT64_C(1000000)},
    .reservations = 16,
    .patience_usec = 86400 * UINT64_C(1000000),
    .turns_milli = 50,
    .preempt = {.min_run_usec = 7200 * UINT64_C(1000000),
        .spot_run_usec = 600 * UINT64_C(1000000),
        .grace_usec = 120 * UINT64_C(1000000)},
    .lease_usec = 8 * 3600 * UINT64_C(1000000),
    .lease_notice_usec = 600 * UINT64_C(1000000)};

/* Those that cannot run now, on nodes that are away, say, do not keep others from their turn. */
#define TURN_TRIES 4
/* Searches for victims; each looks at all that runs. */
#define PREEMPT_TRIES 16
#define CLAIM_USEC (60 * UINT64_C(1000000))

/* What is known of a shape by now. */
struct known {
    bool no_room;
    uint64_t kept_off; /* jobs of this limit and longer; 0: not known */
    uint32_t blocker;
};

struct pass {
    struct book *book;
    struct place now;
    struct plan plan;
    struct ledger ledger;
    const struct pass_options *options;
    struct pass_result *result;
    uint32_t preempt_tries;
    struct known *known; /* by shape */
    struct book_share *shares;
    uint32_t share_cap;
    uint64_t now_usec;
};

static struct book_share *room_for(struct pass *p, uint32_t size)
{
    if (size > p->share_cap) {
        free(p->shares);
        p->shares = xnew_array(struct book_share, size);
        p->share_cap = size;
    }
    return p->shares;
}

/* It was placed; but what others have a right to at any time must not be taken for it. */
static enum verdict keep_guarantees(struct pass *p, struct decision *d)
{
    const struct shape *s = book_shape_of(p->book, &p->book->jobs[d->job]);

    if (ledger_keeps_guarantees(&p->ledger, &p->now, d->job))
        return VERDICT_START;
    for (uint32_t i = 0; i < s->size; i++)
        place_give(&p->now, s, &p->shares[i]);
    d->word = LEDGER_GUARANTEE;
    d->blocker = TREE_NONE;
    return VERDICT_QUOTA;
}

static enum verdict try_now(struct pass *p, struct decision *d)
{
    const struct book_job *j = &p->book->jobs[d->job];
    struct known *k = &p->known[j->shape];
    int r;

    if (k->no_room)
        return VERDICT_RESOURCES;
    if (k->kept_off && j->limit >= k->kept_off) {
        d->blocker = k->blocker;
        return VERDICT_PRIORITY;
    }
    r = plan_place(
        &p->plan, &p->now, d->job, room_for(p, p->book->shapes[j->shape].size), &d->blocker);
    if (r == 0)
        return keep_guarantees(p, d);
    if (r == -EAGAIN) {
        k->kept_off = MAX_OF(j->limit, UINT64_C(1));
        k->blocker = d->blocker;
        return VERDICT_PRIORITY;
    }
    k->no_room = true;
    return VERDICT_RESOURCES;
}

/* What keeps it from being looked at at all. */
static bool is_kept(const struct pass *p, const struct book_job *j, uint8_t *ret)
{
    *ret = j->held ? VERDICT_HELD : j->depends ? VERDICT_DEPENDS : VERDICT_BEGIN;
    return j->held || j->depends || j->begin > p->now_usec;
}

/* --- within quotas ------------------------------------------------------------------------- */

/* As if it had asked for this model only. The shapes are there: see split_shapes. */
static void ask_for_model(struct pass *p, uint32_t job, uint32_t model)
{
    struct shape shape = *book_shape_of(p->book, &p->book->jobs[job]);

    shape.models = 1u << model;
    book_job_reshape(p->book, job, book_shape(p->book, &shape));
}

/* Of those that its quota allows, the least wanted one first. */
static uint32_t next_model(const struct pass *p, uint32_t models)
{
    uint32_t best = (uint32_t)__builtin_ctz(models);

    for (uint32_t bits = models; bits; bits &= bits - 1)
        if (p->now.mix.scarcity[__builtin_ctz(bits)] < p->now.mix.scarcity[best])
            best = (uint32_t)__builtin_ctz(bits);
    return best;
}

/* Those that it could have, one by one, when all together would take from a guarantee; 0: no. */
static uint32_t several_models(const struct pass *p, uint32_t job)
{
    const struct shape *s = book_shape_of(p->book, &p->book->jobs[job]);
    uint32_t models = s->models ? s->models : (1u << p->book->model_count) - 1;

    return models & (models - 1) ? models : 0;
}

/* Where a quota allows some of the models only, one after the other. The job's shape is then the
 * last one that was tried. */
static enum verdict try_models(struct pass *p, struct decision *d, uint32_t models)
{
    enum verdict v = VERDICT_RESOURCES;

    if (models == 0) {
        v = try_now(p, d);
        models = v == VERDICT_QUOTA ? several_models(p, d->job) : 0;
    }
    while (models && v != VERDICT_START) {
        uint32_t model = next_model(p, models);

        models &= ~(1u << model);
        ask_for_model(p, d->job, model);
        v = try_now(p, d);
    }
    return v;
}

/* Shapes do not come during a pass. Those of one model are made of each that a quota may split. */
static void split_shapes(struct book *b)
{
    uint32_t count = b->shape_count;

    for (uint32_t i = 0; b->tree.quotas > 0 && i < count; i++) {
        struct shape shape = b->shapes[i];
        uint32_t models = shape.models ? shape.models : (1u << b->model_count) - 1;

        if (shape.gpu_milli == 0 || b->shape_jobs[i] == 0 || !(models & (models - 1)))
            continue;
        for (; models; models &= models - 1) {
            shape.models = models & -models;
            (void)book_shape(b, &shape);
        }
    }
}

/* --- one job ---------------------------------------------------------------------------------- */

/* True: others were told to leave for it, and it has a reservation. */
static bool preempt(struct pass *p, uint32_t job)
{
    struct book_job *j = &p->book->jobs[job];
    struct pass_result *r = p->result;
    _cleanup_free_ uint32_t *victims = NULL;
    uint64_t next;
    uint32_t n;

    if (j->spot || j->claimed || p->preempt_tries == 0)
        return false;
    p->preempt_tries--;
    victims = preempt_for(
        p->book, &p->ledger, &p->plan, &p->now, job, &p->options->preempt, &n, &next);
    r->wake_usec = MIN_OF(r->wake_usec, next);
    if (!victims)
        return false;
    r->victims = xgrow(r->victims, &r->victim_cap, r->victim_count + n, sizeof(*r->victims));
    for (uint32_t i = 0; i < n; i++) {
        r->victims[r->victim_count++] = (struct pass_victim){victims[i], job};
        ledger_moves(&p->ledger, victims[i]);
    }
    ledger_moves(&p->ledger, job);
    j->claimed = MAX_OF(p->now_usec, UINT64_C(1));
    return true;
}

static void start(struct pass *p, struct decision *d, bool borrows)
{
    struct book_job *j = &p->book->jobs[d->job];

    book_job_start(p->book, d->job, p->shares, p->now_usec);
    j->claimed = 0;
    j->borrows = borrows;
    plan_started(&p->plan, d->job);
    ledger_started(&p->ledger, d->job, borrows);
    d->start = p->now_usec;
}

static void keep_plan(struct pass *p, struct decision *d)
{
    const struct reservation *r = &p->plan.list[p->plan.count - 1];

    d->start = r->start;
    book_job_plan(p->book, d->job, r->shares, r->start);
}

static void forget_plan(struct pass *p, uint32_t job)
{
    if (p->book->jobs[job].shares)
        book_job_plan(p->book, job, NULL, 0);
}

/* On one of the models that its quota allows (0: as it asked). The job's shape may be another one
 * then. */
static bool preempt_models(struct pass *p, uint32_t job, uint32_t models)
{
    if (models == 0)
        return preempt(p, job);
    while (models) {
        uint32_t model = next_model(p, models);

        models &= ~(1u << model);
        ask_for_model(p, job, model);
        if (preempt(p, job))
            return true;
    }
    return false;
}

static bool reserve(struct pass *p, uint32_t job, uint32_t models)
{
    if (p->plan.count == p->plan.max)
        return false;
    if (models)
        ask_for_model(p, job, next_model(p, models));
    return plan_reserve(&p->plan, &p->now, job);
}

static void decide_place(struct pass *p, struct decision *d, bool firm, uint32_t models)
{
    uint32_t shape = p->book->jobs[d->job].shape;
    bool planned;

    d->verdict = (uint8_t)try_models(p, d, models);
    if (d->verdict == VERDICT_START) {
        start(p, d, !firm);
        return;
    }
    book_job_reshape(p->book, d->job, shape);
    planned = firm && preempt_models(p, d->job, models);
    if (!planned)
        planned = reserve(p, d->job, models);
    book_job_reshape(p->book, d->job, shape);
    if (planned)
        keep_plan(p, d);
    else
        forget_plan(p, d->job);
    if (!p->book->jobs[d->job].claimed)
        return;
    d->verdict = VERDICT_LEAVING;
    ledger_promise(&p->ledger, d->job);
}

/* Others do not leave for it in vain again and again: when it has not started for some time after
 * they had to be gone, it waits as all do. */
static uint64_t claim_end(const struct pass *p, const struct book_job *j)
{
    return j->claimed ? j->claimed + p->options->preempt.grace_usec + CLAIM_USEC : BOOK_FOREVER;
}

static void decide(struct pass *p, struct decision *d)
{
    struct book_job *j = &p->book->jobs[d->job];
    enum ledger_word word;
    uint32_t models;

    if (j->claimed)
        ledger_withdraw(&p->ledger, d->job); /* what it is promised is not in its way */
    if (p->now_usec > claim_end(p, j))
        j->claimed = 0;
    if (is_kept(p, j, &d->verdict)) {
        j->claimed = 0;
        return;
    }
    word = ledger_ask(&p->ledger, d->job, &models, &d->blocker);
    if (ledger_may(word)) {
        decide_place(p, d, word == LEDGER_FIRM, models);
        return;
    }
    d->verdict = VERDICT_QUOTA;
    d->word = (uint8_t)word;
    j->claimed = 0;
    forget_plan(p, d->job);
}

/* --- turns --------------------------------------------------------------------------------- */

/* Who has waited longer; of those that came together, the first. */
static bool is_older(const struct book_job *a, const struct book_job *b)
{
    return a->submitted != b->submitted ? a->submitted < b->submitted : a->num < b->num;
}

/* Of jobs from first on: the one that has waited longest, beyond patience. BOOK_NONE: none. */
static uint32_t find_turn(
    const struct pass *p, const uint32_t *jobs, uint32_t first, uint32_t count, uint64_t patience)
{
    uint32_t best = BOOK_NONE;

    for (uint32_t i = first; i < count; i++) {
        const struct book_job *j = &p->book->jobs[jobs[i]];
        uint8_t kept;

        if (is_kept(p, j, &kept) || p->now_usec < j->submitted ||
            p->now_usec - j->submitted < patience)
            continue;
        if (best == BOOK_NONE || is_older(j, &p->book->jobs[jobs[best]]))
            best = i;
    }
    return best;
}

/* The cluster's GPUs in thousandths, or CPUs as order_work counts them where it has none. */
static uint64_t cluster_milli(const struct book *b)
{
    uint64_t gpus = 0, cpus = 0;

    for (uint32_t i = 0; i < b->node_count; i++) {
        if (b->nodes[i].closed)
            continue;
        gpus += SHAPE_WHOLE * (uint64_t)b->nodes[i].gpus;
        cpus += b->nodes[i].cpu_milli / ORDER_CPUS_FOR_A_GPU;
    }
    return MAX_OF(gpus ? gpus : cpus, UINT64_C(1));
}

/* Seconds in which that share of the cluster does the job's work. */
static uint64_t turn_usec(const struct book *b, uint32_t job, uint32_t share)
{
    double seconds = (double)order_work(b, &b->jobs[job]) * 1000 /
        ((double)cluster_milli(b) * (double)share);

    return (uint64_t)(MIN_OF(seconds, 1e9) * 1e6);
}

/* Of jobs from first on, those that have their turn are decided, and come first. Where the others
 * begin. */
static uint32_t serve_turn(struct pass *p, const struct pass_options *o, uint32_t *jobs,
    uint32_t first, struct pass_result *ret)
{
    uint32_t n = first;

    if (!o->patience_usec || !o->turns_milli || p->now_usec < p->book->turn_at)
        return first;
    while (n < first + TURN_TRIES) {
        uint32_t at = find_turn(p, jobs, n, ret->count, o->patience_usec), job;
        struct decision *d = &ret->list[n];

        if (at == BOOK_NONE)
            break;
        job = jobs[at];
        memmove(&jobs[n + 1], &jobs[n], (at - n) * sizeof(*jobs));
        jobs[n++] = job;
        d->job = job;
        decide(p, d);
        if (d->verdict == VERDICT_START)
            p->book->turn_at = p->now_usec + turn_usec(p->book, job, o->turns_milli);
        if (d->verdict == VERDICT_START || d->start)
            break;
    }
    return n;
}

/* Those for which others leave come before all, turns too. How many they are. */
static uint32_t serve_claims(struct pass *p, const uint32_t *jobs, struct pass_result *ret)
{
    uint32_t n = 0;

    for (; n < ret->count && p->book->jobs[jobs[n]].claimed; n++) {
        ret->list[n].job = jobs[n];
        decide(p, &ret->list[n]);
    }
    return n;
}

void pass_run(
    struct book *b, const struct pass_options *o, uint64_t now_usec, struct pass_result *ret)
{
    struct pass p = {.book = b,
        .now_usec = now_usec,
        .options = o,
        .result = ret,
        .preempt_tries = PREEMPT_TRIES};
    _cleanup_free_ uint32_t *jobs = NULL;
    uint32_t n;

    *ret = (struct pass_result){.wake_usec = BOOK_FOREVER};
    split_shapes(b);
    ledger_init(&p.ledger, b);
    place_init(&p.now, b);
    jobs = order_jobs(b, &p.ledger, &o->order, now_usec, &ret->count);
    ret->list = xnew_array(struct decision, ret->count);
    plan_init(&p.plan, b, now_usec, o->reservations);
    p.known = xnew_array(struct known, b->shape_count);
    n = serve_claims(&p, jobs, ret);
    for (uint32_t i = serve_turn(&p, o, jobs, n, ret); i < ret->count; i++) {
        ret->list[i].job = jobs[i];
        decide(&p, &ret->list[i]);
    }
    for (uint32_t i = 0; i < ret->count; i++)
        ret->started += ret->list[i].verdict == VERDICT_START;
    ret->scanned = p.now.scanned;
    plan_done(&p.plan);
    ledger_done(&p.ledger);
    place_done(&p.now);
    free(p.known);
    free(p.shares);
}

void pass_result_done(struct pass_result *r)
{
    free(TAKE_PTR(r->list));
    free(TAKE_PTR(r->victims));
}
