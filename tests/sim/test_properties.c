/*
 * What holds of every pass, on random clusters and queues. MUSTER_SEED repeats a run;
 * MUSTER_ROUNDS makes it longer.
 */
#include "sched/sched.h"
#include "support/cm.h"
#include "support/prng.h"

#define NODES_MAX 7
#define SESSIONS_MAX 12
#define GIB (UINT64_C(1) << 30)

static const char *const models[] = {"h100", "a100"};
static const char *const groups[] = {"default", "big"};

struct room { /* what is free on a node */
    const struct node *node;
    struct resources free;
    uint64_t gpu_free;
};

struct world {
    struct node nodes[NODES_MAX];
    struct gpu gpus[NODES_MAX][8];
    struct sched_withheld withheld[NODES_MAX];
    struct room rooms[NODES_MAX];
    size_t node_count;
    struct session sessions[SESSIONS_MAX];
    size_t session_count;
};

static void make_node(struct prng *p, struct world *w, size_t i)
{
    struct node *n = &w->nodes[i];
    struct sched_withheld *held = &w->withheld[i];
    struct room *room = &w->rooms[i];
    uint32_t gpus = prng_chance(p, 60) ? prng_below(p, 9) : 0;

    *n = (struct node){.gpus = w->gpus[i]};
    snprintf(n->name, sizeof(n->name), "n%u", prng_below(p, 1000) * 10 + (uint32_t)i);
    STR_SET(n->group, groups[prng_chance(p, 25)]);
    n->state = prng_chance(p, 85) ? NODE_UP : (enum node_state)prng_range(p, 1, 2);
    n->drained = prng_chance(p, 10);
    n->capacity = (struct resources){
        .cpu_milli = prng_range(p, 1, 16) * 1000, .gpus = gpus, .mem = prng_range(p, 1, 32) * GIB};
    for (uint32_t g = 0; g < gpus; g++) {
        n->gpus[g] = (struct gpu){.index = g, .healthy = prng_chance(p, 90)};
        STR_SET(n->gpus[g].model, models[prng_chance(p, 40)]);
    }
    *held = (struct sched_withheld){
        .sum = {.cpu_milli = prng_below(p, n->capacity.cpu_milli),
            .mem = prng_below(p, (uint32_t)(n->capacity.mem / GIB)) * GIB}};
    for (uint32_t g = 0; g < gpus; g++)
        if (prng_chance(p, 25)) {
            held->gpus |= UINT64_C(1) << g;
            held->sum.gpus++;
        }
    *room = (struct room){
        .node = n, .free = n->capacity, .gpu_free = ((UINT64_C(1) << gpus) - 1) & ~held->gpus};
    resources_sub(&room->free, &held->sum);
}

static void make_session(struct prng *p, struct world *w, size_t i)
{
    struct session *s = &w->sessions[i];

    *s = (struct session){.size = prng_range(p, 1, 8), .num = i + 1};
    snprintf(s->id, sizeof(s->id), "s%zu", i);
    STR_SET(s->group, groups[prng_chance(p, 25)]);
    s->mode = prng_chance(p, 30) ? MODE_SINGLE_NODE : MODE_MULTI_NODE;
    s->each = (struct resources){
        .cpu_milli = prng_range(p, 1, 8) * 500, .mem = prng_range(p, 1, 8) * (GIB / 2)};
    if (prng_chance(p, 50)) {
        s->each.gpus = prng_range(p, 1, 4);
        if (prng_chance(p, 50))
            STR_SET(s->gpu_model, models[prng_below(p, 2)]);
    }
}

static void make_world(struct prng *p, struct world *w)
{
    w->node_count = prng_below(p, NODES_MAX + 1);
    w->session_count = prng_range(p, 1, SESSIONS_MAX);
    for (size_t i = 0; i < w->node_count; i++)
        make_node(p, w, i);
    for (size_t i = 0; i < w->session_count; i++)
        make_session(p, w, i);
}

static struct room *room_of(const struct world *w, struct room *rooms, const char *node)
{
    for (size_t i = 0; i < w->node_count; i++)
        if (strcmp(w->nodes[i].name, node) == 0)
            return &rooms[i];
    fail();
    return NULL;
}

static bool usable(const struct node *n, const struct session *s)
{
    return n->state == NODE_UP && !n->drained && strcmp(n->group, s->group) == 0;
}

/* Written without a look at place.c: how many containers of s does the node hold? */
static uint32_t fits(const struct room *room, const struct session *s)
{
    struct resources left = room->free;
    uint32_t good = 0, n = 0;

    if (!usable(room->node, s))
        return 0;
    for (uint32_t g = 0; g < room->node->capacity.gpus; g++)
        good += (room->gpu_free >> g & 1) && room->node->gpus[g].healthy &&
            (!s->gpu_model[0] || strcmp(s->gpu_model, room->node->gpus[g].model) == 0);
    while (left.cpu_milli >= s->each.cpu_milli && left.mem >= s->each.mem &&
        left.gpus >= s->each.gpus && good >= s->each.gpus) {
        left.cpu_milli -= s->each.cpu_milli;
        left.mem -= s->each.mem;
        left.gpus -= s->each.gpus;
        good -= s->each.gpus;
        n++;
    }
    return n;
}

/* Fewest nodes that together hold the session, by trying every set of nodes; 0: none do. */
static uint32_t fewest_nodes(
    const struct world *w, const struct room *rooms, const struct session *s)
{
    uint32_t fewest = 0;

    for (uint32_t set = 1; set < 1u << w->node_count; set++) {
        uint32_t nodes = (uint32_t)__builtin_popcount(set), sum = 0;

        for (size_t i = 0; i < w->node_count; i++)
            sum += set >> i & 1 ? fits(&rooms[i], s) : 0;
        if (sum >= s->size && (fewest == 0 || nodes < fewest))
            fewest = nodes;
    }
    return fewest;
}

static uint32_t largest_size(
    const struct world *w, const struct room *rooms, const struct session *s)
{
    uint32_t most = 0, sum = 0;

    for (size_t i = 0; i < w->node_count; i++) {
        uint32_t n = fits(&rooms[i], s);

        sum += n;
        most = n > most ? n : most;
    }
    return s->mode == MODE_SINGLE_NODE ? most : sum;
}

/* Take one container's share, checking that it was there to be had. */
static void apply_share(
    struct world *w, struct room *rooms, const struct session *s, const struct sched_share *share)
{
    struct room *on = room_of(w, rooms, share->node);

    assert_true(usable(on->node, s));
    assert_true(resources_fit(&s->each, &on->free));
    assert_int_equal(__builtin_popcountll(share->gpus), s->each.gpus);
    assert_int_equal(share->gpus & ~on->gpu_free, 0);
    for (uint32_t g = 0; g < 64; g++) {
        if (!(share->gpus >> g & 1))
            continue;
        assert_true(g < on->node->capacity.gpus && on->node->gpus[g].healthy);
        if (s->gpu_model[0])
            assert_string_equal(on->node->gpus[g].model, s->gpu_model);
    }
    on->gpu_free &= ~share->gpus;
    resources_sub(&on->free, &s->each);
}

static uint32_t count_nodes(const struct sched_start *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->size; i++) {
        bool seen = false;

        for (uint32_t k = 0; k < i; k++)
            seen |= d->shares[k].node == d->shares[i].node;
        n += !seen;
    }
    return n;
}

static void check_started(
    struct world *w, struct room *rooms, const struct session *s, const struct sched_start *d)
{
    uint32_t nodes = count_nodes(d);

    assert_int_equal(d->size, s->size);
    assert_int_equal(nodes, fewest_nodes(w, rooms, s));
    if (s->mode == MODE_SINGLE_NODE)
        assert_int_equal(nodes, 1);
    for (uint32_t i = 0; i < s->size; i++)
        apply_share(w, rooms, s, &d->shares[i]);
}

static void check_waiting(
    struct world *w, const struct room *rooms, const struct session *s, struct sched *sched)
{
    uint32_t largest = largest_size(w, rooms, s);
    struct sched_reason why;

    sched_explain(sched, s, &why);
    assert_true(largest < s->size);
    assert_int_equal(why.largest, largest);
    assert_true(why.code[0] && why.text[0]);
    assert_true(why.position >= 1 && why.position <= w->session_count);
}

static struct session *session_of(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->session_count; i++)
        if (strcmp(w->sessions[i].id, id) == 0)
            return &w->sessions[i];
    fail();
    return NULL;
}

static void check_pass(struct world *w, struct sched *sched, const struct sched_result *r)
{
    struct room rooms[NODES_MAX];

    memcpy(rooms, w->rooms, sizeof(rooms));
    assert_int_equal(r->started_count + r->news_count, w->session_count);
    for (size_t i = 0; i < r->started_count; i++)
        check_started(w, rooms, session_of(w, r->started[i].session), &r->started[i]);
    for (size_t i = 0; i < r->news_count; i++)
        check_waiting(w, rooms, session_of(w, r->news[i]), sched);
}

static void sched_make(struct sched *s)
{
    sched_init(s);
    s->options = (struct pass_options){.order = {.work = 1000}};
}

static void tell_nodes(struct sched *s, const struct world *w)
{
    for (size_t i = 0; i < w->node_count; i++)
        sched_node_put(s, &w->nodes[i], &w->withheld[i]);
}

static void tell_sessions(struct sched *s, const struct world *w)
{
    for (size_t i = 0; i < w->session_count; i++)
        sched_session_put(s, &w->sessions[i], 0);
}

static void check_same(const struct sched_result *a, const struct sched_result *b)
{
    assert_int_equal(a->started_count, b->started_count);
    assert_int_equal(a->news_count, b->news_count);
    for (size_t i = 0; i < a->started_count; i++) {
        assert_string_equal(a->started[i].session, b->started[i].session);
        for (uint32_t k = 0; k < a->started[i].size; k++) {
            assert_string_equal(a->started[i].shares[k].node, b->started[i].shares[k].node);
            assert_int_equal(a->started[i].shares[k].gpus, b->started[i].shares[k].gpus);
        }
    }
    for (size_t i = 0; i < a->news_count; i++)
        assert_string_equal(a->news[i], b->news[i]);
}

/* Told another way - nodes last and backwards, things that were and are no more, things twice -
 * but with the same in the end: the same decisions. */
static void check_again(struct prng *p, struct world *w, const struct sched_result *first)
{
    struct sched_result again;
    struct session other = w->sessions[0];
    struct node gone = w->node_count ? w->nodes[0] : (struct node){.group = "default"};
    struct sched s;

    sched_make(&s);
    STR_SET(other.id, "other");
    other.size = prng_range(p, 1, 8);
    STR_SET(gone.name, "m");
    sched_node_put(&s, &gone, NULL);
    sched_session_put(&s, &other, 0);
    sched_run(&s, 0, &again);
    sched_result_done(&again);
    sched_session_remove(&s, other.id);
    other = w->sessions[0];
    other.size = prng_range(p, 1, 8);
    sched_session_put(&s, &other, 0);
    tell_sessions(&s, w);
    for (size_t i = w->node_count; i > 0; i--)
        sched_node_put(&s, &w->nodes[i - 1], &w->withheld[i - 1]);
    sched_node_remove(&s, gone.name);
    sched_run(&s, 0, &again);
    check_same(first, &again);
    sched_result_done(&again);
    sched_done(&s);
}

/* What would become of it is what becomes of it, and asking changes nothing. */
static void check_try(struct world *w, const struct sched_result *first)
{
    struct session *last = &w->sessions[w->session_count - 1];
    struct sched_result again;
    struct sched_start start;
    struct sched_reason why;
    struct sched s;
    bool starts, started = false;

    sched_make(&s);
    tell_nodes(&s, w);
    tell_sessions(&s, w);
    sched_session_remove(&s, last->id);
    starts = sched_try(&s, last, 0, &start, &why);
    sched_session_put(&s, last, 0);
    sched_run(&s, 0, &again);
    check_same(first, &again);
    for (size_t i = 0; i < again.started_count; i++)
        if (strcmp(again.started[i].session, last->id) == 0) {
            started = true;
            for (uint32_t k = 0; k < last->size; k++)
                assert_string_equal(start.shares[k].node, again.started[i].shares[k].node);
        }
    assert_int_equal(starts, started);
    sched_start_done(&start);
    sched_result_done(&again);
    sched_done(&s);
}

static uint32_t rounds(uint32_t dflt)
{
    const char *text = getenv("MUSTER_ROUNDS");

    return text ? (uint32_t)strtoul(text, NULL, 10) : dflt;
}

static void every_pass_keeps_the_rules(void **state)
{
    struct prng p = {prng_seed("passes")};

    for (uint32_t i = 0; i < rounds(3000); i++) {
        struct world w;
        struct sched_result result;
        struct sched s;

        make_world(&p, &w);
        sched_make(&s);
        tell_nodes(&s, &w);
        tell_sessions(&s, &w);
        sched_run(&s, 0, &result);
        check_pass(&w, &s, &result);
        check_again(&p, &w, &result);
        check_try(&w, &result);
        sched_result_done(&result);
        sched_done(&s);
    }
}

/* Empty, up and healthy: what could ever be is what can be now. */
static void heal(struct world *w)
{
    for (size_t i = 0; i < w->node_count; i++) {
        w->nodes[i].state = NODE_UP;
        w->nodes[i].drained = false;
        for (uint32_t g = 0; g < w->nodes[i].capacity.gpus; g++)
            w->nodes[i].gpus[g].healthy = true;
        w->rooms[i].free = w->nodes[i].capacity;
        w->rooms[i].gpu_free = (UINT64_C(1) << w->nodes[i].capacity.gpus) - 1;
    }
}

static bool has_node(const struct world *w, const char *group)
{
    for (size_t i = 0; i < w->node_count; i++)
        if (strcmp(w->nodes[i].group, group) == 0)
            return true;
    return false;
}

static void check_could_ever(struct world *w, const struct session *s)
{
    const struct node *nodes[NODES_MAX];
    struct err err = ERR_INIT;
    uint32_t largest = 77, want;
    int r;

    for (size_t i = 0; i < w->node_count; i++)
        nodes[i] = &w->nodes[i];
    r = sched_could_ever(s, nodes, w->node_count, &largest, &err);
    heal(w);
    want = largest_size(w, w->rooms, s);
    assert_int_equal(largest, want);
    assert_int_equal(r, !has_node(w, s->group) ? -ENOENT : want >= s->size ? 0 : -E2BIG);
    assert_int_equal(err.code, r);
    assert_true(r == 0 || err.text[0]);
}

static void what_could_ever_run_is_what_runs_on_an_empty_cluster(void **state)
{
    struct prng p = {prng_seed("could ever")};

    for (uint32_t i = 0; i < rounds(3000); i++) {
        struct world w;

        make_world(&p, &w);
        for (size_t k = 0; k < w.session_count; k++)
            check_could_ever(&w, &w.sessions[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_keeps_the_rules),
        cmocka_unit_test(what_could_ever_run_is_what_runs_on_an_empty_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
