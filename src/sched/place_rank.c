/*
 * A ranking has the cost of a shape on every node, in the order of the network (place.h), and the
 * least of each block. Nodes that change are written down once for all rankings; each catches up
 * when it is asked. So a shape of which thousands are started in a pass is not searched for on all
 * nodes each time.
 *
 * A ranking is worth its memory for a shape that comes often. There are as many as RANKS; a shape
 * whose place is taken by another one wears that one out, and has it when it comes more often.
 */
#include "sched/place_internal.h"

#define RANKS 256
#define NO_ROOM INT64_MAX
#define RECENT_MAX 2 /* changes that are written down, for each node */

struct ranking {
    struct shape shape;
    uint32_t uses; /* 0: nobody's */
    uint32_t seen; /* changes */
    bool filled;
    int64_t *costs, *least; /* of each position, of each block of them */
};

struct place_ranks {
    struct ranking list[RANKS];
    uint32_t nodes, blocks;
    uint32_t *changes; /* positions */
    uint32_t change_count, change_max;
};

struct place_ranks *place_ranks_new(const struct book *b)
{
    struct place_ranks *r = xnew(struct place_ranks);

    r->nodes = b->node_count;
    r->blocks = (b->node_count + PLACE_BLOCK - 1) / PLACE_BLOCK;
    r->change_max = RECENT_MAX * b->node_count + 1;
    r->changes = xnew_array(uint32_t, r->change_max);
    return r;
}

void place_ranks_free(struct place_ranks *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < RANKS; i++) {
        free(r->list[i].costs);
        free(r->list[i].least);
    }
    free(r->changes);
    free(r);
}

/* When there are too many to be written down, all rankings begin anew. */
void place_ranks_touch(struct place_ranks *r, uint32_t position)
{
    if (r->change_count == r->change_max) {
        r->change_count = 0;
        for (uint32_t i = 0; i < RANKS; i++)
            r->list[i].filled = false;
    }
    r->changes[r->change_count++] = position;
}

static uint32_t slot_of(const struct shape *s)
{
    uint64_t key = place_cost_key(s, s->size) ^ (uint64_t)s->group << 32;

    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % RANKS;
}

static bool is_of(const struct ranking *k, const struct shape *s)
{
    return k->uses > 0 && memcmp(&k->shape, s, sizeof(*s)) == 0;
}

void place_ranks_learn(struct place_ranks *r, const struct shape *s)
{
    struct ranking *k = &r->list[slot_of(s)];

    if (is_of(k, s)) {
        k->uses++;
    } else if (k->uses > 1) {
        k->uses--;
    } else {
        k->shape = *s;
        k->uses = 1;
        k->filled = false;
    }
}

bool place_ranks_know(const struct place_ranks *r, const struct shape *s)
{
    return is_of(&r->list[slot_of(s)], s);
}

/* --- costs -------------------------------------------------------------------------------- */

static void find_least(const struct place_ranks *r, struct ranking *k, uint32_t block)
{
    uint32_t end = MIN_OF((block + 1) * PLACE_BLOCK, r->nodes);
    int64_t least = NO_ROOM;

    for (uint32_t i = block * PLACE_BLOCK; i < end; i++)
        least = MIN_OF(least, k->costs[i]);
    k->least[block] = least;
}

static void fill(struct place *p, struct ranking *k)
{
    const struct place_ranks *r = p->ranks;
    uint64_t cost_key = place_cost_key(&k->shape, k->shape.size), total;
    uint32_t n = place_scan(p, &k->shape, &total);

    if (!k->costs) {
        k->costs = xnew_array(int64_t, r->nodes);
        k->least = xnew_array(int64_t, r->blocks);
    }
    for (uint32_t i = 0; i < r->nodes; i++)
        k->costs[i] = NO_ROOM;
    for (uint32_t i = 0; i < n; i++)
        if (p->list[i].fits >= k->shape.size)
            k->costs[p->position[p->list[i].node]] = place_cost(
                p, p->list[i].node, &k->shape, k->shape.size, cost_key);
    for (uint32_t i = 0; i < r->blocks; i++)
        find_least(r, k, i);
    k->seen = r->change_count;
    k->filled = true;
}

static int64_t cost_now(struct place *p, const struct shape *s, uint32_t node, uint64_t cost_key)
{
    if (place_fits(p, node, s) < s->size)
        return NO_ROOM;
    return place_cost(p, node, s, s->size, cost_key);
}

static void catch_up(struct place *p, struct ranking *k)
{
    uint64_t cost_key = place_cost_key(&k->shape, k->shape.size);

    for (; k->seen < p->ranks->change_count; k->seen++) {
        uint32_t at = p->ranks->changes[k->seen], block = at / PLACE_BLOCK;
        int64_t old = k->costs[at], cost = cost_now(p, &k->shape, p->at_position[at], cost_key);

        k->costs[at] = cost;
        if (cost <= k->least[block])
            k->least[block] = cost;
        else if (old == k->least[block])
            find_least(p->ranks, k, block);
    }
}

/* Its position. */
static uint32_t cheapest_of(const struct place_ranks *r, const struct ranking *k)
{
    uint32_t block = 0, at;

    for (uint32_t i = 1; i < r->blocks; i++)
        if (k->least[i] < k->least[block])
            block = i;
    if (r->blocks == 0 || k->least[block] == NO_ROOM)
        return BOOK_NONE;
    at = block * PLACE_BLOCK;
    while (k->costs[at] != k->least[block])
        at++;
    return at;
}

uint32_t place_ranks_cheapest(struct place *p, const struct shape *s)
{
    struct ranking *k = &p->ranks->list[slot_of(s)];
    uint32_t at;

    if (k->filled)
        catch_up(p, k);
    else
        fill(p, k);
    at = cheapest_of(p->ranks, k);
    return at == BOOK_NONE ? at : p->at_position[at];
}
