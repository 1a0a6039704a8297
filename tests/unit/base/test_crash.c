#include "base/crash.h"
#include "unit.h"

#ifdef MUSTER_CRASH_POINTS

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/proc.h"

static char self[4096];

/* This program started again as a probe: passes the point named times times and prints each
 * result. */
static int probe(const char *name, const char *times)
{
    for (long i = strtol(times, NULL, 10); i > 0; i--) {
        struct err err = ERR_INIT;
        int r = crash_point(name, &err);

        printf("%d %s\n", r, err.text);
        fflush(stdout);
    }
    return 0;
}

/* Runs the probe below this MUSTER_CRASH; output and stderr into text. */
static int run_probe(const char *crash, const char *name, const char *times, char text[512])
{
    char env_text[256];
    const char *const env[] = {env_text, NULL};
    const char *const argv[] = {self, "probe", name, times, NULL};
    struct buf out = BUF_INIT(500);
    struct proc p = {.argv = argv, .env = env, .out = &out, .err_out = &out};
    int status = 0;

    snprintf(env_text, sizeof(env_text), "MUSTER_CRASH=%s", crash);
    (void)proc_run(&p, &status, NULL);
    snprintf(text, 512, "%s", out.data ? out.data : "");
    buf_done(&out);
    return status;
}

TEST(a_point_that_nobody_asked_for_does_nothing)
{
    char text[512];

    assert_int_equal(run_probe("", "place.after_commit", "2", text), 0);
    assert_string_equal(text, "0 \n0 \n");
    assert_int_equal(run_probe("container.after_mount=kill", "place.after_commit", "1", text), 0);
    assert_string_equal(text, "0 \n");
}

TEST(a_point_can_fail)
{
    char text[512];

    assert_int_equal(run_probe("place.after_commit=fail", "place.after_commit", "2", text), 0);
    assert_string_equal(text, "-5 crash point 'place.after_commit'\n0 \n");
}

TEST(a_point_can_kill)
{
    char text[512];
    int status = run_probe("place.after_commit=kill", "place.after_commit", "1", text);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_string_equal(text, "");
}

TEST(a_point_can_delay)
{
    uint64_t start = clock_mono_usec();
    char text[512];

    assert_int_equal(
        run_probe("place.after_commit=delay:300ms", "place.after_commit", "1", text), 0);
    assert_string_equal(text, "0 \n");
    assert_true(clock_mono_usec() - start >= 300 * USEC_PER_MSEC);
}

TEST(a_count_says_which_time_or_every_time)
{
    char text[512];

    run_probe("place.after_commit=fail@2", "place.after_commit", "3", text);
    assert_string_equal(text, "0 \n-5 crash point 'place.after_commit'\n0 \n");
    run_probe("place.after_commit=fail@*", "place.after_commit", "2", text);
    assert_string_equal(
        text, "-5 crash point 'place.after_commit'\n-5 crash point 'place.after_commit'\n");
}

TEST(several_plans_are_kept_apart)
{
    char text[512];
    int status = run_probe("container.after_mount=fail,place.after_commit=fail@1,"
                           "place.after_commit=kill@2",
        "place.after_commit", "2", text);

    assert_true(WIFSIGNALED(status));
    assert_string_equal(text, "-5 crash point 'place.after_commit'\n");
}

TEST(a_mistake_ends_the_program_before_main)
{
    static const struct {
        const char *crash, *text;
    } rows[] = {
        {"place.after=kill", "MUSTER_CRASH: unknown crash point 'place.after'\n"},
        {"place.after_commit", "MUSTER_CRASH: 'place.after_commit' must be POINT=ACTION\n"},
        {"place.after_commit=boom", "MUSTER_CRASH: 'boom' must be kill, delay:DURATION or fail\n"},
        {"place.after_commit=kill@0", "MUSTER_CRASH: '@0' must be @1, @2, ... or @*\n"},
        {"place.after_commit=fail,", "MUSTER_CRASH: '' must be POINT=ACTION\n"},
    };
    char text[512];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int status = run_probe(rows[i].crash, "place.after_commit", "1", text);

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 2);
        assert_string_equal(text, rows[i].text);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_that_nobody_asked_for_does_nothing),
        cmocka_unit_test(a_point_can_fail),
        cmocka_unit_test(a_point_can_kill),
        cmocka_unit_test(a_point_can_delay),
        cmocka_unit_test(a_count_says_which_time_or_every_time),
        cmocka_unit_test(several_plans_are_kept_apart),
        cmocka_unit_test(a_mistake_ends_the_program_before_main),
    };

    if (argc == 4)
        return probe(argv[2], argv[3]);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    return RUN_TESTS(tests);
}

#else

TEST(a_point_does_nothing_in_this_build)
{
    struct err err = ERR_INIT;

    setenv("MUSTER_CRASH", "place.after_commit=kill", 1);
    assert_int_equal(crash_point("place.after_commit", &err), 0);
    assert_int_equal(err.code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_does_nothing_in_this_build),
    };

    return RUN_TESTS(tests);
}

#endif
