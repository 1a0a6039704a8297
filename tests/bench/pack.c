/*
 * How much of a cluster's GPUs can be given away: requests come one after the other, each is placed
 * or fails, nothing leaves, until those that came ask for 130 % of the GPUs. The same requests go
 * to the scheduler, which sees each as a waiting job in its book and is not told what will come; to
 * best fit; and to a random choice.
 *
 * Usage: bench_pack NODES.csv REQUESTS.csv SEED; prints a line of JSON, in percent of all GPUs.
 */
#include "base/str.h"
#include "openb.h"
#include "sched/place.h"

#define DEMAND 1.3

struct trial {
    struct book book;
    struct usage usage; /* of the others; ours adds up the book's */
    struct prng random;
    uint32_t most_cpu, most_gpu; /* of a node: units of best fit */
};

typedef bool place_fn(struct trial *t, const struct shape *s, struct book_share *share);

/* As in a pass with this one job. It stays in the book, as one that runs or one that waits. */
static bool place_ours(struct trial *t, const struct shape *s, struct book_share *share)
{
    uint32_t h = book_job_add(&t->book,
        &(struct book_job){.num = t->book.job_count + 1, .shape = book_shape(&t->book, s)});
    struct place p;
    bool placed;

    place_init(&p, &t->book);
    placed = place_job(&p, s, share);
    place_done(&p);
    if (placed)
        book_job_start(&t->book, h, share, 0);
    return placed;
}

static bool has_room(const struct trial *t, uint32_t node, const struct shape *s)
{
    return usage_may(&t->book, node, s, false) && usage_fits(&t->usage, node, s) > 0;
}

static void take(struct trial *t, const struct shape *s, struct book_share *share)
{
    share->milli = shape_is_part(s) ? (uint16_t)s->gpu_milli : SHAPE_WHOLE;
    usage_take(&t->usage, s, share);
}

/* What a node would have left, each in parts of the most that a node has. */
static double left_after(const struct trial *t, uint32_t node, const struct shape *s)
{
    const struct usage_node *n = &t->usage.nodes[node];

    return (double)(n->cpu_milli - s->cpu_milli) / t->most_cpu +
        ((double)n->free_milli - s->gpu_milli) / t->most_gpu;
}

/* The node with the least left; there, the fullest GPU that has room. */
static bool place_best_fit(struct trial *t, const struct shape *s, struct book_share *share)
{
    uint32_t best = BOOK_NONE;

    for (uint32_t i = 0; i < t->book.node_count; i++)
        if (has_room(t, i, s) &&
            (best == BOOK_NONE || left_after(t, i, s) < left_after(t, best, s)))
            best = i;
    if (best == BOOK_NONE)
        return false;
    *share = (struct book_share){
        .node = best, .gpus = s->gpu_milli ? usage_gpus(&t->usage, best, s) : 0};
    take(t, s, share);
    return true;
}

/* Any GPU that has room for a part. */
static uint64_t random_gpu(struct trial *t, uint32_t node, const struct shape *s)
{
    const struct book_node *of = &t->book.nodes[node];
    uint32_t seen = 0, chosen = 0;

    for (uint32_t i = 0; i < of->gpus; i++)
        if (t->usage.nodes[node].gpu[i] >= (int32_t)s->gpu_milli &&
            prng_below(&t->random, ++seen) == 0)
            chosen = i;
    return UINT64_C(1) << chosen;
}

static bool place_random(struct trial *t, const struct shape *s, struct book_share *share)
{
    uint32_t seen = 0, chosen = BOOK_NONE;

    for (uint32_t i = 0; i < t->book.node_count; i++)
        if (has_room(t, i, s) && prng_below(&t->random, ++seen) == 0)
            chosen = i;
    if (chosen == BOOK_NONE)
        return false;
    *share = (struct book_share){.node = chosen};
    if (shape_is_part(s))
        share->gpus = random_gpu(t, chosen, s);
    else if (s->gpu_milli)
        share->gpus = usage_gpus(&t->usage, chosen, s);
    take(t, s, share);
    return true;
}

static uint64_t measure_nodes(struct trial *t)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < t->book.node_count; i++) {
        const struct book_node *n = &t->book.nodes[i];

        t->most_cpu = MAX_OF(t->most_cpu, n->cpu_milli);
        t->most_gpu = MAX_OF(t->most_gpu, n->gpus * SHAPE_WHOLE);
        all += (uint64_t)n->gpus * SHAPE_WHOLE;
    }
    return all;
}

/* Percent of the GPUs given away. seed decides what comes; every policy gets the same. */
static double run(struct trial *t, const struct requests *r, uint64_t seed, place_fn *place)
{
    uint64_t all = measure_nodes(t), asked = 0, given = 0;
    struct prng draw = {seed};

    usage_init(&t->usage, &t->book);
    t->random = (struct prng){~seed};
    for (size_t i = 0; (double)asked < DEMAND * (double)all; i++) {
        const struct shape *s = &r->list[i < r->count ? i : prng_below(&draw, (uint32_t)r->count)];
        struct book_share share;

        asked += s->gpu_milli;
        if (place(t, s, &share))
            given += s->gpu_milli;
    }
    usage_done(&t->usage);
    return 100 * (double)given / (double)all;
}

static int run_policy(char **argv, uint64_t seed, place_fn *place, double *ret, struct err *err)
{
    _cleanup_(requests_done) struct requests requests = {0};
    struct trial t = {0};
    int r;

    book_init(&t.book);
    r = openb_nodes(&t.book, argv[1], err);
    if (r == 0)
        r = openb_requests(&t.book, argv[2], &requests, err);
    if (r == 0) {
        requests_shuffle(&requests, &(struct prng){seed * 1000003});
        *ret = run(&t, &requests, seed, place);
    }
    book_done(&t.book);
    return r;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        place_fn *place;
    } policies[] = {{"ours", place_ours}, {"best_fit", place_best_fit}, {"random", place_random}};
    struct err err = ERR_INIT;
    uint64_t seed;

    if (argc != 4 || str_to_u64(argv[3], UINT32_MAX, &seed) < 0) {
        fprintf(stderr, "usage: bench_pack NODES.csv REQUESTS.csv SEED\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        double percent = 0;

        if (run_policy(argv, seed, policies[i].place, &percent, &err) < 0) {
            fprintf(stderr, "bench_pack: %s\n", err_text(&err));
            return 1;
        }
        printf("%s\"%s\": %.4f", i ? ", " : "{", policies[i].name, percent);
    }
    puts("}");
    return 0;
}
