/* Values of documents as people read them. */
#include "cli/text.h"
#include "unit.h"

static json_t *json(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);

    assert_non_null(j);
    return j;
}

static void is(char *got, const char *want)
{
    assert_string_equal(got, want);
    free(got);
}

TEST(control_characters_of_others_never_reach_the_terminal)
{
    is(text_clean("a\033[2Jb\r"), "a\\x1b[2Jb\\x0d");
}

TEST(a_missing_member_is_a_dash)
{
    json_t *o = json("{\"a\": \"x\", \"n\": null, \"i\": 7, \"e\": \"\"}");

    is(text_member(o, "a"), "x");
    is(text_member(o, "i"), "7");
    is(text_member(o, "n"), "-");
    is(text_member(o, "e"), "-");
    is(text_member(o, "none"), "-");
    is(text_member(NULL, "a"), "-");
    json_decref(o);
}

TEST(resources_are_written_with_their_units)
{
    json_t *one = json("{\"cpus\": 1, \"mem\": 4294967296, \"gpus\": 0}");
    json_t *many = json("{\"cpus\": 2.5, \"mem\": 536870912, \"gpus\": 8}");

    is(text_resources(one), "1 CPU, 4 GiB");
    is(text_resources(many), "2.5 CPUs, 512 MiB, 8 GPUs");
    json_decref(one);
    json_decref(many);
}

TEST(an_ended_session_shows_its_result)
{
    json_t *a = json("{\"state\": \"running\", \"result\": null}");
    json_t *b = json("{\"state\": \"ended\", \"result\": \"failed\"}");

    is(text_state(a), "running");
    is(text_state(b), "failed");
    json_decref(a);
    json_decref(b);
}

TEST(words_are_quoted_as_a_shell_would_take_them)
{
    json_t *list = json("[\"sh\", \"-c\", \"echo 'a b'\", \"\", \"x=1\"]");

    is(text_words(list), "sh -c 'echo '\\''a b'\\''' '' x=1");
    json_decref(list);
}

TEST(times_are_shown_in_utc_when_asked)
{
    json_t *o = json("{\"t\": \"2026-11-30T14:37:48.123456Z\", \"n\": null}");

    is(text_time(o, "t", true), "2026-11-30 14:37:48Z");
    is(text_time(o, "n", true), "-");
    json_decref(o);
}

TEST(a_span_is_whole_seconds)
{
    json_t *o = json(
        "{\"a\": \"2026-11-30T14:00:00.900000Z\", \"b\": \"2026-11-30T15:30:01.100000Z\"}");

    is(text_span(o, "a", "b"), "1h 30m");
    is(text_span(o, "b", "a"), "0s");
    is(text_span(o, "none", "b"), "-");
    json_decref(o);
}

TEST(gpus_are_a_list_of_numbers)
{
    json_t *list = json("[0, 3, 4]");

    is(text_numbers(list), "0,3,4");
    is(text_numbers(NULL), "");
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_of_others_never_reach_the_terminal),
        cmocka_unit_test(a_missing_member_is_a_dash),
        cmocka_unit_test(resources_are_written_with_their_units),
        cmocka_unit_test(an_ended_session_shows_its_result),
        cmocka_unit_test(words_are_quoted_as_a_shell_would_take_them),
        cmocka_unit_test(times_are_shown_in_utc_when_asked),
        cmocka_unit_test(a_span_is_whole_seconds),
        cmocka_unit_test(gpus_are_a_list_of_numbers),
    };

    return RUN_TESTS(tests);
}
