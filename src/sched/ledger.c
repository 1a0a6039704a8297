/*
 * Sums by quota row and by user. A job counts for each row of its account and of those above whose
 * group is the job's, by the models of the GPUs that it has.
 */
#include "sched/ledger.h"

#include "model/session.h"

static bool counts_for(const struct tree_quota *q, const struct shape *s)
{
    return s->gpu_milli > 0 && (q->group == TREE_NONE || q->group == s->group);
}

/* --- sums --------------------------------------------------------------------------------- */

/* Milli-GPUs of the job on GPUs of the model (or of all). */
static uint64_t milli_of(const struct book *b, const struct book_job *j, uint8_t model)
{
    const struct shape *s = book_shape_of(b, j);
    uint64_t sum = 0;

    if (model == TREE_ANY_MODEL || !j->shares)
        return (uint64_t)s->gpu_milli * s->size;
    for (uint32_t i = 0; i < s->size; i++) {
        const struct book_share *share = &j->shares[i];

        for (uint64_t bits = share->node == BOOK_NONE ? 0 : share->gpus; bits; bits &= bits - 1)
            if (b->nodes[share->node].model[__builtin_ctzll(bits)] == model)
                sum += share->milli;
    }
    return sum;
}

/* Each row that a job of this account and shape counts for. */
#define for_each_row(row, l, account, shape) \
    for (uint32_t up_ = (account), depth_ = 0; up_ != TREE_NONE && depth_ < TREE_DEPTH_MAX; \
         up_ = (l)->book->tree.accounts[up_].parent, depth_++) \
        for (struct ledger_row *row = (l)->rows + (l)->first[up_]; \
             row < (l)->rows + (l)->first[up_ + 1]; row++) \
            if (counts_for(row->quota, (shape)))

static uint32_t account_of(const struct book *b, const struct book_job *j)
{
    return b->tree.leaves[j->leaf].account;
}

static bool fits_deserved(const struct ledger *l, const struct book_job *j)
{
    for_each_row(row, l, account_of(l->book, j),
        book_shape_of(l->book, j)) if (row->quota->deserved != TREE_NO_LIMIT &&
        row->firm + milli_of(l->book, j, row->quota->model) > row->quota->deserved) return false;
    return true;
}

/* sign -1: it does not count any more. */
static void add(struct ledger *l, const struct book_job *j, bool borrows, int sign)
{
    const struct shape *s = book_shape_of(l->book, j);
    struct ledger_user *u = &l->users[j->leaf];
    uint64_t all = (uint64_t)sign * s->gpu_milli * s->size;

    u->sessions += (uint32_t)sign;
    u->milli += all;
    u->debug_milli += j->kind == KIND_DEBUG ? all : 0;
    for_each_row(row, l, account_of(l->book, j), s)
    {
        uint64_t milli = (uint64_t)sign * milli_of(l->book, j, row->quota->model);

        row->used += milli;
        row->firm += borrows ? 0 : milli;
        row->debug += j->kind == KIND_DEBUG ? milli : 0;
    }
}

void ledger_started(struct ledger *l, uint32_t job, bool borrows)
{
    if (!l->nothing)
        add(l, &l->book->jobs[job], borrows, 1);
}

static void note_moving(struct ledger *l, uint32_t job)
{
    l->moving = xgrow(l->moving, &l->moving_cap, l->moving_count + 1, sizeof(*l->moving));
    l->moving[l->moving_count++] = job;
}

void ledger_promise(struct ledger *l, uint32_t job)
{
    ledger_started(l, job, false);
}

void ledger_moves(struct ledger *l, uint32_t job)
{
    if (!l->nothing)
        note_moving(l, job);
}

void ledger_withdraw(struct ledger *l, uint32_t job)
{
    if (!l->nothing)
        add(l, &l->book->jobs[job], false, -1);
}

void ledger_leaves(struct ledger *l, uint32_t job, int sign)
{
    const struct book_job *j = &l->book->jobs[job];

    if (l->nothing)
        return;
    for_each_row(row, l, account_of(l->book, j), book_shape_of(l->book, j))
        row->leaving += (uint64_t)sign * milli_of(l->book, j, row->quota->model);
}

struct seniority {
    uint32_t job;
    uint8_t rank; /* debug, others, spot */
    uint64_t started, num;
};

static int by_seniority(const void *a, const void *b)
{
    const struct seniority *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->started != y->started)
        return x->started < y->started ? -1 : 1;
    return x->num < y->num ? -1 : x->num > y->num;
}

static void add_running(struct ledger *l, struct book *b)
{
    _cleanup_free_ struct seniority *list = xnew_array(struct seniority, b->running + 1);
    uint32_t n = 0;

    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];

        if (j->state == JOB_RUNS)
            list[n++] = (struct seniority){
                i, j->spot ? 2 : j->kind != KIND_DEBUG, j->started, j->num};
    }
    qsort(list, n, sizeof(*list), by_seniority);
    for (uint32_t i = 0; i < n; i++) {
        struct book_job *j = &b->jobs[list[i].job];

        j->borrows = j->spot || (j->kind != KIND_DEBUG && !fits_deserved(l, j));
        add(l, j, j->borrows, 1);
        if (!j->leaves)
            continue;
        ledger_leaves(l, list[i].job, 1);
        note_moving(l, list[i].job);
    }
}

static bool has_guarantees(const struct tree *t)
{
    for (uint32_t a = 0; a < t->account_count; a++)
        for (uint32_t k = 0; k < t->accounts[a].quota_count; k++)
            if (t->accounts[a].quotas[k].guarantee > 0)
                return true;
    return false;
}

void ledger_init(struct ledger *l, struct book *b)
{
    const struct tree *t = &b->tree;
    uint32_t n = 0;

    *l = (struct ledger){
        .book = b, .nothing = t->quotas == 0 && !t->limits, .guarantees = has_guarantees(t)};
    if (l->nothing) {
        book_for_each_job(i, b) b->jobs[i].borrows = b->jobs[i].spot;
        return;
    }
    l->rows = xnew_array(struct ledger_row, t->quotas + 1);
    l->first = xnew_array(uint32_t, t->account_count + 2);
    l->users = xnew_array(struct ledger_user, t->leaf_count + 1);
    for (uint32_t i = 0; i < t->account_count; i++) {
        l->first[i] = n;
        for (uint32_t k = 0; k < t->accounts[i].quota_count; k++)
            l->rows[n++] = (struct ledger_row){.account = i, .quota = &t->accounts[i].quotas[k]};
    }
    l->first[t->account_count] = n;
    add_running(l, b);
    book_for_each_job(i, b)
    {
        if (b->jobs[i].state != JOB_WAITS || !b->jobs[i].claimed)
            continue;
        ledger_promise(l, i);
        note_moving(l, i);
    }
}

void ledger_done(struct ledger *l)
{
    free(l->rows);
    free(l->first);
    free(l->users);
    free(l->moving);
}

/* --- may it ------------------------------------------------------------------------------- */

static enum ledger_word ask_user(
    const struct ledger *l, const struct book_job *j, uint32_t *ret_account)
{
    const struct tree *t = &l->book->tree;
    const struct shape *s = book_shape_of(l->book, j);
    const struct ledger_user *u = &l->users[j->leaf];
    uint64_t all = (uint64_t)s->gpu_milli * s->size;
    uint32_t account = account_of(l->book, j);
    const struct tree_account *a = account == TREE_NONE ? NULL : &t->accounts[account];

    *ret_account = account;
    if (!a)
        return LEDGER_FIRM;
    if (a->user_sessions != TREE_NO_LIMIT && u->sessions >= a->user_sessions)
        return LEDGER_SESSIONS;
    if (all == 0)
        return LEDGER_FIRM;
    if (a->user_milli != TREE_NO_LIMIT && u->milli + all > a->user_milli)
        return LEDGER_GPUS;
    if (a->user_debug_milli != TREE_NO_LIMIT && j->kind == KIND_DEBUG &&
        u->debug_milli + all > a->user_debug_milli)
        return LEDGER_DEBUG_GPUS;
    if (a->user_window != UINT64_MAX && t->leaves[j->leaf].window >= a->user_window)
        return LEDGER_WINDOW;
    return LEDGER_FIRM;
}

/* Of the whole job, as if all of it were of the row's model. */
static uint64_t whole(const struct ledger *l, const struct book_job *j)
{
    const struct shape *s = book_shape_of(l->book, j);

    return (uint64_t)s->gpu_milli * s->size;
}

/* Models that some row forbids; *any: a row of all models says no. bound: of a row, for this job.
 */
static uint32_t forbidden(const struct ledger *l, const struct book_job *j,
    uint64_t (*left)(const struct ledger_row *row, const struct book_job *j), bool *any,
    uint32_t *ret_account)
{
    uint32_t models = 0;

    for_each_row(row, l, account_of(l->book, j), book_shape_of(l->book, j))
    {
        if (left(row, j) >= whole(l, j))
            continue;
        *ret_account = row->account;
        if (row->quota->model == TREE_ANY_MODEL)
            *any = true;
        else
            models |= 1u << row->quota->model;
    }
    return models;
}

static uint64_t left_to_max(const struct ledger_row *row, const struct book_job *j)
{
    if (row->quota->max == TREE_NO_LIMIT)
        return UINT64_MAX;
    return row->quota->max > row->used ? row->quota->max - row->used : 0;
}

/* Debug sessions push aside what the account has beside them, not each other. */
static uint64_t left_of_deserved(const struct ledger_row *row, const struct book_job *j)
{
    uint64_t taken = j->kind == KIND_DEBUG ? row->debug : row->firm;

    if (row->quota->deserved == TREE_NO_LIMIT)
        return UINT64_MAX;
    return row->quota->deserved > taken ? row->quota->deserved - taken : 0;
}

static bool is_of(
    const struct book *b, uint32_t node, uint32_t gpu, uint32_t group, uint32_t models)
{
    const struct book_node *n = &b->nodes[node];

    return !n->closed && n->group == group && (!models || (models >> n->model[gpu] & 1));
}

/* What of the job's shares is on GPUs of the group and the models. */
static uint64_t milli_there(
    const struct book *b, const struct book_job *j, uint32_t group, uint32_t models)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; j->shares && k < b->shapes[j->shape].size; k++) {
        const struct book_share *share = &j->shares[k];

        for (uint64_t bits = share->node == BOOK_NONE ? 0 : share->gpus; bits; bits &= bits - 1)
            if (is_of(b, share->node, (uint32_t)__builtin_ctzll(bits), group, models))
                sum += share->milli;
    }
    return sum;
}

/* GPUs of the group's open nodes, of the models (0: of any): what is free, and what is about to be
 * left, less what is promised to others than this job. */
static uint64_t free_milli(
    const struct ledger *l, const struct place *p, uint32_t job, uint32_t group, uint32_t models)
{
    const struct book *b = p->book;
    uint64_t sum = 0, promised = 0;

    for (uint32_t i = 0; i < b->node_count; i++)
        for (uint32_t g = 0; g < b->nodes[i].gpus; g++)
            if (is_of(b, i, g, group, models))
                sum += (uint64_t)MAX_OF(p->usage.nodes[i].gpu[g], 0);
    for (uint32_t i = 0; i < l->moving_count; i++) {
        const struct book_job *j = &b->jobs[l->moving[i]];

        if (j->state == JOB_RUNS && j->leaves)
            sum += milli_there(b, j, group, models);
        else if (j->state == JOB_WAITS && j->claimed && l->moving[i] != job)
            promised += milli_there(b, j, group, models);
    }
    return sum - MIN_OF(sum, promised);
}

static bool is_above(const struct tree *t, uint32_t account, uint32_t of)
{
    for (int depth = 0; of != TREE_NONE && depth < TREE_DEPTH_MAX; depth++) {
        if (of == account)
            return true;
        of = t->accounts[of].parent;
    }
    return false;
}

static bool is_about(const struct tree_quota *q, uint32_t group)
{
    return q->guarantee > 0 && (q->group == TREE_NONE || q->group == group);
}

/* What the account has not taken yet of what is guaranteed to it of one model, or (model_bit 0) in
 * all: of those by model together, or of all models, whichever is more. *ret_any: it has some. */
static uint64_t not_taken(
    const struct ledger *l, uint32_t account, uint32_t group, uint32_t model_bit, bool *ret_any)
{
    uint64_t by_model = 0, of_all = 0;

    *ret_any = false;
    for (uint32_t k = l->first[account]; k < l->first[account + 1]; k++) {
        const struct ledger_row *row = &l->rows[k];
        bool all = row->quota->model == TREE_ANY_MODEL;
        uint64_t has = row->used - row->leaving;
        uint64_t left = row->quota->guarantee > has ? row->quota->guarantee - has : 0;

        if (!is_about(row->quota, group) ||
            (model_bit && (all || !(model_bit >> row->quota->model & 1))))
            continue;
        *ret_any = true;
        *(all ? &of_all : &by_model) += left;
    }
    return MAX_OF(of_all, by_model);
}

/* A guarantee of an account above covers it. */
static bool is_covered(
    const struct ledger *l, uint32_t account, uint32_t own, uint32_t group, uint32_t model_bit)
{
    const struct tree *t = &l->book->tree;
    uint32_t up = t->accounts[account].parent;

    for (int depth = 0; up != TREE_NONE && depth < TREE_DEPTH_MAX; depth++) {
        bool any = false;

        if (!is_above(t, up, own))
            (void)not_taken(l, up, group, model_bit, &any);
        if (any)
            return true;
        up = t->accounts[up].parent;
    }
    return false;
}

/* What is guaranteed to others and not taken by them. */
static uint64_t kept_for_others(
    const struct ledger *l, const struct book_job *j, uint32_t group, uint32_t model_bit)
{
    const struct tree *t = &l->book->tree;
    uint32_t own = account_of(l->book, j);
    uint64_t sum = 0;

    for (uint32_t a = 0; a < t->account_count; a++) {
        bool any;
        uint64_t left = is_above(t, a, own) ? 0 : not_taken(l, a, group, model_bit, &any);

        if (left > 0 && !is_covered(l, a, own, group, model_bit))
            sum += left;
    }
    return sum;
}

/* Bits of the models that the job could be given in its group. */
static uint32_t models_for(const struct book *b, const struct shape *s)
{
    uint32_t have = 0;

    for (uint32_t i = 0; i < b->node_count; i++)
        if (b->nodes[i].group == s->group)
            have |= b->nodes[i].models;
    return s->models ? have & s->models : have;
}

static enum ledger_word ask_quotas(
    const struct ledger *l, const struct book_job *j, uint32_t *ret_models, uint32_t *ret_account)
{
    const struct shape *s = book_shape_of(l->book, j);
    uint32_t models = models_for(l->book, s), left, right;
    bool over = false, beyond = j->spot;

    left = models & ~forbidden(l, j, left_to_max, &over, ret_account);
    if (over || (models && !left))
        return LEDGER_MAX;
    right = left & ~forbidden(l, j, left_of_deserved, &beyond, ret_account);
    if (!beyond && (right || !models)) {
        *ret_models = right == models ? 0 : right;
        return LEDGER_FIRM;
    }
    if (j->kind == KIND_DEBUG)
        return LEDGER_DEBUG;
    *ret_models = left == models ? 0 : left;
    return LEDGER_BORROWS;
}

enum ledger_word ledger_ask(
    const struct ledger *l, uint32_t job, uint32_t *ret_models, uint32_t *ret_account)
{
    const struct book_job *j = &l->book->jobs[job];
    uint32_t ignored;
    enum ledger_word word;

    *ret_models = 0;
    if (!ret_account)
        ret_account = &ignored;
    *ret_account = TREE_NONE;
    if (l->nothing)
        return j->spot ? LEDGER_BORROWS : LEDGER_FIRM;
    word = ask_user(l, j, ret_account);
    if (word != LEDGER_FIRM)
        return word;
    if (book_shape_of(l->book, j)->gpu_milli == 0 || l->book->tree.quotas == 0)
        return j->spot ? LEDGER_BORROWS : LEDGER_FIRM;
    return ask_quotas(l, j, ret_models, ret_account);
}

bool ledger_keeps_guarantees(const struct ledger *l, const struct place *after, uint32_t job)
{
    const struct book_job *j = &l->book->jobs[job];
    const struct shape *s = book_shape_of(l->book, j);

    if (!l->guarantees || s->gpu_milli == 0)
        return true;
    for (uint32_t bits = models_for(l->book, s); bits; bits &= bits - 1)
        if (free_milli(l, after, job, s->group, bits & -bits) <
            kept_for_others(l, j, s->group, bits & -bits))
            return false;
    return free_milli(l, after, job, s->group, 0) >= kept_for_others(l, j, s->group, 0);
}
