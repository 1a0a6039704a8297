/*
 * How long a pass takes: a cluster of 8-GPU nodes, most of it in use, and a queue before it. The
 * scheduler is told of nodes and sessions as the manager tells it, and asked to decide; caches are
 * cold. The peer is a plain queue in order of submission, each job on the first nodes with room,
 * over the same book.
 *
 * Requests are drawn from a list of openb (openb.h), or made up. Of those with whole GPUs, one in
 * 20 becomes a gang of 2 to 8 containers; of those with GPUs, one in 10 wants a model by name.
 * Nodes have 128 CPUs and 1 TiB, a third of them h100, the others a100, 32 to a leaf and 16 leaves
 * to a spine. Sessions are of 40 users, have waited up to 3 days, and run for a minute to a week;
 * of those that wait, one in 100 is held and one in 100 is for later.
 *
 * Usage: bench_passes NODES PENDING REPEATS [REQUESTS.csv]; prints a line of JSON.
 */
#include <malloc.h>

#include "base/str.h"
#include "openb.h"
#include "sched/sched.h"

#define GPUS 8
#define CPU_MILLI 128000
#define MEM (UINT64_C(1) << 40)
#define OWNERS 40
#define SECOND UINT64_C(1000000)
#define DAY (86400 * SECOND)
#define NOW (365 * DAY)
#define GANG_MAX 8
#define MISSES_MAX 300 /* requests without room in a row after which the cluster is full */
#define MIX_EVERY 1000 /* while it is filled, fragmentation is measured over what ran then */
#define COLD_BYTES ((size_t)256 << 20)
#define REPEATS_MAX 100
#define ENDS 1000 /* of so many that run, one ends before a pass */

struct world {
    struct sched sched;
    struct requests requests;
    struct prng random;
    struct session session; /* said anew for each */
    uint32_t containers;
    /* To go back to: */
    struct book book;
    struct sched_note *notes;
};

struct times { /* ms */
    double wall[REPEATS_MAX], cpu[REPEATS_MAX];
    uint32_t count;
};

/* --- measuring ---------------------------------------------------------------------------- */

static double ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The thread's time says what a pass costs where other programs run, too. */
static void begin(struct times *t)
{
    t->wall[t->count] = -ms_of(CLOCK_MONOTONIC);
    t->cpu[t->count] = -ms_of(CLOCK_THREAD_CPUTIME_ID);
}

static void finish(struct times *t)
{
    t->cpu[t->count] += ms_of(CLOCK_THREAD_CPUTIME_ID);
    t->wall[t->count++] += ms_of(CLOCK_MONOTONIC);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* Nothing of the book is in a cache of the processor. */
static void make_cold(void)
{
    static unsigned char bytes[COLD_BYTES];

    for (size_t i = 0; i < COLD_BYTES; i += 64)
        ((volatile unsigned char *)bytes)[i]++;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print_times(const char *name, struct times *t)
{
    qsort(t->wall, t->count, sizeof(*t->wall), by_value);
    qsort(t->cpu, t->count, sizeof(*t->cpu), by_value);
    printf("\"%s\": {\"wall\": %.3f, \"wall_least\": %.3f, \"cpu\": %.3f, \"cpu_most\": %.3f}, ",
        name, t->wall[t->count / 2], t->wall[0], t->cpu[t->count / 2], t->cpu[t->count - 1]);
}

/* --- a cluster in use --------------------------------------------------------------------- */

static void add_nodes(struct world *w, uint32_t count)
{
    struct gpu gpus[GPUS] = {0};
    struct node n = {.group = "default",
        .state = NODE_UP,
        .capacity = {.cpu_milli = CPU_MILLI, .gpus = GPUS, .mem = MEM},
        .gpus = gpus};

    for (uint32_t i = 0; i < count; i++) {
        snprintf(n.name, sizeof(n.name), "n%06u", i);
        for (uint32_t g = 0; g < GPUS; g++) {
            gpus[g] = (struct gpu){.index = g, .healthy = true};
            STR_SET(gpus[g].model, i % 3 ? "a100" : "h100");
        }
        sched_node_put(&w->sched, &n, NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        w->sched.book.nodes[i].leaf = (uint16_t)(1 + i / 32);
        w->sched.book.nodes[i].spine = (uint16_t)(1 + i / 512);
    }
}

/* A session like those of the list. Parts of GPUs, which sessions cannot ask for, are put into the
 * book in its place (add_session). */
static struct shape draw(struct world *w)
{
    static const char *const wishes[] = {"a100", "h100", "a100|h100"};
    struct session *s = &w->session;
    struct shape shape = w->requests.list[prng_below(&w->random, (uint32_t)w->requests.count)];
    uint32_t gpus = shape_is_part(&shape) ? 1 : shape_gpus(&shape);

    s->each = (struct resources){
        .cpu_milli = MAX_OF(shape.cpu_milli, 100u), .gpus = gpus, .mem = shape.mem};
    s->size = shape_gpus(&shape) && prng_chance(&w->random, 5) ? prng_range(&w->random, 2, GANG_MAX)
                                                               : 1;
    s->mode = s->size > 1 ? MODE_MULTI_NODE : MODE_SINGLE_NODE;
    STR_SET(s->gpu_model,
        gpus && prng_chance(&w->random, 10) ? wishes[prng_below(&w->random, ARRAY_LEN(wishes))]
                                            : "");
    snprintf(s->owner, sizeof(s->owner), "user%02u", prng_below(&w->random, OWNERS));
    s->time_limit_usec = prng_range(&w->random, 60, 7 * 86400) * SECOND;
    s->submitted_usec = NOW - prng_range(&w->random, 0, 3 * 86400) * SECOND;
    return shape;
}

/* What was drawn, as one that waits; its handle. */
static uint32_t add_session(struct world *w, const struct shape *drawn)
{
    struct session *s = &w->session;
    struct book *b = &w->sched.book;
    struct book_job job;
    struct shape shape;
    uint32_t h;

    s->num++;
    snprintf(s->id, sizeof(s->id), "%08x-0000-4000-8000-%012x", (unsigned)prng_next(&w->random),
        (unsigned)s->num);
    sched_session_put(&w->sched, s, NOW);
    h = sched_job(&w->sched, s->id);
    if (!shape_is_part(drawn))
        return h;
    job = b->jobs[h];
    shape = *book_shape_of(b, &job);
    shape.gpu_milli = drawn->gpu_milli;
    job.shape = book_shape(b, &shape);
    book_job_change(b, h, &job);
    return h;
}

/* As many containers as there are GPUs, or as have room. */
static void fill(struct world *w)
{
    struct book *b = &w->sched.book;
    uint32_t most = b->node_count * GPUS, misses = 0, since = 0;
    struct book_share shares[GANG_MAX];
    struct place p;

    place_init(&p, b);
    while (w->containers < most && misses < MISSES_MAX) {
        struct shape drawn = draw(w);
        uint32_t h = add_session(w, &drawn);
        const struct shape *s = book_shape_of(b, &b->jobs[h]);
        uint32_t may = (uint32_t)(w->session.time_limit_usec / SECOND);

        if (++since % MIX_EVERY == 0) {
            place_done(&p);
            place_init(&p, b);
        }
        if (w->containers + s->size > most || !place_job(&p, s, shares)) {
            sched_session_remove(&w->sched, w->session.id);
            misses++;
            continue;
        }
        misses = 0;
        w->containers += s->size;
        book_job_start(b, h, shares, NOW - prng_below(&w->random, may) * SECOND);
    }
    place_done(&p);
}

static void add_queue(struct world *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct shape drawn = draw(w);

        w->session.hold = prng_chance(&w->random, 1) ? HOLD_USER : HOLD_NONE;
        w->session.begin_usec = prng_chance(&w->random, 1) ? NOW + DAY : 0;
        add_session(w, &drawn);
    }
}

/* --- passes ------------------------------------------------------------------------------- */

static void keep(struct world *w)
{
    book_copy(&w->book, &w->sched.book);
    w->notes = xmemdup(w->sched.notes, w->sched.note_cap * sizeof(*w->notes));
}

static void go_back(struct world *w)
{
    book_done(&w->sched.book);
    book_copy(&w->sched.book, &w->book);
    memcpy(w->sched.notes, w->notes, w->sched.note_cap * sizeof(*w->notes));
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Of all that was decided: who runs or is planned where and when, and why the others wait. */
static uint64_t hash_decisions(const struct sched *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    book_for_each_job(i, &s->book)
    {
        const struct book_job *j = &s->book.jobs[i];
        const struct sched_note *n = &s->notes[i];
        const uint64_t words[] = {
            j->num, j->state, j->started, n->verdict, n->code, n->position, n->blocker, n->start};

        h = hash_bytes(h, words, sizeof(words));
        for (uint32_t k = 0; j->shares && k < s->book.shapes[j->shape].size; k++) {
            const uint64_t share[] = {j->shares[k].node, j->shares[k].milli, j->shares[k].gpus};

            h = hash_bytes(h, share, sizeof(share));
        }
    }
    return h;
}

static void run_pass(struct world *w, uint64_t now_usec, struct times *times, size_t *ret_started)
{
    struct sched_result result;

    make_cold();
    begin(times);
    sched_run(&w->sched, now_usec, &result);
    finish(times);
    *ret_started = result.started_count;
    sched_result_done(&result);
}

/* So many of those that run are over. */
static void end_some(struct world *w, uint32_t count)
{
    struct sched *s = &w->sched;

    while (count > 0 && s->book.running > 0) {
        uint32_t h = prng_below(&w->random, s->book.job_count);

        if (s->book.jobs[h].state != JOB_RUNS)
            continue;
        sched_session_remove(s, s->notes[h].id);
        count--;
    }
}

/* --- the peer ----------------------------------------------------------------------------- */

struct queued {
    uint64_t submitted, num;
    uint32_t job;
};

static int by_submission(const void *a, const void *b)
{
    const struct queued *x = a, *y = b;

    if (x->submitted != y->submitted)
        return x->submitted < y->submitted ? -1 : 1;
    return x->num < y->num ? -1 : x->num > y->num;
}

static bool first_fit(struct usage *u, const struct shape *s)
{
    struct book_share shares[GANG_MAX];
    uint32_t rank = 0;

    for (uint32_t i = 0; i < u->book->node_count && rank < s->size; i++) {
        uint32_t fits = usage_may(u->book, i, s, false) ? usage_fits(u, i, s) : 0;

        if (s->single_node && fits < s->size)
            continue;
        for (; fits > 0 && rank < s->size; fits--, rank++) {
            shares[rank] = (struct book_share){.node = i,
                .milli = shape_is_part(s) ? (uint16_t)s->gpu_milli : SHAPE_WHOLE,
                .gpus = s->gpu_milli ? usage_gpus(u, i, s) : 0};
            usage_take(u, s, &shares[rank]);
        }
    }
    if (rank == s->size)
        return true;
    while (rank-- > 0)
        usage_give(u, s, &shares[rank]);
    return false;
}

/* known: a request that found no room is not tried again. */
static void run_peer(const struct book *b, bool known, struct times *times)
{
    _cleanup_free_ struct queued *queue = xnew_array(struct queued, b->waiting);
    _cleanup_free_ bool *no_room = xnew_array(bool, b->shape_count);
    struct usage u = {0};
    uint32_t n = 0;

    make_cold();
    begin(times);
    usage_init(&u, b);
    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];

        if (j->state == JOB_WAITS && !j->held && j->begin <= NOW)
            queue[n++] = (struct queued){j->submitted, j->num, i};
    }
    qsort(queue, n, sizeof(*queue), by_submission);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t shape = b->jobs[queue[i].job].shape;

        if (!known || !no_room[shape])
            no_room[shape] = !first_fit(&u, &b->shapes[shape]);
    }
    usage_done(&u);
    finish(times);
}

/* --- all of it ---------------------------------------------------------------------------- */

static void measure_queue(struct world *w, uint32_t repeats)
{
    struct times first = {0}, same = {0}, next = {0};
    size_t started = 0;

    for (uint32_t i = 0; i < repeats; i++) {
        if (i)
            go_back(w);
        run_pass(w, NOW, &first, &started);
    }
    print_times("first", &first);
    printf(
        "\"started\": %zu, \"hash\": \"%016jx\", ", started, (uintmax_t)hash_decisions(&w->sched));
    for (uint32_t i = 0; i < repeats; i++)
        run_pass(w, NOW + i + 1, &same, &started);
    print_times("same", &same);
    for (uint32_t i = 0; i < repeats; i++) {
        end_some(w, MAX_OF(w->book.running / ENDS, 1u));
        run_pass(w, NOW + SECOND + i, &next, &started);
    }
    print_times("ends", &next);
    printf("\"started_ends\": %zu, \"hash_ends\": \"%016jx\", ", started,
        (uintmax_t)hash_decisions(&w->sched));
}

static void measure_peers(const struct book *b, uint32_t repeats)
{
    struct times known = {0}, plain = {0};

    for (uint32_t i = 0; i < repeats; i++)
        run_peer(b, true, &known);
    run_peer(b, false, &plain);
    print_times("peer_known", &known);
    print_times("peer", &plain);
}

static void measure(struct world *w, uint32_t nodes, uint32_t pending, uint32_t repeats)
{
    size_t before, queued;

    add_nodes(w, nodes);
    fill(w);
    before = heap_bytes();
    add_queue(w, pending);
    queued = heap_bytes();
    printf("{\"nodes\": %u, \"containers\": %u, \"running\": %u, \"pending\": %u, \"shapes\": %u, ",
        nodes, w->containers, w->sched.book.running, w->sched.book.waiting,
        w->sched.book.shape_count);
    keep(w);
    measure_peers(&w->book, repeats);
    measure_queue(w, repeats);
    printf("\"bytes_each\": %.1f}\n", (double)(queued - before) / pending);
}

int main(int argc, char **argv)
{
    struct world w = {.random = {1}, .session = {.kind = KIND_TRAIN, .group = "default"}};
    struct err err = ERR_INIT;
    uint64_t numbers[3]; /* nodes, pending, repeats */
    bool ok = argc == 4 || argc == 5;

    for (int i = 0; ok && i < 3; i++)
        ok = str_to_u64(argv[i + 1], i < 2 ? 10000000 : REPEATS_MAX, &numbers[i]) == 0 &&
            numbers[i] > 0;
    if (!ok) {
        fprintf(stderr, "usage: bench_passes NODES PENDING REPEATS [REQUESTS.csv]\n");
        return 2;
    }
    sched_init(&w.sched);
    if (argc == 4) {
        openb_made_up(&w.random, &w.requests);
    } else if (openb_requests(&w.sched.book, argv[4], &w.requests, &err) < 0) {
        fprintf(stderr, "bench_passes: %s\n", err_text(&err));
        return 1;
    }
    measure(&w, (uint32_t)numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2]);
    book_done(&w.book);
    free(w.notes);
    requests_done(&w.requests);
    sched_done(&w.sched);
    return 0;
}
