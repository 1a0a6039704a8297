/*
 * Where one gang goes. All of a session's containers are equal, so filling the nodes that hold most
 * first uses the fewest nodes; as soon as one node holds all that is left, the tightest such node
 * takes it. A gang that fits on one node is the same rule at its first step.
 */
#include "sched/place.h"

uint64_t place_gpus(const struct node *n, const char *model, bool healthy_only)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < n->capacity.gpus; i++) {
        const struct gpu *g = &n->gpus[i];

        if (g->index >= NODE_GPUS_MAX || (healthy_only && !g->healthy))
            continue;
        if (!model[0] || str_eq(model, g->model))
            bits |= UINT64_C(1) << g->index;
    }
    return bits;
}

static uint32_t count_bits(uint64_t bits)
{
    return (uint32_t)__builtin_popcountll(bits);
}

static uint32_t count_fits(const struct candidate *c, const struct resources *each)
{
    uint32_t n = resources_times(each, &c->sn->free);

    return each->gpus ? MIN_OF(n, count_bits(c->gpus) / each->gpus) : n;
}

static int by_name(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return strcmp(x->sn->node->name, y->sn->node->name);
}

struct candidate *place_candidates(
    const struct sched_snapshot *snap, const struct session *s, size_t *ret_count)
{
    struct candidate *cand = xnew_array(struct candidate, snap->node_count);
    size_t n = 0;

    for (size_t i = 0; i < snap->node_count; i++) {
        struct sched_node *sn = &snap->nodes[i];

        if (!node_takes_work(sn->node) || !str_eq(sn->node->group, s->group))
            continue;
        cand[n].sn = sn;
        cand[n].gpus = sn->gpu_free & place_gpus(sn->node, s->gpu_model, true);
        cand[n].fits = count_fits(&cand[n], &s->each);
        n++;
    }
    qsort(cand, n, sizeof(*cand), by_name);
    *ret_count = n;
    return cand;
}

/* What would be left of the node with n more containers on it. GPUs weigh most: a session without
 * any goes where none is left to be wasted. */
static struct resources left_over(
    const struct candidate *c, const struct resources *each, uint32_t n)
{
    struct resources left = c->sn->free, used = {0};

    (void)resources_scale(each, n, &used); /* n fit, so it cannot overflow */
    resources_sub(&left, &used);
    return left;
}

static bool is_tighter(const struct resources *a, const struct resources *b)
{
    if (a->gpus != b->gpus)
        return a->gpus < b->gpus;
    if (a->cpu_milli != b->cpu_milli)
        return a->cpu_milli < b->cpu_milli;
    return a->mem < b->mem;
}

/* a is better than b for the next part of a gang that still needs rest containers. Equal ones keep
 * their order, which is by name. */
static bool is_better(const struct candidate *a, const struct candidate *b,
    const struct resources *each, uint32_t rest)
{
    uint32_t na = MIN_OF(a->fits, rest), nb = MIN_OF(b->fits, rest);
    struct resources left_a, left_b;

    if (na != nb)
        return na > nb;
    left_a = left_over(a, each, na);
    left_b = left_over(b, each, nb);
    return is_tighter(&left_a, &left_b);
}

static struct candidate *pick(
    struct candidate *cand, size_t count, const struct resources *each, uint32_t rest)
{
    struct candidate *best = NULL;

    for (size_t i = 0; i < count; i++) {
        struct candidate *c = &cand[i];

        if (c->used || c->fits == 0)
            continue;
        if (!best || is_better(c, best, each, rest))
            best = c;
    }
    return best;
}

/* The lowest n of bits; they are taken out. */
static uint64_t take_gpus(uint64_t *bits, uint32_t n)
{
    uint64_t taken = 0;

    while (n-- > 0) {
        uint64_t lowest = *bits & -*bits;

        assert(lowest);
        taken |= lowest;
        *bits &= ~lowest;
    }
    return taken;
}

static void take(struct candidate *c, const struct session *s, struct sched_share *share)
{
    share->node = c->sn->node;
    share->gpus = take_gpus(&c->gpus, s->each.gpus);
    c->sn->gpu_free &= ~share->gpus;
    resources_sub(&c->sn->free, &s->each);
}

static bool can_place(const struct candidate *cand, size_t count, const struct session *s)
{
    uint64_t sum = 0;
    uint32_t most = 0;

    for (size_t i = 0; i < count; i++) {
        sum += cand[i].fits;
        most = MAX_OF(most, cand[i].fits);
    }
    return (s->mode == MODE_SINGLE_NODE ? most : sum) >= s->size;
}

bool place_gang(
    struct candidate *cand, size_t count, const struct session *s, struct sched_share *shares)
{
    uint32_t rank = 0;

    if (!can_place(cand, count, s))
        return false;
    while (rank < s->size) {
        struct candidate *c = pick(cand, count, &s->each, s->size - rank);
        uint32_t end;

        assert(c);
        end = rank + MIN_OF(c->fits, s->size - rank);
        while (rank < end)
            take(c, s, &shares[rank++]);
        c->used = true;
    }
    return true;
}
