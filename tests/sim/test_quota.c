/*
 * What holds of accounts over time, on random trees and workloads: no maximum is passed, debug
 * sessions stay within their right, a guarantee is there when it is wanted, only train sessions
 * that borrow are ever told to leave, and who they leave for starts. MUSTER_SEED repeats a run,
 * MUSTER_ROUNDS makes it longer.
 */
#include "model/session.h"
#include "sched/pass.h"
#include "support/cm.h"
#include "support/prng.h"

#define NODES_MAX 6
#define JOBS_MAX 80
#define ACCOUNTS_MAX 5
#define SECOND UINT64_C(1000000)
#define GRACE (5 * SECOND)

struct job {
    uint64_t submit, duration, end;
    uint64_t promised; /* to run from then on; 0: nothing */
    uint32_t handle;
    enum { NOT_YET, WAITS, RUNS, OVER } state;
    struct book_job job;
};

struct world {
    struct book book;
    struct job jobs[JOBS_MAX];
    size_t count, told, started_for, kept_waiting;
    uint64_t now;
};

static const struct pass_options options = {
    .order = {.work = 1000, .expansion = 500, .fair = 500, .half_life_usec = 100 * SECOND},
    .reservations = 16,
    .patience_usec = 500 * SECOND,
    .turns_milli = 50,
    .preempt = {.min_run_usec = 30 * SECOND, .spot_run_usec = 10 * SECOND, .grace_usec = GRACE}};

static void make_nodes(struct prng *p, struct book *b)
{
    uint32_t count = prng_range(p, 1, NODES_MAX);
    uint8_t models[2];

    book_model(b, "a100", &models[0]);
    book_model(b, "h100", &models[1]);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        struct book_node n = {.name = name,
            .cpu_milli = 64000,
            .gpus = prng_range(p, 2, 8),
            .mem = 64,
            .healthy = UINT64_MAX,
            .group = 0};

        snprintf(name, sizeof(name), "n%u", i);
        memset(n.model, models[prng_below(p, 2)], sizeof(n.model));
        book_node_put(b, &n);
    }
}

static struct tree_quota make_quota(struct prng *p)
{
    struct tree_quota q = {.group = TREE_NONE,
        .model = prng_chance(p, 40) ? TREE_ANY_MODEL : (uint8_t)prng_below(p, 2),
        .guarantee = prng_chance(p, 30) ? prng_below(p, 4) * 1000 : 0,
        .deserved = prng_chance(p, 80) ? prng_below(p, 10) * 1000 : TREE_NO_LIMIT,
        .max = prng_chance(p, 40) ? prng_range(p, 4, 20) * 1000 : TREE_NO_LIMIT};

    return q;
}

static uint32_t make_tree(struct prng *p, struct tree *t)
{
    uint32_t count = prng_range(p, 1, ACCOUNTS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        char name[] = {'a', (char)('0' + i), '\0'};
        struct tree_quota quotas[2] = {make_quota(p), make_quota(p)};
        struct tree_account a = {.name = name,
            .parent = i > 0 && prng_chance(p, 50) ? prng_below(p, i) : TREE_NONE,
            .shares = prng_range(p, 1, 5),
            .quotas = quotas,
            .quota_count = prng_below(p, 3),
            .user_sessions = prng_chance(p, 30) ? prng_range(p, 1, 4) : TREE_NO_LIMIT,
            .user_milli = prng_chance(p, 20) ? prng_range(p, 4, 12) * 1000 : TREE_NO_LIMIT,
            .user_debug_milli = prng_chance(p, 20) ? prng_range(p, 1, 4) * 1000 : TREE_NO_LIMIT,
            .user_window = UINT64_MAX};

        tree_put(t, &a);
    }
    return count;
}

static void make_jobs(struct prng *p, struct world *w, uint32_t accounts)
{
    static const uint32_t gpus[] = {0, 500, 1000, 1000, 2000, 4000};
    uint64_t at = 1000 * SECOND;

    w->count = prng_range(p, 10, JOBS_MAX);
    for (size_t i = 0; i < w->count; i++) {
        struct job *j = &w->jobs[i];
        struct shape s = {.cpu_milli = 500,
            .gpu_milli = gpus[prng_below(p, ARRAY_LEN(gpus))],
            .models = prng_chance(p, 40) ? prng_range(p, 1, 3) : 0,
            .size = prng_chance(p, 70) ? 1 : prng_range(p, 2, 5)};
        uint64_t limit = prng_range(p, 10, 400) * SECOND;

        at += prng_below(p, 20) * SECOND;
        *j = (struct job){.submit = at, .duration = limit * prng_range(p, 1, 10) / 10};
        j->job = (struct book_job){.num = i + 1,
            .shape = book_shape(&w->book, &s),
            .submitted = at,
            .limit = prng_chance(p, 80) ? limit : BOOK_FOREVER,
            .kind = prng_chance(p, 30) ? KIND_DEBUG : KIND_TRAIN,
            .tier = (uint8_t)prng_below(p, 2),
            .leaf = tree_leaf(&w->book.tree,
                prng_chance(p, 90) ? prng_below(p, accounts) : TREE_NONE, prng_below(p, 3))};
        j->job.spot = j->job.kind == KIND_TRAIN && prng_chance(p, 20);
    }
}

/* --- what must hold ------------------------------------------------------------------------- */

/* Written without a look at ledger.c. */
static bool is_below(const struct tree *t, uint32_t account, uint32_t above)
{
    while (account != TREE_NONE && account != above)
        account = t->accounts[account].parent;
    return account == above;
}

static uint64_t milli_on(const struct world *w, const struct book_job *j, uint8_t model)
{
    const struct shape *s = book_shape_of(&w->book, j);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->size && s->gpu_milli; i++)
        for (uint32_t g = 0; g < SHAPE_GPUS_MAX; g++)
            if (j->shares[i].node != BOOK_NONE && (j->shares[i].gpus >> g & 1) &&
                (model == TREE_ANY_MODEL || w->book.nodes[j->shares[i].node].model[g] == model))
                sum += j->shares[i].milli;
    return sum;
}

struct sums {
    uint64_t used, debug;
};

/* promised: what others leave for counts, too. */
static struct sums sums_of(const struct world *w, uint32_t account, uint8_t model, bool promised)
{
    struct sums sums = {0};

    book_for_each_job(i, &w->book)
    {
        const struct book_job *j = &w->book.jobs[i];
        uint32_t of = w->book.tree.leaves[j->leaf].account;
        uint64_t milli;

        if ((j->state != JOB_RUNS && !(promised && j->claimed && j->shares)) || of == TREE_NONE ||
            !is_below(&w->book.tree, of, account))
            continue;
        milli = milli_on(w, j, model);
        sums.used += milli;
        sums.debug += j->kind == KIND_DEBUG ? milli : 0;
    }
    return sums;
}

static void check_quotas(const struct world *w)
{
    const struct tree *t = &w->book.tree;

    for (uint32_t a = 0; a < t->account_count; a++)
        for (uint32_t k = 0; k < t->accounts[a].quota_count; k++) {
            const struct tree_quota *q = &t->accounts[a].quotas[k];
            struct sums sums = sums_of(w, a, q->model, false);

            if (q->max != TREE_NO_LIMIT)
                assert_true(sums.used <= q->max);
            if (q->deserved != TREE_NO_LIMIT)
                assert_true(sums.debug <= q->deserved);
        }
}

static void check_users(const struct world *w)
{
    const struct tree *t = &w->book.tree;

    for (uint32_t l = 0; l < t->leaf_count; l++) {
        const struct tree_account *a = t->leaves[l].account == TREE_NONE
            ? NULL
            : &t->accounts[t->leaves[l].account];
        uint64_t sessions = 0, milli = 0, debug = 0;

        book_for_each_job(i, &w->book)
        {
            const struct book_job *j = &w->book.jobs[i];

            if (j->state != JOB_RUNS || j->leaf != l)
                continue;
            sessions++;
            milli += milli_on(w, j, TREE_ANY_MODEL);
            debug += j->kind == KIND_DEBUG ? milli_on(w, j, TREE_ANY_MODEL) : 0;
        }
        assert_true(!a || sessions <= a->user_sessions);
        assert_true(!a || a->user_milli == TREE_NO_LIMIT || milli <= a->user_milli);
        assert_true(!a || a->user_debug_milli == TREE_NO_LIMIT || debug <= a->user_debug_milli);
    }
}

static void check_usage(const struct world *w)
{
    struct usage u;

    usage_init(&u, &w->book);
    for (uint32_t i = 0; i < w->book.node_count; i++)
        for (uint32_t g = 0; g < w->book.nodes[i].gpus; g++)
            assert_true(u.nodes[i].cpu_milli >= 0 && u.nodes[i].gpu[g] >= 0);
    usage_done(&u);
}

/* Free GPUs of the model, and what is guaranteed of it to accounts that are not above this one. */
static void check_guarantee(const struct world *w, const struct book_job *started, uint8_t model)
{
    const struct tree *t = &w->book.tree;
    uint32_t own = t->leaves[started->leaf].account;
    uint64_t kept = 0, left = 0;
    struct usage u;

    book_for_each_job(i, &w->book) if (w->book.jobs[i].leaves ||
        w->book.jobs[i].claimed) return; /* something is on its way */
    usage_init(&u, &w->book);
    for (uint32_t i = 0; i < w->book.node_count; i++)
        for (uint32_t g = 0; g < w->book.nodes[i].gpus; g++)
            if (w->book.nodes[i].model[g] == model)
                left += (uint64_t)u.nodes[i].gpu[g];
    usage_done(&u);
    for (uint32_t a = 0; a < t->account_count; a++)
        for (uint32_t k = 0; k < t->accounts[a].quota_count; k++) {
            const struct tree_quota *q = &t->accounts[a].quotas[k];
            uint64_t used;

            /* The greatest one at the top: sums of a tree are the ledger's affair. */
            if (t->accounts[a].parent != TREE_NONE || q->model != model ||
                (own != TREE_NONE && is_below(t, own, a)))
                continue;
            used = sums_of(w, a, model, true).used;
            kept = MAX_OF(kept, q->guarantee > used ? q->guarantee - used : 0);
        }
    assert_true(left >= kept);
}

static void check_victims(struct world *w, const struct pass_result *r)
{
    for (uint32_t i = 0; i < r->victim_count; i++) {
        const struct book_job *v = &w->book.jobs[r->victims[i].job];
        const struct book_job *f = &w->book.jobs[r->victims[i].for_job];
        uint64_t least = v->spot ? options.preempt.spot_run_usec : options.preempt.min_run_usec;

        assert_int_equal(v->kind, KIND_TRAIN);
        assert_true(v->state == JOB_RUNS && v->borrows && v->leaves && v->leaves_for == f->num);
        assert_true(w->now >= v->started + least);
        assert_true(f->state == JOB_WAITS && f->claimed && !f->spot);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

static struct job *job_of(struct world *w, uint32_t handle)
{
    for (size_t i = 0; i < w->count; i++)
        if ((w->jobs[i].state == WAITS || w->jobs[i].state == RUNS) && w->jobs[i].handle == handle)
            return &w->jobs[i];
    return NULL;
}

static void check_same(const struct world *w, const struct pass_result *r, struct book *copy)
{
    struct pass_result again;

    pass_run(copy, &options, w->now, &again);
    assert_int_equal(again.count, r->count);
    assert_int_equal(again.victim_count, r->victim_count);
    for (uint32_t i = 0; i < r->count; i++)
        assert_memory_equal(&again.list[i], &r->list[i], sizeof(r->list[i]));
    pass_result_done(&again);
    book_done(copy);
}

static void run_pass(struct world *w)
{
    struct pass_result r;
    struct book copy;

    book_copy(&copy, &w->book);
    pass_run(&w->book, &options, w->now, &r);
    check_victims(w, &r);
    w->told += r.victim_count;
    for (uint32_t i = 0; i < r.victim_count; i++) {
        struct job *j = job_of(w, r.victims[i].job);

        j->end = MIN_OF(j->end, w->now + GRACE);
        job_of(w, r.victims[i].for_job)->promised = w->now + GRACE;
    }
    for (uint32_t i = 0; i < r.count; i++) {
        struct job *j = job_of(w, r.list[i].job);

        if (r.list[i].verdict != VERDICT_START)
            continue;
        j->state = RUNS;
        j->end = w->now + j->duration;
        for (uint8_t m = 0; m < 2; m++)
            if (milli_on(w, &w->book.jobs[j->handle], m) > 0)
                check_guarantee(w, &w->book.jobs[j->handle], m);
    }
    for (size_t i = 0; i < w->count; i++) { /* who others leave for runs by then */
        struct job *j = &w->jobs[i];

        if (!j->promised || j->state == OVER || (j->state == WAITS && w->now < j->promised))
            continue;
        w->started_for += j->state == RUNS;
        w->kept_waiting += j->state != RUNS;
        j->promised = 0;
    }
    check_quotas(w);
    check_users(w);
    check_usage(w);
    check_same(w, &r, &copy);
    pass_result_done(&r);
}

static uint64_t next_event(const struct world *w)
{
    uint64_t at = BOOK_FOREVER;

    for (size_t i = 0; i < w->count; i++) {
        if (w->jobs[i].state == NOT_YET)
            at = MIN_OF(at, w->jobs[i].submit);
        if (w->jobs[i].state == RUNS)
            at = MIN_OF(at, w->jobs[i].end);
    }
    return at;
}

static void replay(struct world *w)
{
    while ((w->now = next_event(w)) != BOOK_FOREVER) {
        for (size_t i = 0; i < w->count; i++) {
            struct job *j = &w->jobs[i];

            if (j->state == RUNS && j->end <= w->now) {
                book_job_remove(&w->book, j->handle);
                j->state = OVER;
            } else if (j->state == NOT_YET && j->submit <= w->now) {
                j->handle = book_job_add(&w->book, &j->job);
                j->state = WAITS;
            }
        }
        run_pass(w);
    }
}

static uint32_t rounds(uint32_t dflt)
{
    const char *text = getenv("MUSTER_ROUNDS");

    return text ? (uint32_t)strtoul(text, NULL, 10) : dflt;
}

static void rights_are_kept(void **state)
{
    struct prng p = {prng_seed("quota")};
    size_t told = 0, started = 0, waiting = 0;

    for (uint32_t i = 0; i < rounds(120); i++) {
        struct world w = {0};

        book_init(&w.book);
        make_nodes(&p, &w.book);
        make_jobs(&p, &w, make_tree(&p, &w.book.tree));
        replay(&w);
        told += w.told;
        started += w.started_for;
        waiting += w.kept_waiting;
        book_done(&w.book);
    }
    /* A guarantee may need what is left at last: that is rare. */
    assert_true(told > rounds(120) / 10 && started > 20 * waiting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
