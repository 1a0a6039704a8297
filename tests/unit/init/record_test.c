#include <errno.h>
#include <signal.h>
#include <string.h>

#include "check.h"
#include "init/errname.h"
#include "init/record.h"

/* wait statuses as Linux encodes them */
#define EXITED(n) ((n) << 8)
#define SIGNALLED(n) (n)
#define DUMPED_CORE(n) ((n) | 0x80)

static void a_start_is_recorded_with_pid_and_time(void **state)
{
    char line[RECORD_LINE_MAX];

    (void)state;
    record_format_started(line, 7, 1234567890123456ULL);
    assert_string_equal(line, "started 7 1234567890123456\n");
}

static void an_end_is_recorded_as_it_was(void **state)
{
    char line[RECORD_LINE_MAX];

    (void)state;
    record_format_ended(line, EXITED(0));
    assert_string_equal(line, "exited 0\n");
    record_format_ended(line, EXITED(255));
    assert_string_equal(line, "exited 255\n");
    record_format_ended(line, SIGNALLED(SIGKILL));
    assert_string_equal(line, "signalled 9\n");
    record_format_ended(line, DUMPED_CORE(SIGSEGV));
    assert_string_equal(line, "signalled 11\n");
}

static void init_ends_with_the_commands_status(void **state)
{
    (void)state;
    assert_int_equal(record_exit_code(EXITED(0)), 0);
    assert_int_equal(record_exit_code(EXITED(3)), 3);
    assert_int_equal(record_exit_code(SIGNALLED(SIGTERM)), 143);
    assert_int_equal(record_exit_code(DUMPED_CORE(SIGABRT)), 134);
}

static void a_failed_start_says_why(void **state)
{
    char line[RECORD_LINE_MAX];

    (void)state;
    record_format_start_failed(line, START_EXEC, ENOENT, "pyhton3");
    assert_string_equal(
        line, "start-failed ENOENT command not found: 'pyhton3' (No such file or directory)\n");
    record_format_start_failed(line, START_CWD, ENOENT, "/data");
    assert_string_equal(
        line, "start-failed ENOENT cannot start in folder '/data' (No such file or directory)\n");
    record_format_start_failed(line, START_INTERPRETER, ENOENT, "./a.sh");
    assert_string_equal(line,
        "start-failed ENOENT interpreter or loader is missing for './a.sh' "
        "(No such file or directory)\n");
    record_format_start_failed(line, START_IDENTITY, EPERM, "x");
    assert_string_equal(
        line, "start-failed EPERM cannot become the user for 'x' (Operation not permitted)\n");
}

static void a_failed_start_is_one_line_whatever_the_command_is_called(void **state)
{
    char line[RECORD_LINE_MAX];

    (void)state;
    record_format_start_failed(line, START_EXEC, EACCES, "a\nexited 0\n\x1b[2J\x7f");
    assert_string_equal(line,
        "start-failed EACCES not executable: 'a?exited 0??[2J?' "
        "(Permission denied)\n");
}

static void a_long_name_is_cut_between_characters(void **state)
{
    char line[RECORD_LINE_MAX], name[1000], *shown;

    (void)state;
    memset(name, 'a', sizeof(name));
    memcpy(name + 198, "\xea\xb0\x80", 3); /* U+AC00 over the limit of 200 */
    name[999] = '\0';
    record_format_start_failed(line, START_EXEC, ENOENT, name);
    shown = strchr(line, '\'') + 1;
    assert_int_equal(strchr(shown, '\'') - shown, 198);
    assert_int_equal(line[strlen(line) - 1], '\n');

    memset(name, 0x80, sizeof(name) - 1); /* no character begins anywhere */
    record_format_start_failed(line, START_EXEC, ENOENT, name);
    assert_non_null(strstr(line, "''"));
}

static void not_found_is_127_and_everything_else_126(void **state)
{
    (void)state;
    assert_int_equal(record_start_failed_code(START_EXEC, ENOENT), 127);
    assert_int_equal(record_start_failed_code(START_EXEC, ENOTDIR), 127);
    assert_int_equal(record_start_failed_code(START_INTERPRETER, ENOENT), 127);
    assert_int_equal(record_start_failed_code(START_EXEC, EACCES), 126);
    assert_int_equal(record_start_failed_code(START_EXEC, ENOEXEC), 126);
    assert_int_equal(record_start_failed_code(START_CWD, ENOENT), 126);
    assert_int_equal(record_start_failed_code(START_IDENTITY, EPERM), 126);
}

static void an_error_has_its_name(void **state)
{
    (void)state;
    assert_string_equal(errname(ENOENT), "ENOENT");
    assert_string_equal(errname(ETXTBSY), "ETXTBSY");
    assert_string_equal(errname(0), "EUNKNOWN");
    assert_string_equal(errname(-1), "EUNKNOWN");
    assert_string_equal(errname(100000), "EUNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_is_recorded_with_pid_and_time),
        cmocka_unit_test(an_end_is_recorded_as_it_was),
        cmocka_unit_test(init_ends_with_the_commands_status),
        cmocka_unit_test(a_failed_start_says_why),
        cmocka_unit_test(a_failed_start_is_one_line_whatever_the_command_is_called),
        cmocka_unit_test(a_long_name_is_cut_between_characters),
        cmocka_unit_test(not_found_is_127_and_everything_else_126),
        cmocka_unit_test(an_error_has_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
