/* Small workloads whose outcome can be told by hand. */
#include "sim/replay.h"
#include "sim/report.h"
#include "support/cm.h"

#define SECOND UINT64_C(1000000)

struct world {
    struct book book;
    struct workload w;
    struct replay_result r;
};

static void world_init(struct world *x, uint32_t nodes, uint32_t gpus)
{
    char text[64];

    *x = (struct world){0};
    book_init(&x->book);
    snprintf(text, sizeof(text), "%ux cpus=64,gpus=%u", nodes, gpus);
    assert_works(workload_nodes(&x->book, text, &err));
}

static void add(struct world *x, uint64_t submit, uint64_t duration, uint32_t size, uint32_t gpus)
{
    struct shape s = {.size = size, .gpu_milli = gpus * SHAPE_WHOLE};
    struct workload_job *j;

    x->w.jobs = xgrow(x->w.jobs, &x->w.cap, x->w.count + 1, sizeof(*x->w.jobs));
    j = &x->w.jobs[x->w.count++];
    *j = (struct workload_job){.submit = submit * SECOND, .duration = duration * SECOND};
    j->job = (struct book_job){.num = x->w.count,
        .shape = book_shape(&x->book, &s),
        .submitted = submit * SECOND,
        .limit = duration * SECOND,
        .estimate = duration * SECOND};
}

static void run(struct world *x, const struct replay_options *o)
{
    replay_run(&x->book, &x->w, o, NULL, &x->r);
}

static void ended_at(const struct world *x, size_t job, uint64_t seconds)
{
    assert_int_equal(x->r.end[job] / SECOND, seconds);
}

static void world_done(struct world *x)
{
    replay_done(&x->r);
    workload_done(&x->w);
    book_done(&x->book);
}

/* A wide job waits for the long one; a short one fits before it, a long one would delay it. */
static void backfill_does_not_delay_the_first(void **state)
{
    struct replay_options fifo = {.pass = {.reservations = 1}};
    struct world x;

    world_init(&x, 2, 4);
    add(&x, 0, 100, 1, 4);
    add(&x, 1, 50, 2, 4);  /* both nodes: from 100 */
    add(&x, 2, 90, 1, 4);  /* would be over at 92 */
    add(&x, 3, 200, 1, 4); /* would be over at 292: waits */
    run(&x, &fifo);
    ended_at(&x, 0, 100);
    ended_at(&x, 1, 150);
    ended_at(&x, 2, 92);
    ended_at(&x, 3, 350);
    world_done(&x);
}

static void small_work_comes_first_by_default(void **state)
{
    struct replay_options o = {.pass = pass_default};
    struct world x;

    world_init(&x, 1, 1);
    add(&x, 0, 10, 1, 1);
    add(&x, 1, 1000, 1, 1);
    add(&x, 2, 5, 1, 1);
    run(&x, &o);
    ended_at(&x, 0, 10);
    ended_at(&x, 2, 15);
    ended_at(&x, 1, 1015);
    world_done(&x);
}

static void the_reference_preempts_for_free(void **state)
{
    struct replay_options o = {.srtf = true};
    struct world x;

    world_init(&x, 1, 1);
    add(&x, 0, 100, 1, 1);
    add(&x, 10, 20, 1, 1);
    run(&x, &o);
    ended_at(&x, 1, 30);
    ended_at(&x, 0, 120);
    assert_int_equal(x.r.preempted[0], 1);
    world_done(&x);
}

static void a_job_that_no_cluster_holds_is_left_out(void **state)
{
    struct replay_options o = {.pass = pass_default};
    struct report report;
    struct world x;

    world_init(&x, 2, 4);
    add(&x, 0, 10, 1, 8);
    add(&x, 0, 10, 1, 4);
    run(&x, &o);
    assert_int_equal(x.r.never, 1);
    assert_true(x.r.end[0] == BOOK_FOREVER);
    report_make(&x.book, &x.w, &x.r, &report);
    assert_int_equal(report.jobs, 1);
    assert_true(report.completion_mean == 10);
    assert_true(report.slowdown_mean == 1);
    world_done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backfill_does_not_delay_the_first),
        cmocka_unit_test(small_work_comes_first_by_default),
        cmocka_unit_test(the_reference_preempts_for_free),
        cmocka_unit_test(a_job_that_no_cluster_holds_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
