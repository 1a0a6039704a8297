#include <pthread.h>

#include "base/work.h"
#include "unit.h"

struct job {
    pthread_t ran_on, done_on;
    int want, got;
    struct err err;
};

static int run(void *arg, struct err *err)
{
    struct job *job = arg;

    job->ran_on = pthread_self();
    return job->want < 0 ? err_set(err, job->want, "job failed") : job->want;
}

static void done(void *arg, int result, const struct err *err)
{
    struct job *job = arg;

    job->done_on = pthread_self();
    job->got = result;
    job->err = *err;
}

TEST(work_runs_in_a_thread_and_ends_on_the_loop)
{
    struct job job = {.want = 0, .got = 77};
    uv_loop_t loop;

    uv_loop_init(&loop);
    work_start(&loop, run, done, &job);
    assert_int_equal(job.got, 77);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(job.got, 0);
    assert_string_equal(job.err.text, "");
    assert_false(pthread_equal(job.ran_on, pthread_self()));
    assert_true(pthread_equal(job.done_on, pthread_self()));
    assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(a_failure_comes_with_its_text)
{
    struct job job = {.want = -EPROTO};
    uv_loop_t loop;

    uv_loop_init(&loop);
    work_start(&loop, run, done, &job);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(job.got, -EPROTO);
    assert_string_equal(job.err.text, "job failed");
    assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(pending_work_is_finished_when_the_loop_ends)
{
    struct job jobs[50] = {0};
    uv_loop_t loop;

    uv_loop_init(&loop);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i].want = (int)i + 1;
        work_start(&loop, run, done, &jobs[i]);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        assert_int_equal(jobs[i].got, (int)i + 1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_runs_in_a_thread_and_ends_on_the_loop),
        cmocka_unit_test(a_failure_comes_with_its_text),
        cmocka_unit_test(pending_work_is_finished_when_the_loop_ends),
    };

    return RUN_TESTS(tests);
}
