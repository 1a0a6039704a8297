/*
 * The choice of nodes. All containers of a job are equal, so filling the nodes that hold most first
 * uses the fewest; as soon as one node holds all that is left, the cheapest such node takes it.
 */
#include "sched/place.h"

#include "sched/place_internal.h"
#include "sched/sort.h"

/* Costs that are cached: for so many shapes on each node, in powers of two. */
#define COSTS_PER_NODE 16
#define COSTS_MIN 64u
#define COSTS_MAX (1u << 16)

/* --- what is free ------------------------------------------------------------------------- */

static uint32_t block_count(const struct book *b)
{
    return (b->node_count + PLACE_BLOCK - 1) / PLACE_BLOCK;
}

/* Spine, leaf, then name, which is the order of the book. */
static void order_by_network(struct place *p)
{
    const struct book *b = p->book;
    _cleanup_free_ struct sort_item *items = xnew_array(struct sort_item, b->node_count);

    p->position = xnew_array(uint32_t, b->node_count);
    p->at_position = xnew_array(uint32_t, b->node_count);
    for (uint32_t i = 0; i < b->node_count; i++)
        items[i] = (struct sort_item){(uint64_t)b->nodes[i].spine << 16 | b->nodes[i].leaf, i};
    sort_items(items, b->node_count);
    for (uint32_t i = 0; i < b->node_count; i++) {
        p->at_position[i] = items[i].value;
        p->position[items[i].value] = i;
    }
}

void place_init(struct place *p, const struct book *b)
{
    *p = (struct place){.book = b};
    usage_init(&p->usage, b);
    frag_mix_init(&p->mix, b);
    p->blocks = xnew_array(struct place_block, block_count(b));
    p->list = xnew_array(struct place_candidate, b->node_count);
    p->states = xnew_array(uint64_t, b->node_count);
    p->cost_mask = COSTS_MIN;
    while (p->cost_mask < COSTS_MAX && p->cost_mask < b->node_count * COSTS_PER_NODE)
        p->cost_mask *= 2;
    p->costs = xnew_array(struct place_cost, p->cost_mask--);
    p->owns_costs = true;
    order_by_network(p);
    p->ranks = place_ranks_new(b);
    p->domains = 1;
    for (uint32_t i = 0; i < b->node_count; i++)
        p->domains = MAX_OF(p->domains, MAX_OF(b->nodes[i].leaf, b->nodes[i].spine) + 1u);
    for (uint32_t i = 0; i < block_count(b); i++)
        p->blocks[i].stale = true;
}

void place_copy(struct place *to, const struct place *from, bool later)
{
    const struct book *b = from->book;
    struct place old = *to;

    *to = *from;
    to->usage = old.usage;
    usage_copy(&to->usage, &from->usage);
    to->blocks = old.blocks ? old.blocks : xnew_array(struct place_block, block_count(b));
    to->list = old.list ? old.list : xnew_array(struct place_candidate, b->node_count);
    to->states = old.states ? old.states : xnew_array(uint64_t, b->node_count);
    memcpy(to->blocks, from->blocks, block_count(b) * sizeof(*from->blocks));
    memcpy(to->states, from->states, b->node_count * sizeof(*from->states));
    to->ranks = NULL;
    to->later = later;
    for (uint32_t i = 0; later && i < block_count(b); i++)
        to->blocks[i].stale = true;
    to->owns_costs = false; /* what a state costs does not depend on whose it is */
}

void place_done(struct place *p)
{
    usage_done(&p->usage);
    free(p->blocks);
    free(p->list);
    free(p->states);
    place_ranks_free(p->ranks);
    if (!p->owns_costs)
        return;
    free(p->costs);
    free(p->position);
    free(p->at_position);
}

static void touch(struct place *p, uint32_t node)
{
    if (node == BOOK_NONE)
        return;
    p->blocks[node / PLACE_BLOCK].stale = true;
    p->states[node] = 0;
    if (p->ranks)
        place_ranks_touch(p->ranks, p->position[node]);
}

void place_take(struct place *p, const struct shape *s, const struct book_share *share)
{
    usage_take(&p->usage, s, share);
    touch(p, share->node);
}

void place_set(struct place *p, uint32_t node, const struct usage_node *free)
{
    p->usage.nodes[node] = *free;
    touch(p, node);
}

void place_give(struct place *p, const struct shape *s, const struct book_share *share)
{
    usage_give(&p->usage, s, share);
    touch(p, share->node);
}

static bool has_room(struct place *p, const struct shape *s, const struct book_share *share)
{
    const struct usage_node *n = &p->usage.nodes[share->node];
    const struct book_node *of = &p->book->nodes[share->node];

    if (!usage_may(p->book, share->node, s, p->later) || n->cpu_milli < s->cpu_milli ||
        n->mem < (int64_t)s->mem || (share->gpus & ~of->healthy))
        return false;
    for (uint64_t bits = share->gpus; bits; bits &= bits - 1)
        if (n->gpu[__builtin_ctzll(bits)] < (int32_t)share->milli)
            return false;
    return true;
}

bool place_exactly(struct place *p, const struct shape *s, const struct book_share *shares)
{
    for (uint32_t i = 0; i < s->size; i++) {
        if (!has_room(p, s, &shares[i])) {
            while (i-- > 0)
                place_give(p, s, &shares[i]);
            return false;
        }
        place_take(p, s, &shares[i]);
    }
    return true;
}

static void refresh(struct place *p, uint32_t block)
{
    uint32_t end = MIN_OF((block + 1) * PLACE_BLOCK, p->book->node_count);
    struct place_block b = {0};

    for (uint32_t i = block * PLACE_BLOCK; i < end; i++) {
        const struct usage_node *n = &p->usage.nodes[i];

        if (!book_node_takes_work(&p->book->nodes[i], p->later))
            continue;
        b.cpu_milli = MAX_OF(b.cpu_milli, n->cpu_milli);
        b.mem = MAX_OF(b.mem, n->mem);
        b.whole = MAX_OF(b.whole, n->whole);
        b.part = MAX_OF(b.part, n->part);
    }
    p->blocks[block] = b;
}

static bool may_hold(struct place *p, uint32_t block, const struct shape *s)
{
    const struct place_block *b = &p->blocks[block];

    if (b->stale)
        refresh(p, block);
    if (b->cpu_milli < s->cpu_milli || b->mem < (int64_t)s->mem)
        return false;
    if (shape_is_part(s))
        return b->whole > 0 || b->part >= s->gpu_milli;
    return b->whole >= shape_gpus(s);
}

uint32_t place_fits(const struct place *p, uint32_t node, const struct shape *s)
{
    return usage_may(p->book, node, s, p->later) ? usage_fits(&p->usage, node, s) : 0;
}

uint32_t place_scan(struct place *p, const struct shape *s, uint64_t *ret_total)
{
    uint32_t n = 0, blocks = block_count(p->book);
    uint64_t total = 0;

    for (uint32_t block = 0; block < blocks; block++) {
        uint32_t end = MIN_OF((block + 1) * PLACE_BLOCK, p->book->node_count);

        if (!may_hold(p, block, s))
            continue;
        p->scanned += end - block * PLACE_BLOCK;
        for (uint32_t i = block * PLACE_BLOCK; i < end; i++) {
            uint32_t fits = place_fits(p, i, s);

            if (fits > 0)
                p->list[n++] = (struct place_candidate){i, fits};
            total += fits;
        }
    }
    *ret_total = total;
    return n;
}

/* --- one node ----------------------------------------------------------------------------- */

/* Of two that cost the same: the one that comes first in the list by its room, then the one that
 * comes first in the network. */
static bool is_nearer(
    const struct place *p, const struct place_candidate *a, const struct place_candidate *b)
{
    return a->fits == b->fits && p->position[a->node] < p->position[b->node];
}

/* The cheapest candidate that holds count containers and is not used; BOOK_NONE: none does. */
static uint32_t cheapest(struct place *p, uint32_t n, const struct shape *s, uint32_t count)
{
    uint64_t cost_key = place_cost_key(s, count);
    uint32_t best = BOOK_NONE;
    int64_t least = INT64_MAX;

    for (uint32_t i = 0; i < n; i++) {
        int64_t cost;

        if (p->list[i].fits < count)
            continue;
        cost = place_cost(p, p->list[i].node, s, count, cost_key);
        if (cost < least || (cost == least && is_nearer(p, &p->list[i], &p->list[best]))) {
            least = cost;
            best = i;
        }
    }
    return best;
}

static void put(struct place *p, const struct shape *s, uint32_t node, struct book_share *shares,
    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct book_share share = {.node = node, .milli = SHAPE_WHOLE};

        if (shape_is_part(s)) {
            (void)frag_cost(&p->mix, &p->usage, node, s, &share.gpus);
            share.milli = (uint16_t)s->gpu_milli;
        } else if (s->gpu_milli > 0) {
            share.gpus = usage_near_gpus(&p->usage, node, s);
        }
        shares[i] = share;
        place_take(p, s, &share);
    }
}

/* --- several nodes ------------------------------------------------------------------------ */

static uint16_t domain_of(const struct book *b, uint32_t node, enum level level)
{
    return level == LEVEL_LEAF ? b->nodes[node].leaf
        : level == LEVEL_SPINE ? b->nodes[node].spine
                               : 0;
}

/* A domain (a leaf, a spine, all) as the job would use it. */
struct domain {
    uint64_t room;  /* containers */
    uint32_t nodes; /* that it would take, the roomiest first */
};

static int by_fits(const void *a, const void *b)
{
    const struct place_candidate *x = a, *y = b;

    if (x->fits != y->fits)
        return x->fits > y->fits ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The best domain of this level: fewest nodes, then least room left over, then the lowest number;
 * BOOK_NONE: none holds it. The list is sorted by room. */
static uint32_t best_domain(struct place *p, uint32_t n, const struct shape *s, enum level level)
{
    _cleanup_free_ struct domain *d = xnew_array(struct domain, p->domains);
    uint32_t best = BOOK_NONE;

    for (uint32_t i = 0; i < n; i++) {
        struct domain *x = &d[domain_of(p->book, p->list[i].node, level)];

        x->nodes += x->room < s->size;
        x->room += p->list[i].fits;
    }
    for (uint32_t i = level == LEVEL_CLUSTER ? 0 : 1; i < p->domains; i++) {
        if (d[i].room < s->size)
            continue;
        if (best == BOOK_NONE || d[i].nodes < d[best].nodes ||
            (d[i].nodes == d[best].nodes && d[i].room < d[best].room))
            best = i;
    }
    return best;
}

/* Keep only the candidates of one domain, in their order. */
static uint32_t keep_domain(struct place *p, uint32_t n, enum level level, uint32_t domain)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++)
        if (domain_of(p->book, p->list[i].node, level) == domain)
            p->list[kept++] = p->list[i];
    return kept;
}

static void spread(struct place *p, uint32_t n, const struct shape *s, struct book_share *shares)
{
    uint32_t rank = 0;

    while (rank < s->size) {
        uint32_t rest = s->size - rank, most = 0, at, count;

        for (uint32_t i = 0; i < n; i++)
            most = MAX_OF(most, p->list[i].fits);
        count = MIN_OF(most, rest);
        at = cheapest(p, n, s, count);
        assert(count > 0 && at != BOOK_NONE);
        put(p, s, p->list[at].node, shares + rank, count);
        p->list[at].fits = 0;
        rank += count;
    }
}

/* Keep only the candidates of so many leaves, those with the most room. The room that is kept. */
static uint64_t keep_leaves(struct place *p, uint32_t *n, uint32_t leaves)
{
    _cleanup_free_ uint64_t *room = xcalloc(p->domains, sizeof(*room));
    _cleanup_free_ bool *kept = xcalloc(p->domains, sizeof(*kept));
    uint32_t left = 0;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < *n; i++)
        room[p->book->nodes[p->list[i].node].leaf] += p->list[i].fits;
    for (uint32_t k = 0; k < leaves; k++) {
        uint32_t most = 0;

        for (uint32_t i = 1; i < p->domains; i++)
            if (room[i] > room[most])
                most = i;
        if (room[most] == 0)
            break;
        kept[most] = true;
        sum += room[most];
        room[most] = 0;
    }
    for (uint32_t i = 0; i < *n; i++)
        if (kept[p->book->nodes[p->list[i].node].leaf])
            p->list[left++] = p->list[i];
    *n = left;
    return sum;
}

static bool place_in_level(
    struct place *p, uint32_t n, const struct shape *s, enum level level, struct book_share *shares)
{
    uint32_t domain = best_domain(p, n, s, level);

    if (domain == BOOK_NONE)
        return false;
    n = keep_domain(p, n, level, domain);
    if (s->switches && p->domains > 1 && level > LEVEL_LEAF &&
        keep_leaves(p, &n, s->switches) < s->size)
        return false;
    spread(p, n, s, shares);
    return true;
}

/* Where no switch is known they do not matter. */
static bool place_in_levels(
    struct place *p, uint32_t n, const struct shape *s, struct book_share *shares)
{
    _cleanup_free_ struct place_candidate *all = xmemdup(p->list, n * sizeof(*all));
    enum level widest = s->switches == 1 && p->domains > 1 ? LEVEL_LEAF : LEVEL_CLUSTER;

    for (enum level level = LEVEL_LEAF; level <= widest; level++) {
        if (place_in_level(p, n, s, level, shares))
            return true;
        memcpy(p->list, all, n * sizeof(*all));
    }
    return false;
}

/* GPU models of the candidates, as bits. */
static uint32_t models_of(const struct place *p, uint32_t n)
{
    uint32_t models = 0;

    for (uint32_t i = 0; i < n; i++)
        models |= p->book->nodes[p->list[i].node].models;
    return models;
}

/* Of the models, the one that is least wanted by name. */
static uint32_t least_scarce(const struct place *p, uint32_t models)
{
    uint32_t best = (uint32_t)__builtin_ctz(models);

    for (uint32_t bits = models; bits; bits &= bits - 1)
        if (p->mix.scarcity[__builtin_ctz(bits)] < p->mix.scarcity[best])
            best = (uint32_t)__builtin_ctz(bits);
    return best;
}

/* Nodes that so many containers take, the roomiest first. */
static uint32_t nodes_for(const struct place_candidate *list, uint32_t n, uint32_t size)
{
    uint32_t nodes = 0;

    for (uint64_t room = 0; nodes < n && room < size; nodes++)
        room += list[nodes].fits;
    return nodes;
}

/* A gang is as fast as its slowest GPU: all of one model, on nodes that have no other, if there is
 * room and it takes no more nodes. */
static bool place_on_one_model(
    struct place *p, uint32_t n, const struct shape *s, struct book_share *shares)
{
    _cleanup_free_ struct place_candidate *all = xmemdup(p->list, n * sizeof(*all));
    uint32_t models = models_of(p, n);

    for (; models; models &= ~(1u << least_scarce(p, models))) {
        uint32_t only = 1u << least_scarce(p, models), kept = 0;

        for (uint32_t i = 0; i < n; i++)
            if (p->book->nodes[all[i].node].models == only)
                p->list[kept++] = all[i];
        if (nodes_for(p->list, kept, s->size) <= nodes_for(all, n, s->size) &&
            place_in_levels(p, kept, s, shares))
            return true;
    }
    memcpy(p->list, all, n * sizeof(*all));
    return false;
}

static bool place_wide(
    struct place *p, uint32_t n, const struct shape *s, struct book_share *shares)
{
    uint32_t models = models_of(p, n);

    qsort(p->list, n, sizeof(*p->list), by_fits);
    if (s->gpu_milli && (models & (models - 1)) && place_on_one_model(p, n, s, shares))
        return true;
    return place_in_levels(p, n, s, shares);
}

/* Not for shapes that were not placed before: it is likely that there is no room for them. */
static uint32_t find_ranked(struct place *p, const struct shape *s, bool *ret_known)
{
    *ret_known = p->ranks && place_ranks_know(p->ranks, s);
    return *ret_known ? place_ranks_cheapest(p, s) : BOOK_NONE;
}

bool place_job(struct place *p, const struct shape *s, struct book_share *shares)
{
    uint64_t total;
    bool known;
    uint32_t node = find_ranked(p, s, &known), n, at;

    p->room = 0;
    if (node == BOOK_NONE && known && (s->size == 1 || s->single_node))
        return false;
    if (node == BOOK_NONE) {
        n = place_scan(p, s, &total);
        p->room = total;
        if (total < s->size)
            return false;
        at = known ? BOOK_NONE : cheapest(p, n, s, s->size);
        if (at == BOOK_NONE)
            return !s->single_node && place_wide(p, n, s, shares);
        node = p->list[at].node;
    }
    put(p, s, node, shares, s->size);
    if (p->ranks)
        place_ranks_learn(p->ranks, s);
    return true;
}
