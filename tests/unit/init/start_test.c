/* PATH search and the time of the next try. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "init/backoff.h"
#include "init/path.h"

static void assert_candidates(const char *path, const char *const *want)
{
    char buf[32];

    while (path_next(&path, "cc", buf, sizeof(buf))) {
        assert_non_null(*want);
        assert_string_equal(buf, *want++);
    }
    assert_null(*want);
}

static void a_path_is_searched_from_left_to_right(void **state)
{
    const char *const want[] = {"/usr/bin/cc", "/bin/cc", NULL};

    (void)state;
    assert_candidates("/usr/bin:/bin", want);
}

static void an_empty_element_is_the_current_folder(void **state)
{
    const char *const one[] = {"./cc", NULL};
    const char *const all[] = {"./cc", "/bin/cc", "./cc", "./cc", NULL};

    (void)state;
    assert_candidates("", one);
    assert_candidates(":/bin::", all);
}

static void a_candidate_that_does_not_fit_is_empty_and_the_search_goes_on(void **state)
{
    const char *const want[] = {"", "", "/bin/cc", NULL};

    (void)state;
    assert_candidates(
        "/a-folder-with-a-rather-long-name-here:/a-folder-of-30-bytes-exactly:/bin", want);
}

static void nothing_is_executed_for_a_name_that_is_nowhere(void **state)
{
    char *envp[] = {NULL}, *none[] = {"", NULL}, *missing[] = {"no-such-command", NULL},
         *folder[] = {"/", NULL};
    bool found = true;

    (void)state;
    assert_int_equal(path_exec(NULL, none, envp, &found), -ENOENT);
    assert_int_equal(path_exec("/usr/bin:/dev/null:/nowhere", missing, envp, &found), -ENOENT);
    assert_false(found);
    assert_int_equal(path_exec(NULL, folder, envp, &found), -EACCES);
}

static void a_file_that_may_not_run_is_told_from_a_missing_one(void **state)
{
    char *envp[] = {NULL}, *argv[] = {"passwd", NULL};
    bool found;

    (void)state;
    assert_int_equal(path_exec("/nowhere:/etc:/nowhere", argv, envp, &found), -EACCES);
}

static void tries_come_half_as_often_each_time_but_not_rarer_than_every_5_s(void **state)
{
    struct backoff b = {0};
    uint64_t now = 1000 * USEC_PER_SEC;
    const uint64_t want_msec[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof(want_msec) / sizeof(want_msec[0]); i++) {
        backoff_started(&b, now);
        assert_int_equal(backoff_died(&b, now) - now, want_msec[i] * USEC_PER_MSEC);
    }
}

static void a_long_life_is_forgiven(void **state)
{
    struct backoff b = {0};

    (void)state;
    for (int i = 0; i < 5; i++) {
        backoff_started(&b, 0);
        backoff_died(&b, 1);
    }
    backoff_started(&b, 0);
    assert_int_equal(backoff_died(&b, BACKOFF_GOOD_USEC) - BACKOFF_GOOD_USEC, BACKOFF_MIN_USEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_searched_from_left_to_right),
        cmocka_unit_test(an_empty_element_is_the_current_folder),
        cmocka_unit_test(a_candidate_that_does_not_fit_is_empty_and_the_search_goes_on),
        cmocka_unit_test(nothing_is_executed_for_a_name_that_is_nowhere),
        cmocka_unit_test(a_file_that_may_not_run_is_told_from_a_missing_one),
        cmocka_unit_test(tries_come_half_as_often_each_time_but_not_rarer_than_every_5_s),
        cmocka_unit_test(a_long_life_is_forgiven),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
