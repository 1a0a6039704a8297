/*
 * What is said to start earlier does, and then, when it is asked for: on random clusters and
 * queues. MUSTER_SEED repeats a run, MUSTER_ROUNDS makes it longer.
 */
#include "sched/what_if.h"
#include "support/cm.h"
#include "support/prng.h"

#define NODES_MAX 5
#define SESSIONS_MAX 24
#define NOW UINT64_C(1700000000000000)
#define MINUTE UINT64_C(60000000)
#define GIB (UINT64_C(1) << 30)

struct world {
    struct sched sched;
    struct node nodes[NODES_MAX];
    struct gpu gpus[NODES_MAX][8];
    struct session sessions[SESSIONS_MAX];
    struct container containers[SESSIONS_MAX][8];
    size_t count;
};

static void make_node(struct prng *p, struct world *w, size_t i)
{
    static const char *const models[] = {"a100", "h100"};
    struct node *n = &w->nodes[i];
    const char *model = models[prng_below(p, 2)];

    *n = (struct node){.gpus = w->gpus[i], .state = NODE_UP};
    snprintf(n->name, sizeof(n->name), "n%zu", i);
    STR_SET(n->group, "default");
    snprintf(n->leaf, sizeof(n->leaf), "leaf%u", prng_below(p, 2));
    n->capacity = (struct resources){.cpu_milli = 16000, .mem = 64 * GIB, .gpus = 8};
    for (uint32_t g = 0; g < 8; g++) {
        n->gpus[g] = (struct gpu){.index = g, .healthy = true};
        STR_SET(n->gpus[g].model, model);
    }
    sched_node_put(&w->sched, n, NULL);
}

/* One of two; GPUs of both models or of one. */
static void make_account(struct prng *p, struct world *w, const char *name)
{
    struct account_quota quota = {.deserved = prng_below(p, 17) * 1000, .max = ACCOUNT_NO_LIMIT};
    struct account a;

    account_init(&a);
    STR_SET(a.name, name);
    if (prng_chance(p, 50))
        quota.max = quota.deserved + prng_below(p, 17) * 1000;
    if (prng_chance(p, 30))
        quota.guarantee = MIN_OF(quota.deserved, 4000u);
    if (prng_chance(p, 50))
        STR_SET(quota.gpu_model, "h100");
    if (prng_chance(p, 30))
        a.user_gpus = prng_range(p, 1, 24) * 1000;
    a.quotas = &quota;
    a.quota_count = prng_below(p, 2);
    sched_account_put(&w->sched, &a);
}

static void make_session(struct prng *p, struct world *w, size_t i)
{
    struct session *s = &w->sessions[i];

    *s = (struct session){.num = i + 1,
        .state = SESSION_PENDING,
        .size = prng_chance(p, 50) ? 1 : prng_range(p, 2, 8),
        .mode = prng_chance(p, 30) ? MODE_SINGLE_NODE : MODE_MULTI_NODE,
        .each = {.cpu_milli = 1000, .mem = GIB, .gpus = prng_below(p, 9)},
        .time_limit_usec = prng_chance(p, 80) ? prng_range(p, 1, 2000) * MINUTE : 0,
        .submitted_usec = NOW - prng_below(p, 3000) * MINUTE,
        .switches = prng_below(p, 2),
        .switch_wait_usec = prng_range(p, 1, 6000) * MINUTE,
        .containers = w->containers[i]};
    snprintf(s->id, sizeof(s->id), "s%zu", i);
    STR_SET(s->group, "default");
    STR_SET(s->owner, prng_chance(p, 50) ? "kim" : "lee");
    STR_SET(s->account, prng_chance(p, 30) ? "" : prng_chance(p, 50) ? "red" : "blue");
    s->kind = prng_chance(p, 30) ? KIND_DEBUG : KIND_TRAIN;
    s->spot = s->kind == KIND_TRAIN && prng_chance(p, 20);
    if (s->each.gpus && prng_chance(p, 60))
        STR_SET(s->gpu_model, prng_chance(p, 50) ? "a100" : "h100");
}

/* The first half comes, and some of it runs; a while later the rest comes. */
static void make_world(struct world *w, uint64_t seed)
{
    struct sched_result r;
    struct prng p = {seed};
    size_t nodes;

    memset(w, 0, sizeof(*w));
    sched_init(&w->sched);
    make_account(&p, w, "red");
    make_account(&p, w, "blue");
    nodes = prng_range(&p, 1, NODES_MAX);
    w->count = prng_range(&p, 2, SESSIONS_MAX);
    for (size_t i = 0; i < nodes; i++)
        make_node(&p, w, i);
    for (size_t i = 0; i < w->count; i++)
        make_session(&p, w, i);
    for (size_t i = 0; i < w->count; i++) {
        if (i == w->count / 2) {
            sched_run(&w->sched, NOW - 5 * MINUTE, &r);
            sched_result_done(&r);
        }
        sched_session_put(&w->sched, &w->sessions[i], NOW);
    }
    sched_run(&w->sched, NOW, &r);
    sched_result_done(&r);
}

static struct session changed(const struct session *s, const struct what_if_row *row)
{
    struct session to = *s;

    to.num = 1000;
    to.submitted_usec = NOW;
    STR_SET(to.id, "other");
    if (row->change == CHANGE_SIZE)
        to.size = (uint32_t)row->value;
    if (row->change == CHANGE_GPUS)
        to.each.gpus = (uint32_t)row->value;
    if (row->change == CHANGE_TIME)
        to.time_limit_usec = row->value;
    if (row->change == CHANGE_MODE)
        to.mode = MODE_MULTI_NODE;
    if (row->change == CHANGE_MODEL)
        STR_SET(to.gpu_model, row->model);
    return to;
}

static void check_row(uint64_t seed, size_t i, const struct what_if_row *row)
{
    struct world w;
    struct session other;
    struct sched_result r;
    struct sched_reason why;
    bool started = false;

    make_world(&w, seed);
    other = changed(&w.sessions[i], row);
    sched_session_remove(&w.sched, w.sessions[i].id);
    sched_session_put(&w.sched, &other, NOW);
    sched_run(&w.sched, NOW, &r);
    for (size_t k = 0; k < r.started_count; k++)
        started |= strcmp(r.started[k].session, "other") == 0;
    assert_int_equal(started, row->now);
    sched_brief(&w.sched, &other, &why);
    if (!started)
        assert_int_equal(why.start_usec, row->start_usec);
    sched_result_done(&r);
    sched_done(&w.sched);
}

static void check_session(const struct world *w, uint64_t seed, size_t i, size_t *rows)
{
    struct what_if asked;
    struct sched_reason why;

    sched_brief(&w->sched, &w->sessions[i], &why);
    if (!what_if_init(&asked, &w->sched, &w->sessions[i], NOW))
        return;
    what_if_run(&asked);
    for (uint32_t k = 0; k < asked.count; k++) {
        assert_true(!why.start_usec || asked.rows[k].start_usec < why.start_usec);
        check_row(seed, i, &asked.rows[k]);
    }
    *rows += asked.count;
    what_if_done(&asked);
}

static uint32_t rounds(uint32_t dflt)
{
    const char *text = getenv("MUSTER_ROUNDS");

    return text ? (uint32_t)strtoul(text, NULL, 10) : dflt;
}

static void what_is_suggested_starts_then(void **state)
{
    uint64_t first = prng_seed("what if");
    size_t rows = 0;

    for (uint64_t round = 0; round < rounds(40); round++) {
        struct world w;

        make_world(&w, first + round);
        for (size_t i = 0; i < w.count; i++)
            check_session(&w, first + round, i, &rows);
        sched_done(&w.sched);
    }
    assert_true(rows > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_suggested_starts_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
