#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "init/plan.h"

/* A plan from a literal with NULs inside; the literal's own last NUL ends the last record. */
#define PARSE(ret, err, literal) \
    ({ \
        static char data_[] = literal; \
        plan_parse((ret), data_, sizeof(data_), (err)); \
    })

#define ASSERT_REFUSED(literal, complaint) \
    do { \
        struct plan plan_; \
        struct plan_err err_ = {""}; \
        memset(&plan_, 0x5a, sizeof(plan_)); \
        assert_int_equal(PARSE(&plan_, &err_, literal), -EINVAL); \
        assert_string_equal(err_.text, complaint); \
        assert_int_equal(plan_.stop_signal, 0x5a5a5a5a); \
    } while (0)

static void an_empty_plan_is_an_idle_container_with_defaults(void **state)
{
    struct plan plan;
    struct plan_err err;
    char none[1];

    (void)state;
    assert_int_equal(plan_parse(&plan, none, 0, &err), 0);
    assert_int_equal(plan.uid, 1000);
    assert_int_equal(plan.gid, 1000);
    assert_int_equal(plan.groups_len, 0);
    assert_string_equal(plan.cwd, "/");
    assert_int_equal(plan.stop_signal, SIGTERM);
    assert_null(plan.sshd);
    assert_null(plan.argv[0]);
    assert_null(plan.envp[0]);
    plan_done(&plan);
}

static void every_key_is_taken(void **state)
{
    struct plan plan;
    struct plan_err err;

    (void)state;
    assert_int_equal(PARSE(&plan, &err,
                         "user=1001:1002\0groups=5,44,4294967294\0cwd=/home/work\0"
                         "stop-signal=2\0env=A=1\0env=EMPTY=\0env=B=x=y\0arg=python3\0arg=\0"
                         "arg=a b\nc\0sshd=/opt/sshd\0sshd-config=/etc/c"),
        0);
    assert_int_equal(plan.uid, 1001);
    assert_int_equal(plan.gid, 1002);
    assert_int_equal(plan.groups_len, 3);
    assert_int_equal(plan.groups[0], 5);
    assert_int_equal(plan.groups[2], 4294967294U);
    assert_string_equal(plan.cwd, "/home/work");
    assert_int_equal(plan.stop_signal, 2);
    assert_int_equal(plan.envc, 3);
    assert_string_equal(plan_getenv(&plan, "A"), "1");
    assert_string_equal(plan_getenv(&plan, "EMPTY"), "");
    assert_string_equal(plan_getenv(&plan, "B"), "x=y");
    assert_null(plan_getenv(&plan, "EMPT"));
    assert_null(plan.envp[3]);
    assert_int_equal(plan.argc, 3);
    assert_string_equal(plan.argv[0], "python3");
    assert_string_equal(plan.argv[1], "");
    assert_string_equal(plan.argv[2], "a b\nc");
    assert_null(plan.argv[3]);
    assert_string_equal(plan.sshd, "/opt/sshd");
    assert_string_equal(plan.sshd_config, "/etc/c");
    plan_done(&plan);
}

static void a_later_value_of_a_variable_wins_in_its_place(void **state)
{
    struct plan plan;
    struct plan_err err;

    (void)state;
    assert_int_equal(PARSE(&plan, &err, "env=A=1\0env=AB=2\0env=A=3"), 0);
    assert_int_equal(plan.envc, 2);
    assert_string_equal(plan.envp[0], "A=3");
    assert_string_equal(plan.envp[1], "AB=2");
    plan_done(&plan);
}

static void an_empty_list_of_groups_is_no_groups(void **state)
{
    struct plan plan;
    struct plan_err err;

    (void)state;
    assert_int_equal(PARSE(&plan, &err, "groups="), 0);
    assert_int_equal(plan.groups_len, 0);
    plan_done(&plan);
}

static void a_malformed_user_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED("user=", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=1000", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=1000:", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=:1000", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=work:work", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=-1:0", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=+1:0", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user= 1:0", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=1:0 ", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=0x10:0", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=4294967295:0", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=0:4294967295", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=18446744073709551616:0", "record 1: user must be UID:GID");
    ASSERT_REFUSED("user=1:2:3", "record 1: user must be UID:GID");
}

static void malformed_groups_are_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED("groups=,", "record 1: groups must be numbers joined by commas");
    ASSERT_REFUSED("groups=1,", "record 1: groups must be numbers joined by commas");
    ASSERT_REFUSED("groups=,1", "record 1: groups must be numbers joined by commas");
    ASSERT_REFUSED("groups=1,,2", "record 1: groups must be numbers joined by commas");
    ASSERT_REFUSED("groups=1 2", "record 1: groups must be numbers joined by commas");
    ASSERT_REFUSED("groups=video", "record 1: groups must be numbers joined by commas");
    ASSERT_REFUSED("groups=4294967295", "record 1: groups must be numbers joined by commas");
}

static void too_many_groups_are_refused(void **state)
{
    char data[8 + 2 * (PLAN_MAX_GROUPS + 1)] = "groups=";
    struct plan plan;
    struct plan_err err;
    size_t len = strlen(data);

    (void)state;
    for (int i = 0; i < PLAN_MAX_GROUPS + 1; i++) {
        data[len++] = '7';
        data[len++] = ',';
    }
    data[len - 1] = '\0';
    assert_int_equal(plan_parse(&plan, data, len, &err), -EINVAL);
    assert_string_equal(err.text, "record 1: more than 256 groups");
    data[len - 3] = '\0';
    assert_int_equal(plan_parse(&plan, data, len - 2, &err), 0);
    assert_int_equal(plan.groups_len, PLAN_MAX_GROUPS);
    plan_done(&plan);
}

static void a_path_must_be_absolute(void **state)
{
    (void)state;
    ASSERT_REFUSED("cwd=", "record 1: cwd must be an absolute path");
    ASSERT_REFUSED("cwd=work", "record 1: cwd must be an absolute path");
    ASSERT_REFUSED("sshd=sshd", "record 1: sshd must be an absolute path");
    ASSERT_REFUSED("sshd=/s\0sshd-config=c", "record 2: sshd-config must be an absolute path");
}

static void a_path_that_no_file_can_have_is_refused(void **state)
{
    static char data[8000] = "cwd=/";
    struct plan plan;
    struct plan_err err;

    (void)state;
    memset(data + 5, 'a', sizeof(data) - 6);
    assert_int_equal(plan_parse(&plan, data, sizeof(data), &err), -EINVAL);
    assert_string_equal(err.text, "record 1: cwd is too long");
}

static void sshd_needs_its_configuration_and_the_other_way_round(void **state)
{
    (void)state;
    ASSERT_REFUSED("sshd=/s", "sshd and sshd-config go together");
    ASSERT_REFUSED("sshd-config=/c", "sshd and sshd-config go together");
}

static void a_malformed_stop_signal_is_refused(void **state)
{
    struct plan plan;
    struct plan_err err;

    (void)state;
    ASSERT_REFUSED("stop-signal=", "record 1: stop-signal must be a number from 1 to 64");
    ASSERT_REFUSED("stop-signal=0", "record 1: stop-signal must be a number from 1 to 64");
    ASSERT_REFUSED("stop-signal=65", "record 1: stop-signal must be a number from 1 to 64");
    ASSERT_REFUSED("stop-signal=-9", "record 1: stop-signal must be a number from 1 to 64");
    ASSERT_REFUSED("stop-signal=TERM", "record 1: stop-signal must be a number from 1 to 64");
    ASSERT_REFUSED("stop-signal=15x", "record 1: stop-signal must be a number from 1 to 64");
    assert_int_equal(PARSE(&plan, &err, "stop-signal=64"), 0);
    plan_done(&plan);
}

static void a_variable_needs_a_name_and_a_sign(void **state)
{
    (void)state;
    ASSERT_REFUSED("env=", "record 1: env must be NAME=VALUE");
    ASSERT_REFUSED("env=A", "record 1: env must be NAME=VALUE");
    ASSERT_REFUSED("env==x", "record 1: env must be NAME=VALUE");
}

static void a_single_key_given_twice_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED("cwd=/a\0cwd=/a", "record 2: cwd is given twice");
    ASSERT_REFUSED("user=1:1\0arg=x\0user=1:1", "record 3: user is given twice");
    ASSERT_REFUSED("groups=\0groups=1", "record 2: groups is given twice");
    ASSERT_REFUSED("stop-signal=1\0stop-signal=1", "record 2: stop-signal is given twice");
}

static void anything_that_is_no_record_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED("", "record 1: no '='");
    ASSERT_REFUSED("arg", "record 1: no '='");
    ASSERT_REFUSED("arg=a\0\0arg=b", "record 2: no '='");
    ASSERT_REFUSED("=x", "record 1: unknown key");
    ASSERT_REFUSED("argv=x", "record 1: unknown key");
    ASSERT_REFUSED("ar=x", "record 1: unknown key");
    ASSERT_REFUSED("ARG=x", "record 1: unknown key");
    ASSERT_REFUSED("sshd-env=A=1", "record 1: unknown key");
    ASSERT_REFUSED("\x7f"
                   "ELF=\x01",
        "record 1: unknown key");
}

static void a_last_record_without_its_end_is_refused(void **state)
{
    char data[] = {'a', 'r', 'g', '=', 'x'};
    struct plan plan;
    struct plan_err err;

    (void)state;
    assert_int_equal(plan_parse(&plan, data, sizeof(data), &err), -EINVAL);
    assert_string_equal(err.text, "the last record is not finished");
}

static void a_plan_over_its_limit_is_refused_and_one_at_it_is_not(void **state)
{
    size_t len = PLAN_MAX_BYTES + 1;
    char *data = malloc(len);
    struct plan plan;
    struct plan_err err;

    (void)state;
    assert_non_null(data);
    memset(data, 'x', len);
    memcpy(data, "arg=", 4);
    data[len - 1] = '\0';
    assert_int_equal(plan_parse(&plan, data, len, &err), -E2BIG);
    data[len - 2] = '\0';
    assert_int_equal(plan_parse(&plan, data, len - 1, &err), 0);
    assert_int_equal(plan.argc, 1);
    plan_done(&plan);
    free(data);
}

static void too_many_variables_are_refused(void **state)
{
    size_t cap = (PLAN_MAX_ENV + 1) * 16, len = 0;
    char *data = malloc(cap);
    struct plan plan;
    struct plan_err err;

    (void)state;
    assert_non_null(data);
    for (int i = 0; i < PLAN_MAX_ENV; i++)
        len += (size_t)snprintf(data + len, cap - len, "env=V%d=", i) + 1;
    assert_int_equal(plan_parse(&plan, data, len, &err), 0);
    assert_int_equal(plan.envc, PLAN_MAX_ENV);
    plan_done(&plan);
    len += (size_t)snprintf(data + len, cap - len, "env=X=") + 1;
    assert_int_equal(plan_parse(&plan, data, len, &err), -EINVAL);
    assert_string_equal(err.text, "record 4097: more than 4096 environment variables");
    free(data);
}

static void a_complaint_never_shows_a_value(void **state)
{
    (void)state;
    ASSERT_REFUSED("env=hunter2", "record 1: env must be NAME=VALUE");
    ASSERT_REFUSED("enw=TOKEN=hunter2", "record 1: unknown key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_plan_is_an_idle_container_with_defaults),
        cmocka_unit_test(every_key_is_taken),
        cmocka_unit_test(a_later_value_of_a_variable_wins_in_its_place),
        cmocka_unit_test(an_empty_list_of_groups_is_no_groups),
        cmocka_unit_test(a_malformed_user_is_refused),
        cmocka_unit_test(malformed_groups_are_refused),
        cmocka_unit_test(too_many_groups_are_refused),
        cmocka_unit_test(a_path_must_be_absolute),
        cmocka_unit_test(a_path_that_no_file_can_have_is_refused),
        cmocka_unit_test(sshd_needs_its_configuration_and_the_other_way_round),
        cmocka_unit_test(a_malformed_stop_signal_is_refused),
        cmocka_unit_test(a_variable_needs_a_name_and_a_sign),
        cmocka_unit_test(a_single_key_given_twice_is_refused),
        cmocka_unit_test(anything_that_is_no_record_is_refused),
        cmocka_unit_test(a_last_record_without_its_end_is_refused),
        cmocka_unit_test(a_plan_over_its_limit_is_refused_and_one_at_it_is_not),
        cmocka_unit_test(too_many_variables_are_refused),
        cmocka_unit_test(a_complaint_never_shows_a_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
