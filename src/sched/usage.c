/* Arithmetic of what is free. A share of one GPU leaves the rest of it to other such shares. */
#include "sched/usage.h"

/* The sums over a node's GPUs, anew. */
static void sum_gpus(struct usage_node *n, uint32_t gpus)
{
    n->whole = n->part = 0;
    n->free_milli = 0;
    for (uint32_t i = 0; i < gpus; i++) {
        if (n->gpu[i] <= 0)
            continue;
        n->free_milli += (uint32_t)n->gpu[i];
        if (n->gpu[i] == SHAPE_WHOLE)
            n->whole++;
        else
            n->part = MAX_OF(n->part, (uint16_t)n->gpu[i]);
    }
}

/* All of it free; the sums are not there yet. */
static void fill(struct usage_node *n, const struct book_node *from)
{
    *n = (struct usage_node){.mem = (int64_t)from->mem, .cpu_milli = from->cpu_milli};
    for (uint32_t i = 0; i < from->gpus; i++)
        n->gpu[i] = from->healthy >> i & 1 ? SHAPE_WHOLE : 0;
}

void usage_done(struct usage *u)
{
    free(TAKE_PTR(u->nodes));
}

void usage_copy(struct usage *to, const struct usage *from)
{
    size_t count = from->book->node_count;

    if (!to->nodes)
        to->nodes = xnew_array(struct usage_node, count);
    to->book = from->book;
    memcpy(to->nodes, from->nodes, count * sizeof(*to->nodes));
}

bool usage_may(const struct book *b, uint32_t node, const struct shape *s, bool later)
{
    const struct book_node *n = &b->nodes[node];

    if (!book_node_takes_work(n, later) || n->group != s->group)
        return false;
    return s->gpu_milli == 0 || (n->gpus > 0 && (s->models == 0 || (s->models & n->models)));
}

/* Containers for which the node's GPUs are enough. */
static uint32_t gpu_fits(
    const struct book_node *n, const struct usage_node *u, const struct shape *s)
{
    uint32_t count = 0;

    if (shape_is_part(s)) {
        for (uint32_t i = 0; i < n->gpus; i++)
            if (u->gpu[i] > 0 && book_gpu_suits(n, i, s))
                count += (uint32_t)u->gpu[i] / s->gpu_milli;
        return count;
    }
    if (s->models == 0 || (n->models & ~s->models) == 0)
        return u->whole / shape_gpus(s);
    for (uint32_t i = 0; i < n->gpus; i++)
        count += u->gpu[i] == SHAPE_WHOLE && book_gpu_suits(n, i, s);
    return count / shape_gpus(s);
}

uint32_t usage_node_fits(
    const struct usage_node *n, const struct book_node *of, const struct shape *s)
{
    uint64_t fits = s->size;

    if (n->cpu_milli < 0 || n->mem < 0)
        return 0;
    if (s->cpu_milli)
        fits = MIN_OF(fits, (uint64_t)n->cpu_milli / s->cpu_milli);
    if (s->mem)
        fits = MIN_OF(fits, (uint64_t)n->mem / s->mem);
    if (fits && s->gpu_milli)
        fits = MIN_OF(fits, gpu_fits(of, n, s));
    return (uint32_t)fits;
}

uint32_t usage_fits(const struct usage *u, uint32_t node, const struct shape *s)
{
    return usage_node_fits(&u->nodes[node], &u->book->nodes[node], s);
}

/* The fullest GPU that has room for a part: what is whole stays whole. */
static uint64_t part_gpu(
    const struct book_node *n, const struct usage_node *u, const struct shape *s)
{
    uint32_t best = SHAPE_GPUS_MAX;

    for (uint32_t i = 0; i < n->gpus; i++)
        if (book_gpu_suits(n, i, s) && u->gpu[i] >= (int32_t)s->gpu_milli &&
            (best == SHAPE_GPUS_MAX || u->gpu[i] < u->gpu[best]))
            best = i;
    assert(best < SHAPE_GPUS_MAX);
    return UINT64_C(1) << best;
}

uint64_t usage_gpus(const struct usage *u, uint32_t node, const struct shape *s)
{
    const struct book_node *n = &u->book->nodes[node];
    uint32_t want = shape_gpus(s);
    uint64_t bits = 0;

    if (shape_is_part(s))
        return part_gpu(n, &u->nodes[node], s);
    for (uint32_t i = 0; i < n->gpus && want > 0; i++)
        if (u->nodes[node].gpu[i] == SHAPE_WHOLE && book_gpu_suits(n, i, s)) {
            bits |= UINT64_C(1) << i;
            want--;
        }
    assert(want == 0);
    return bits;
}

/* The sums are not up to date after that. */
static void add_parts(struct usage_node *n, const struct book_node *of, const struct shape *s,
    const struct book_share *share, int sign)
{
    n->cpu_milli += sign * (int64_t)s->cpu_milli;
    n->mem += sign * (int64_t)s->mem;
    for (uint64_t bits = share->gpus & of->healthy; bits; bits &= bits - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(bits);

        n->gpu[i] = (int16_t)(n->gpu[i] + sign * share->milli);
    }
}

void usage_node_add(struct usage_node *n, const struct book_node *of, const struct shape *s,
    const struct book_share *share, int sign)
{
    add_parts(n, of, s, share, sign);
    if (share->gpus)
        sum_gpus(n, of->gpus);
}

static void take_job(struct usage *u, const struct book_job *j)
{
    const struct book *b = u->book;
    const struct shape *s = &b->shapes[j->shape];

    for (uint32_t k = 0; k < s->size; k++) {
        const struct book_share *share = &j->shares[k];

        if (share->node != BOOK_NONE)
            add_parts(&u->nodes[share->node], &b->nodes[share->node], s, share, -1);
    }
}

void usage_init(struct usage *u, const struct book *b)
{
    u->book = b;
    u->nodes = xnew_array(struct usage_node, b->node_count);
    for (uint32_t i = 0; i < b->node_count; i++)
        fill(&u->nodes[i], &b->nodes[i]);
    book_for_each_job(i, b) if (b->jobs[i].state == JOB_RUNS) take_job(u, &b->jobs[i]);
    for (uint32_t i = 0; i < b->node_count; i++)
        sum_gpus(&u->nodes[i], b->nodes[i].gpus);
}

void usage_node_min(
    struct usage_node *n, const struct usage_node *other, const struct book_node *of)
{
    n->cpu_milli = MIN_OF(n->cpu_milli, other->cpu_milli);
    n->mem = MIN_OF(n->mem, other->mem);
    for (uint32_t i = 0; i < of->gpus; i++)
        n->gpu[i] = MIN_OF(n->gpu[i], other->gpu[i]);
    sum_gpus(n, of->gpus);
}

static void add(struct usage *u, const struct shape *s, const struct book_share *share, int sign)
{
    if (share->node != BOOK_NONE)
        usage_node_add(&u->nodes[share->node], &u->book->nodes[share->node], s, share, sign);
}

void usage_take(struct usage *u, const struct shape *s, const struct book_share *share)
{
    add(u, s, share, -1);
}

void usage_give(struct usage *u, const struct shape *s, const struct book_share *share)
{
    add(u, s, share, 1);
}
