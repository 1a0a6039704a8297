/* The measure of fragmentation, and the mix of work that it is taken over. */
#include "sched/frag.h"

struct counted {
    uint32_t shape;
    uint64_t jobs;
};

static int by_jobs(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;

    if (x->jobs != y->jobs)
        return x->jobs > y->jobs ? -1 : 1;
    return x->shape < y->shape ? -1 : x->shape > y->shape;
}

static bool is_same_kind(const struct frag_kind *k, const struct shape *s)
{
    return k->mem == s->mem && k->cpu_milli == s->cpu_milli && k->gpu_milli == s->gpu_milli &&
        k->models == s->models;
}

static void add_kind(struct frag_mix *mix, const struct shape *s, uint64_t jobs)
{
    uint32_t weight = (uint32_t)MIN_OF(jobs * s->size, UINT32_MAX / FRAG_KINDS_MAX);

    mix->weight += weight;
    if (s->gpu_milli == 0)
        return;
    for (uint32_t i = 0; i < mix->count; i++)
        if (is_same_kind(&mix->kinds[i], s)) {
            mix->kinds[i].weight += weight;
            return;
        }
    if (mix->count == FRAG_KINDS_MAX) {
        mix->weight -= weight;
        return;
    }
    mix->kinds[mix->count++] = (struct frag_kind){.mem = s->mem,
        .cpu_milli = s->cpu_milli,
        .gpu_milli = s->gpu_milli,
        .models = s->models,
        .weight = weight};
}

/* Demand for exactly one model against what there is of it. */
static void fill_scarcity(struct frag_mix *mix, const struct book *b)
{
    uint64_t have[BOOK_MODELS_MAX] = {0}, want[BOOK_MODELS_MAX] = {0};

    for (uint32_t i = 0; i < b->node_count; i++)
        for (uint32_t g = 0; g < b->nodes[i].gpus; g++)
            have[b->nodes[i].model[g]]++;
    for (uint32_t i = 0; i < b->shape_count; i++) {
        const struct shape *s = &b->shapes[i];

        if (b->shape_jobs[i] && s->models && (s->models & (s->models - 1)) == 0)
            want[__builtin_ctz(s->models)] += (uint64_t)s->gpu_milli * s->size * b->shape_jobs[i];
    }
    for (uint32_t m = 0; m < b->model_count; m++)
        mix->scarcity[m] = have[m] ? (uint32_t)MIN_OF(want[m] / 10 / have[m], UINT64_C(1000000))
                                   : 0;
}

void frag_mix_init(struct frag_mix *mix, const struct book *b)
{
    _cleanup_free_ struct counted *list = xnew_array(struct counted, b->shape_count);
    uint32_t n = 0;

    *mix = (struct frag_mix){0};
    for (uint32_t i = 0; i < b->shape_count; i++)
        if (b->shape_jobs[i])
            list[n++] = (struct counted){i, b->shape_jobs[i]};
    qsort(list, n, sizeof(*list), by_jobs);
    for (uint32_t i = 0; i < n; i++)
        add_kind(mix, &b->shapes[list[i].shape], list[i].jobs);
    fill_scarcity(mix, b);
}

/* What is free of GPUs that are taken in part. */
struct parts {
    uint32_t milli[SHAPE_GPUS_MAX], count;
};

static void find_parts(const struct book_node *of, const struct usage_node *n, struct parts *ret)
{
    ret->count = 0;
    for (uint32_t i = 0; n->part > 0 && i < of->gpus; i++)
        if (n->gpu[i] > 0 && n->gpu[i] < SHAPE_WHOLE)
            ret->milli[ret->count++] = (uint32_t)n->gpu[i];
}

/* Milli-GPUs free on the node that a container of this kind cannot use. */
static uint32_t unusable(const struct frag_kind *k, const struct book_node *of,
    const struct usage_node *n, const struct parts *parts)
{
    uint32_t lost = 0;

    if (n->cpu_milli < k->cpu_milli || n->mem < (int64_t)k->mem ||
        (k->models && !(k->models & of->models)))
        return n->free_milli;
    if (k->gpu_milli >= SHAPE_WHOLE)
        return n->whole < k->gpu_milli / SHAPE_WHOLE ? n->free_milli
                                                     : n->free_milli - n->whole * SHAPE_WHOLE;
    for (uint32_t i = 0; i < parts->count; i++)
        if (parts->milli[i] < k->gpu_milli)
            lost += parts->milli[i];
    return lost;
}

uint64_t frag_of(const struct frag_mix *mix, const struct usage *u, uint32_t node)
{
    const struct book_node *of = &u->book->nodes[node];
    const struct usage_node *n = &u->nodes[node];
    uint64_t sum = 0, with_gpus = 0;
    struct parts parts;

    if (n->free_milli == 0 || mix->weight == 0)
        return 0;
    find_parts(of, n, &parts);
    for (uint32_t i = 0; i < mix->count; i++) {
        sum += (uint64_t)mix->kinds[i].weight * unusable(&mix->kinds[i], of, n, &parts);
        with_gpus += mix->kinds[i].weight;
    }
    /* Work without GPUs can use none of them. */
    sum += (mix->weight - with_gpus) * n->free_milli;
    return sum / mix->weight;
}

static int64_t growth(const struct frag_mix *mix, struct usage *u, const struct shape *s,
    const struct book_share *share)
{
    struct usage_node saved = u->nodes[share->node];
    int64_t before = (int64_t)frag_of(mix, u, share->node), after;

    usage_take(u, s, share);
    after = (int64_t)frag_of(mix, u, share->node);
    u->nodes[share->node] = saved;
    return after - before;
}

static int64_t in_steps(int64_t n)
{
    return n >= 0 ? (n + FRAG_STEP / 2) / FRAG_STEP : -((-n + FRAG_STEP / 2) / FRAG_STEP);
}

/* Every GPU that a part would fit on, those equally free once. */
static int64_t part_cost(const struct frag_mix *mix, struct usage *u, uint32_t node,
    const struct shape *s, uint64_t *ret_gpus)
{
    const struct book_node *of = &u->book->nodes[node];
    const int16_t *gpu = u->nodes[node].gpu;
    int64_t best = INT64_MAX;

    for (uint32_t i = 0; i < of->gpus; i++) {
        struct book_share share = {
            .node = node, .milli = (uint16_t)s->gpu_milli, .gpus = UINT64_C(1) << i};
        bool seen = false;
        int64_t cost;

        if (gpu[i] < (int32_t)s->gpu_milli || !book_gpu_suits(of, i, s))
            continue;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = gpu[k] == gpu[i] && of->model[k] == of->model[i];
        if (seen)
            continue;
        cost = in_steps(growth(mix, u, s, &share));
        if (cost < best) {
            best = cost;
            *ret_gpus = share.gpus;
        }
    }
    return best;
}

int64_t frag_cost(const struct frag_mix *mix, struct usage *u, uint32_t node, const struct shape *s,
    uint64_t *ret_gpus)
{
    struct book_share share = {.node = node, .milli = SHAPE_WHOLE};

    if (shape_is_part(s))
        return part_cost(mix, u, node, s, ret_gpus);
    share.gpus = *ret_gpus = usage_gpus(u, node, s);
    return in_steps(growth(mix, u, s, &share));
}
