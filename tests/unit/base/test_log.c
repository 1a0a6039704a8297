#include <regex.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"
#include "unit.h"

static int saved_stderr = -1, pipe_read = -1;

/* stderr goes into a pipe until captured() gives back what came. */
static void capture(void)
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
    pipe_read = fds[0];
}

static char *captured(void)
{
    char text[16384];
    ssize_t n;

    (void)!write(STDERR_FILENO, "\n", 1); /* so that the read does not block */
    n = read(pipe_read, text, sizeof(text) - 1);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_read);
    assert_true(n >= 1);
    return xstrndup(text, (size_t)n - 1);
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t re;

    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&re, text, 0, NULL, 0) != 0)
        fail_msg("'%s' does not match '%s'", text, pattern);
    regfree(&re);
}

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

TEST(a_text_line_has_time_level_and_program)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_(strv_freep) char **lines = NULL;

    capture();
    log_setup("musterd", LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    log_err("one %d", 1);
    log_warning("two");
    log_info("three");
    log_debug("four");
    text = captured();
    lines = strv_split(text, '\n');
    assert_int_equal(strv_len(lines), 5);
    assert_matches(lines[0], "^" TIME " err   musterd: one 1$");
    assert_matches(lines[1], "^" TIME " warn  musterd: two$");
    assert_matches(lines[2], "^" TIME " info  musterd: three$");
    assert_matches(lines[3], "^" TIME " debug musterd: four$");
    assert_string_equal(lines[4], "");
}

TEST(what_is_above_the_level_is_not_written)
{
    _cleanup_free_ char *text = NULL;

    capture();
    log_setup("musterd", LOG_LEVEL_WARNING, LOG_FORMAT_TEXT);
    log_info("not this");
    log_warning("but this");
    text = captured();
    assert_null(strstr(text, "not this"));
    assert_non_null(strstr(text, "but this"));
}

TEST(a_json_line_is_one_document)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_(json_decrefp) json_t *doc = NULL;
    struct err err = ERR_INIT;

    capture();
    log_setup("musterd", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_warning("a \"quoted\" 'thing'");
    text = captured();
    assert_true(str_ends(text, "}\n"));
    assert_ok(json_parse(text, strlen(text), 4096, &doc, &err), &err);
    assert_int_equal(json_object_size(doc), 4);
    assert_string_equal(json_str_or(doc, "level", ""), "warning");
    assert_string_equal(json_str_or(doc, "program", ""), "musterd");
    assert_string_equal(json_str_or(doc, "message", ""), "a \"quoted\" 'thing'");
    assert_int_equal(strlen(json_str_or(doc, "time", "")), strlen("2026-11-30T14:37:48.123456Z"));
}

TEST(the_journal_gets_its_priorities)
{
    _cleanup_free_ char *text = NULL;
    char stream[64];
    struct stat st;

    capture();
    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_setup("musterd", LOG_LEVEL_DEBUG, LOG_FORMAT_AUTO);
    log_err("one");
    log_warning("two");
    log_info("three");
    log_debug("four");
    text = captured();
    unsetenv("JOURNAL_STREAM");
    assert_string_equal(text, "<3>one\n<4>two\n<6>three\n<7>four\n");
}

TEST(another_stream_than_the_journals_gets_text)
{
    _cleanup_free_ char *text = NULL;

    capture();
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_setup("musterd", LOG_LEVEL_DEBUG, LOG_FORMAT_AUTO);
    log_info("three");
    text = captured();
    unsetenv("JOURNAL_STREAM");
    assert_matches(text, "^" TIME " info  musterd: three\n$");
}

TEST(an_event_is_one_line_whatever_is_in_it)
{
    _cleanup_free_ char *text = NULL;

    capture();
    log_setup("musterd", LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    log_info("name '%s'", "a\n2026 err forged\x1b[0m\xff");
    text = captured();
    assert_true(str_ends(text, "info  musterd: name 'a\\x0a2026 err forged\\x1b[0m\\xff'\n"));
}

TEST(a_very_long_message_is_cut)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *message = xcalloc(1, 20001);

    memset(message, 'a', 20000);
    capture();
    log_setup("musterd", LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    log_info("%s", message);
    text = captured();
    assert_true(strlen(text) < 8300);
    assert_true(str_ends(text, "aaa...\n"));
}

TEST(logging_leaves_errno_alone)
{
    _cleanup_free_ char *text = NULL;

    capture();
    log_setup("musterd", LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    errno = EXDEV;
    log_info("x");
    assert_int_equal(errno, EXDEV);
    text = captured();
}

TEST(levels_are_read_by_name)
{
    enum log_level level = LOG_LEVEL_DEBUG;

    assert_int_equal(log_level_parse("err", &level), 0);
    assert_int_equal(level, LOG_LEVEL_ERR);
    assert_int_equal(log_level_parse("warning", &level), 0);
    assert_int_equal(level, LOG_LEVEL_WARNING);
    assert_int_equal(log_level_parse("info", &level), 0);
    assert_int_equal(level, LOG_LEVEL_INFO);
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_parse("warn", &level), -EINVAL);
    assert_int_equal(log_level_parse(NULL, &level), -EINVAL);
    assert_int_equal(level, LOG_LEVEL_DEBUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_line_has_time_level_and_program),
        cmocka_unit_test(what_is_above_the_level_is_not_written),
        cmocka_unit_test(a_json_line_is_one_document),
        cmocka_unit_test(the_journal_gets_its_priorities),
        cmocka_unit_test(another_stream_than_the_journals_gets_text),
        cmocka_unit_test(an_event_is_one_line_whatever_is_in_it),
        cmocka_unit_test(a_very_long_message_is_cut),
        cmocka_unit_test(logging_leaves_errno_alone),
        cmocka_unit_test(levels_are_read_by_name),
    };

    return RUN_TESTS(tests);
}
