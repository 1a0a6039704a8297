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

struct world {
    struct node nodes[NODES_MAX];
    struct gpu gpus[NODES_MAX][8];
    struct sched_node sn[NODES_MAX], before[NODES_MAX];
    size_t node_count;
    struct session sessions[SESSIONS_MAX];
    const struct session *pending[SESSIONS_MAX];
    size_t session_count;
};

static void make_node(struct prng *p, struct world *w, size_t i)
{
    struct node *n = &w->nodes[i];
    struct sched_node *sn = &w->sn[i];
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
    *sn = (struct sched_node){.node = n, .free = n->capacity};
    for (uint32_t g = 0; g < gpus; g++) {
        if (prng_chance(p, 75))
            sn->gpu_free |= UINT64_C(1) << g;
        else
            sn->free.gpus--;
    }
    sn->free.cpu_milli -= prng_below(p, sn->free.cpu_milli);
    sn->free.mem -= prng_below(p, (uint32_t)(sn->free.mem / GIB)) * GIB;
}

static void make_session(struct prng *p, struct world *w, size_t i)
{
    struct session *s = &w->sessions[i];

    *s = (struct session){.size = prng_range(p, 1, 8)};
    STR_SET(s->group, groups[prng_chance(p, 25)]);
    s->mode = prng_chance(p, 30) ? MODE_SINGLE_NODE : MODE_MULTI_NODE;
    s->each = (struct resources){
        .cpu_milli = prng_range(p, 1, 8) * 500, .mem = prng_range(p, 1, 8) * (GIB / 2)};
    if (prng_chance(p, 50)) {
        s->each.gpus = prng_range(p, 1, 4);
        if (prng_chance(p, 50))
            STR_SET(s->gpu_model, models[prng_below(p, 2)]);
    }
    w->pending[i] = s;
}

static void make_world(struct prng *p, struct world *w)
{
    w->node_count = prng_below(p, NODES_MAX + 1);
    w->session_count = prng_range(p, 1, SESSIONS_MAX);
    for (size_t i = 0; i < w->node_count; i++)
        make_node(p, w, i);
    for (size_t i = 0; i < w->session_count; i++)
        make_session(p, w, i);
    memcpy(w->before, w->sn, sizeof(w->sn));
}

static size_t node_index(const struct world *w, const struct node *n)
{
    size_t i = (size_t)(n - w->nodes);

    assert_true(i < w->node_count);
    return i;
}

static bool usable(const struct node *n, const struct session *s)
{
    return n->state == NODE_UP && !n->drained && strcmp(n->group, s->group) == 0;
}

/* Written without a look at place.c: how many containers of s does the node hold? */
static uint32_t fits(const struct sched_node *sn, const struct session *s)
{
    struct resources left = sn->free;
    uint32_t good = 0, n = 0;

    if (!usable(sn->node, s))
        return 0;
    for (uint32_t g = 0; g < sn->node->capacity.gpus; g++)
        good += (sn->gpu_free >> g & 1) && sn->node->gpus[g].healthy &&
            (!s->gpu_model[0] || strcmp(s->gpu_model, sn->node->gpus[g].model) == 0);
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
    const struct world *w, const struct sched_node *sn, const struct session *s)
{
    uint32_t fewest = 0;

    for (uint32_t set = 1; set < 1u << w->node_count; set++) {
        uint32_t nodes = (uint32_t)__builtin_popcount(set), sum = 0;

        for (size_t i = 0; i < w->node_count; i++)
            sum += set >> i & 1 ? fits(&sn[i], s) : 0;
        if (sum >= s->size && (fewest == 0 || nodes < fewest))
            fewest = nodes;
    }
    return fewest;
}

static uint32_t largest_size(
    const struct world *w, const struct sched_node *sn, const struct session *s)
{
    uint32_t most = 0, sum = 0;

    for (size_t i = 0; i < w->node_count; i++) {
        uint32_t n = fits(&sn[i], s);

        sum += n;
        most = n > most ? n : most;
    }
    return s->mode == MODE_SINGLE_NODE ? most : sum;
}

/* Take one container's share from a copy of the snapshot, checking that it was there to be had. */
static void apply_share(struct world *w, struct sched_node *sn, const struct session *s,
    const struct sched_share *share)
{
    struct sched_node *on = &sn[node_index(w, share->node)];

    assert_true(usable(share->node, s));
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

static uint32_t count_nodes(const struct sched_decision *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->session->size; i++) {
        bool seen = false;

        for (uint32_t k = 0; k < i; k++)
            seen |= d->shares[k].node == d->shares[i].node;
        n += !seen;
    }
    return n;
}

static void check_placed(struct world *w, struct sched_node *sn, const struct sched_decision *d)
{
    const struct session *s = d->session;
    uint32_t nodes = count_nodes(d);

    assert_int_equal(nodes, fewest_nodes(w, sn, s));
    if (s->mode == MODE_SINGLE_NODE)
        assert_int_equal(nodes, 1);
    assert_int_equal(d->code[0], 0);
    for (uint32_t i = 0; i < s->size; i++)
        apply_share(w, sn, s, &d->shares[i]);
}

static void check_waiting(
    struct world *w, const struct sched_node *sn, const struct sched_decision *d)
{
    uint32_t largest = largest_size(w, sn, d->session);

    assert_true(largest < d->session->size);
    assert_int_equal(d->largest, largest);
    assert_null(d->shares);
    assert_true(d->code[0] && d->text[0]);
}

static void check_pass(struct world *w, const struct sched_decision *d, size_t count)
{
    struct sched_node sn[NODES_MAX];

    memcpy(sn, w->before, sizeof(sn));
    assert_int_equal(count, w->session_count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(d[i].session, &w->sessions[i]);
        if (d[i].placed)
            check_placed(w, sn, &d[i]);
        else
            check_waiting(w, sn, &d[i]);
    }
    for (size_t i = 0; i < w->node_count; i++) {
        assert_int_equal(sn[i].free.cpu_milli, w->sn[i].free.cpu_milli);
        assert_int_equal(sn[i].free.gpus, w->sn[i].free.gpus);
        assert_int_equal(sn[i].free.mem, w->sn[i].free.mem);
        assert_int_equal(sn[i].gpu_free, w->sn[i].gpu_free);
    }
}

static struct sched_snapshot snapshot_of(struct world *w)
{
    return (struct sched_snapshot){.nodes = w->sn,
        .node_count = w->node_count,
        .pending = w->pending,
        .pending_count = w->session_count};
}

static void shuffle(struct prng *p, struct sched_node *sn, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t k = prng_below(p, (uint32_t)i);
        struct sched_node tmp = sn[i - 1];

        sn[i - 1] = sn[k];
        sn[k] = tmp;
    }
}

/* The same nodes in another order: the same decisions. */
static void check_again(struct prng *p, struct world *w, const struct sched_decision *d)
{
    struct sched_snapshot snap = snapshot_of(w);
    struct sched_decision *again;
    size_t count;

    memcpy(w->sn, w->before, sizeof(w->sn));
    shuffle(p, w->sn, w->node_count);
    sched_pass(&snap, &again, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(again[i].placed, d[i].placed);
        assert_string_equal(again[i].text, d[i].text);
        for (uint32_t k = 0; d[i].placed && k < d[i].session->size; k++) {
            assert_ptr_equal(again[i].shares[k].node, d[i].shares[k].node);
            assert_int_equal(again[i].shares[k].gpus, d[i].shares[k].gpus);
        }
    }
    sched_free(again, count);
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
        struct sched_snapshot snap;
        struct sched_decision *d;
        size_t count;

        make_world(&p, &w);
        snap = snapshot_of(&w);
        sched_pass(&snap, &d, &count);
        check_pass(&w, d, count);
        check_again(&p, &w, d);
        sched_free(d, count);
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
        w->sn[i].free = w->nodes[i].capacity;
        w->sn[i].gpu_free = (UINT64_C(1) << w->nodes[i].capacity.gpus) - 1;
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
    want = largest_size(w, w->sn, s);
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
