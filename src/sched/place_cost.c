/* What a placement costs on a node. Nodes in the same state cost the same, which is remembered. */
#include "sched/place_internal.h"

#define HASH_PRIME UINT64_C(0x100000001b3)

/* FNV-1a over what decides the cost. */
static uint64_t state_of(const struct place *p, uint32_t node)
{
    const struct book_node *of = &p->book->nodes[node];
    const struct usage_node *n = &p->usage.nodes[node];
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const uint64_t words[] = {(uint64_t)n->cpu_milli, (uint64_t)n->mem,
        (uint64_t)of->models << 32 | (uint64_t)of->gpus << 16, n->free_milli};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        h = (h ^ words[i]) * HASH_PRIME;
    for (uint32_t i = 0; i < of->gpus; i++)
        h = (h ^ ((uint64_t)(uint16_t)n->gpu[i] << 8 | of->model[i])) * HASH_PRIME;
    return h | 1;
}

uint64_t place_cost_key(const struct shape *s, uint32_t count)
{
    uint64_t h = (s->mem ^ count) * HASH_PRIME;

    h = (h ^ ((uint64_t)s->cpu_milli << 32 | s->gpu_milli)) * HASH_PRIME;
    return (h ^ s->models) * HASH_PRIME;
}

/* The least wanted model that the shape could have there. */
static uint32_t scarcity_of(const struct place *p, uint32_t node, const struct shape *s)
{
    uint32_t least = UINT32_MAX;

    if (s->gpu_milli == 0)
        return p->book->nodes[node].gpus > 0; /* work without GPUs keeps off nodes with them */
    for (uint32_t bits = p->book->nodes[node].models & (s->models ? s->models : UINT32_MAX); bits;
         bits &= bits - 1)
        least = MIN_OF(least, p->mix.scarcity[__builtin_ctz(bits)]);
    return least;
}

/* What the node has left of what matters on it: the fuller one wins a tie. Work without GPUs that
 * has to share a node with them goes where it takes CPUs away from the fewest. */
static int64_t left_on(const struct book_node *of, const struct usage_node *n)
{
    int64_t left = of->gpus ? (int64_t)n->free_milli : n->cpu_milli / 1000;

    return MIN_OF(MAX_OF(left, INT64_C(0)), INT64_C(0xfffff));
}

#define PLACES_LEFT (INT64_C(1) << 20)     /* values of left_on */
#define PLACES_SCARCITY (INT64_C(1) << 20) /* and of scarcity_of, at most */

/* Fragmentation, then scarcity, then best fit. Work without GPUs keeps off nodes with them first.
 */
static int64_t in_order(const struct shape *s, int64_t frag, uint32_t scarcity, int64_t left)
{
    int64_t scarce = MIN_OF((int64_t)scarcity, PLACES_SCARCITY - 1);

    if (s->gpu_milli)
        return (frag * PLACES_SCARCITY + scarce) * PLACES_LEFT + left;
    return (scarce * PLACES_SCARCITY + frag) * PLACES_LEFT + left;
}

/* Of count containers on the node. */
static int64_t cost_of(struct place *p, uint32_t node, const struct shape *s, uint32_t count)
{
    struct usage_node saved = p->usage.nodes[node];
    int64_t cost = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct book_share share = {.node = node, .milli = SHAPE_WHOLE};

        cost += frag_cost(&p->mix, &p->usage, node, s, &share.gpus);
        if (shape_is_part(s))
            share.milli = (uint16_t)s->gpu_milli;
        if (i + 1 < count)
            usage_take(&p->usage, s, &share);
    }
    p->usage.nodes[node] = saved;
    return in_order(s, cost, scarcity_of(p, node, s), left_on(&p->book->nodes[node], &saved));
}

int64_t place_cost(
    struct place *p, uint32_t node, const struct shape *s, uint32_t count, uint64_t cost_key)
{
    struct place_cost *c;
    uint64_t key;

    if (!p->states[node])
        p->states[node] = state_of(p, node);
    key = (p->states[node] ^ cost_key) * HASH_PRIME;
    c = &p->costs[(key >> 24) & p->cost_mask];
    if (c->key != key)
        *c = (struct place_cost){key, cost_of(p, node, s, count)};
    return c->cost;
}
