/*
 * What holds over time, on random clusters and workloads: nothing is given twice, gangs are whole,
 * everybody's turn comes, and who was planned for a time starts by then. MUSTER_SEED repeats a run,
 * MUSTER_ROUNDS makes it longer.
 */
#include "sched/pass.h"
#include "support/cm.h"
#include "support/prng.h"

#define NODES_MAX 8
#define JOBS_MAX 60
#define SECOND UINT64_C(1000000)

struct job {
    uint64_t submit, duration, promised, start, end;
    uint32_t handle;
    enum { NOT_YET, WAITS, RUNS, OVER } state;
    struct book_job job;
};

struct world {
    struct book book;
    struct job jobs[JOBS_MAX];
    size_t count;
    uint64_t now;
};

static void make_nodes(struct prng *p, struct book *b)
{
    uint32_t count = prng_range(p, 1, NODES_MAX);
    uint8_t models[2];

    book_model(b, "a100", &models[0]);
    book_model(b, "h100", &models[1]);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        struct book_node n = {.name = name,
            .cpu_milli = prng_range(p, 4, 32) * 1000,
            .gpus = prng_below(p, 9),
            .mem = prng_range(p, 4, 64),
            .healthy = prng_chance(p, 80) ? UINT64_MAX : prng_next(p),
            .leaf = (uint16_t)prng_below(p, 3),
            .spine = (uint16_t)prng_below(p, 2),
            .closed = prng_chance(p, 5)};

        snprintf(name, sizeof(name), "n%u", i);
        memset(n.model, models[prng_below(p, 2)], sizeof(n.model));
        book_node_put(b, &n);
    }
}

static struct shape make_shape(struct prng *p)
{
    static const uint32_t gpus[] = {0, 0, 250, 500, 1000, 1000, 2000, 4000, 8000};

    return (struct shape){.mem = prng_below(p, 4),
        .cpu_milli = prng_range(p, 1, 8) * 500,
        .gpu_milli = gpus[prng_below(p, ARRAY_LEN(gpus))],
        .models = prng_chance(p, 20) ? prng_range(p, 1, 3) : 0,
        .size = prng_chance(p, 60) ? 1 : prng_range(p, 2, 12),
        .single_node = prng_chance(p, 20)};
}

/* exact: jobs run for their whole limit. */
static void make_jobs(struct prng *p, struct world *w, bool exact)
{
    uint64_t at = 0;

    w->count = prng_range(p, 5, JOBS_MAX);
    for (size_t i = 0; i < w->count; i++) {
        struct shape s = make_shape(p);
        struct job *j = &w->jobs[i];
        uint64_t limit = prng_range(p, 1, 100) * SECOND;

        at += prng_below(p, 20) * SECOND;
        *j = (struct job){.submit = at,
            .duration = exact ? limit : limit * prng_range(p, 1, 10) / 10,
            .promised = BOOK_FOREVER};
        j->job = (struct book_job){
            .num = i + 1, .shape = book_shape(&w->book, &s), .submitted = at, .limit = limit};
    }
}

/* Would it run if it were alone? */
static bool could_ever(const struct world *w, const struct job *j)
{
    const struct shape *s = &w->book.shapes[j->job.shape];
    struct book_share shares[JOBS_MAX];
    struct place p;
    bool fits;

    place_init(&p, &w->book);
    fits = place_job(&p, s, shares);
    place_done(&p);
    return fits;
}

static void check_usage(const struct world *w)
{
    struct usage u;

    usage_init(&u, &w->book);
    for (uint32_t i = 0; i < w->book.node_count; i++) {
        assert_true(u.nodes[i].cpu_milli >= 0 && u.nodes[i].mem >= 0);
        for (uint32_t g = 0; g < w->book.nodes[i].gpus; g++)
            assert_true(u.nodes[i].gpu[g] >= 0);
    }
    usage_done(&u);
}

static void check_shares(const struct world *w, const struct book_job *j)
{
    const struct shape *s = &w->book.shapes[j->shape];

    for (uint32_t i = 0; i < s->size; i++) {
        const struct book_share *share = &j->shares[i];
        const struct book_node *n = &w->book.nodes[share->node];

        assert_false(n->closed);
        assert_int_equal(share->gpus & ~n->healthy, 0);
        assert_int_equal(__builtin_popcountll(share->gpus),
            s->gpu_milli >= SHAPE_WHOLE ? s->gpu_milli / SHAPE_WHOLE : s->gpu_milli > 0);
        if (s->single_node)
            assert_int_equal(share->node, j->shares[0].node);
        for (uint64_t bits = share->gpus; s->models && bits; bits &= bits - 1)
            assert_true(s->models >> n->model[__builtin_ctzll(bits)] & 1);
    }
}

static struct job *job_of(struct world *w, uint32_t handle)
{
    for (size_t i = 0; i < w->count; i++)
        if ((w->jobs[i].state == WAITS || w->jobs[i].state == RUNS) && w->jobs[i].handle == handle)
            return &w->jobs[i];
    return NULL;
}

/* promise: a planned start is never later than it was planned before. */
static void run_pass(struct world *w, const struct pass_options *o, bool promise)
{
    struct pass_result r;

    pass_run(&w->book, o, w->now, &r);
    for (uint32_t i = 0; i < r.count; i++) {
        struct job *j = job_of(w, r.list[i].job);

        assert_non_null(j);
        if (promise && r.list[i].start)
            assert_true(r.list[i].start <= j->promised);
        if (r.list[i].start)
            j->promised = MIN_OF(j->promised, r.list[i].start);
        if (r.list[i].verdict == VERDICT_START) {
            check_shares(w, &w->book.jobs[j->handle]);
            j->state = RUNS;
            j->start = w->now;
            j->end = w->now + j->duration;
        } else if (promise) {
            assert_true(j->promised >= w->now);
        }
    }
    pass_result_done(&r);
    check_usage(w);
}

static uint64_t next_event(const struct world *w)
{
    uint64_t at = BOOK_FOREVER;

    for (size_t i = 0; i < w->count; i++) {
        if (w->jobs[i].state == NOT_YET)
            at = MIN_OF(at, w->jobs[i].submit);
        if (w->jobs[i].state == RUNS)
            at = MIN_OF(at, w->jobs[i].end);
    }
    return at;
}

static void replay(struct world *w, const struct pass_options *o, bool promise)
{
    while ((w->now = next_event(w)) != BOOK_FOREVER) {
        for (size_t i = 0; i < w->count; i++) {
            struct job *j = &w->jobs[i];

            if (j->state == RUNS && j->end <= w->now) {
                book_job_remove(&w->book, j->handle);
                j->state = OVER;
            } else if (j->state == NOT_YET && j->submit <= w->now) {
                j->handle = book_job_add(&w->book, &j->job);
                j->state = WAITS;
            }
        }
        run_pass(w, o, promise);
    }
}

static uint32_t rounds(uint32_t dflt)
{
    const char *text = getenv("MUSTER_ROUNDS");

    return text ? (uint32_t)strtoul(text, NULL, 10) : dflt;
}

static void check_rounds(const char *name, const struct pass_options *o, bool exact, bool promise)
{
    struct prng p = {prng_seed(name)};

    for (uint32_t i = 0; i < rounds(150); i++) {
        struct world w = {0};
        bool fits[JOBS_MAX];

        book_init(&w.book);
        make_nodes(&p, &w.book);
        make_jobs(&p, &w, exact);
        for (size_t k = 0; k < w.count; k++)
            fits[k] = could_ever(&w, &w.jobs[k]);
        replay(&w, o, promise);
        for (size_t k = 0; k < w.count; k++) /* who could ever run has run */
            assert_int_equal(w.jobs[k].state, fits[k] ? OVER : WAITS);
        book_done(&w.book);
    }
}

static void every_turn_comes_by_priority(void **state)
{
    check_rounds("priority", &pass_default, false, false);
}

static void every_turn_comes_without_reservations(void **state)
{
    static const struct pass_options o = {.order = {.work = 1000, .expansion = 1000}};

    check_rounds("no reservations", &o, false, false);
}

/* In the order of submission, with times that hold: nothing that comes later delays a plan. */
static void a_planned_start_is_kept(void **state)
{
    static const struct pass_options one = {.reservations = 1}, many = {.reservations = 16};

    check_rounds("one reservation", &one, true, true);
    check_rounds("many reservations", &many, true, true);
}

/* Jobs that end early can only help the first in the queue. */
static void an_early_end_never_delays_the_first(void **state)
{
    static const struct pass_options one = {.reservations = 1};

    check_rounds("early ends", &one, false, true);
}

/* --- nodes that close ------------------------------------------------------------------------ */

static void check_closing(const struct world *w, const struct book_job *j)
{
    uint64_t end = j->limit == BOOK_FOREVER ? BOOK_FOREVER : j->started + j->limit;

    for (uint32_t i = 0; i < book_shape_of(&w->book, j)->size; i++) {
        const struct book_node *n = &w->book.nodes[j->shares[i].node];

        if (n->close_to > n->close_from)
            assert_true(end <= n->close_from || j->started >= n->close_to);
    }
}

/* Planned or started: for its whole time no node of it is closed. */
static void nothing_runs_into_a_drain(void **state)
{
    struct prng p = {prng_seed("closing")};
    size_t on_closing = 0;

    for (uint32_t i = 0; i < rounds(150); i++) {
        struct world w = {0};
        uint64_t now;

        book_init(&w.book);
        make_nodes(&p, &w.book);
        make_jobs(&p, &w, false);
        for (uint32_t n = 0; n < w.book.node_count; n++) {
            if (prng_chance(&p, 40))
                continue;
            w.book.nodes[n].close_from = prng_range(&p, 1, 600) * SECOND;
            w.book.nodes[n].close_to = prng_chance(&p, 50)
                ? BOOK_FOREVER
                : w.book.nodes[n].close_from + prng_range(&p, 1, 300) * SECOND;
        }
        while ((now = w.now = next_event(&w)) != BOOK_FOREVER) {
            for (size_t k = 0; k < w.count; k++) {
                struct job *j = &w.jobs[k];

                if (j->state == RUNS && j->end <= now) {
                    book_job_remove(&w.book, j->handle);
                    j->state = OVER;
                } else if (j->state == NOT_YET && j->submit <= now) {
                    j->handle = book_job_add(&w.book, &j->job);
                    j->state = WAITS;
                }
            }
            run_pass(&w, &pass_default, false);
            book_for_each_job(h, &w.book) if (w.book.jobs[h].shares)
            {
                check_closing(&w, &w.book.jobs[h]);
                on_closing++;
            }
        }
        book_done(&w.book);
    }
    assert_true(on_closing > 1000);
}

/* --- more work than the cluster can do ------------------------------------------------------- */

#define MINUTE (60 * SECOND)
#define FLOOD_HOURS 12

/* Two small jobs a minute, where one a minute fills all 32 GPUs; a wide one waits from the start.
 * When it starts, BOOK_FOREVER for not at all. */
static uint64_t start_in_flood(const struct pass_options *o)
{
    struct shape wide = {.gpu_milli = 8000, .size = 4}, small = {.gpu_milli = 1000, .size = 1};
    struct book_job job = {.num = 1, .limit = 60 * MINUTE};
    uint64_t ends[FLOOD_HOURS * 60 * 2 + 2] = {0}, start = BOOK_FOREVER;
    struct book b;
    uint32_t first;

    book_init(&b);
    for (uint32_t i = 0; i < 4; i++) {
        char name[] = {'n', (char)('0' + i), '\0'};

        book_node_put(&b, &(struct book_node){.name = name, .gpus = 8, .healthy = UINT64_MAX});
    }
    job.shape = book_shape(&b, &wide);
    first = book_job_add(&b, &job);
    job.shape = book_shape(&b, &small);
    job.limit = 32 * MINUTE;
    for (uint64_t now = 0; now < FLOOD_HOURS * 60 * MINUTE && start == BOOK_FOREVER;
         now += MINUTE) {
        struct pass_result r;

        for (uint32_t h = 0; h < b.job_count; h++)
            if (b.jobs[h].state == JOB_RUNS && ends[h] <= now)
                book_job_remove(&b, h);
        job.submitted = now;
        for (uint32_t i = 0; i < 2; i++, job.num++)
            book_job_add(&b, &job);
        pass_run(&b, o, now, &r);
        for (uint32_t i = 0; i < r.count; i++)
            if (r.list[i].verdict == VERDICT_START)
                ends[r.list[i].job] = now + b.jobs[r.list[i].job].limit;
        if (b.jobs[first].state == JOB_RUNS)
            start = now;
        pass_result_done(&r);
    }
    book_done(&b);
    return start;
}

static void who_waits_longest_has_a_turn(void **state)
{
    struct pass_options o = pass_default;
    uint64_t start;

    o.patience_usec = 120 * MINUTE;
    start = start_in_flood(&o);
    /* After its patience the nodes run empty, which takes as long as a small job may run. */
    assert_true(start >= o.patience_usec && start <= o.patience_usec + 33 * MINUTE);
    o.patience_usec = 0; /* without turns it would wait until the flood ends */
    assert_true(start_in_flood(&o) == BOOK_FOREVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_turn_comes_by_priority),
        cmocka_unit_test(every_turn_comes_without_reservations),
        cmocka_unit_test(a_planned_start_is_kept),
        cmocka_unit_test(an_early_end_never_delays_the_first),
        cmocka_unit_test(nothing_runs_into_a_drain),
        cmocka_unit_test(who_waits_longest_has_a_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
