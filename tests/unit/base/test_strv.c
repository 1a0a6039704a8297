#include "base/strv.h"
#include "unit.h"

TEST(a_null_vector_is_empty)
{
    char **none = NULL;
    char *joined = strv_join(NULL, ",");

    assert_int_equal(strv_len(NULL), 0);
    assert_null(strv_copy(NULL));
    assert_false(strv_has(NULL, "a"));
    assert_null(strv_env_get(NULL, "A"));
    assert_string_equal(joined, "");
    strv_for_each (s, none)
        fail_msg("'%s' in an empty vector", *s);
    strv_free(NULL);
    free(joined);
}

TEST(pushed_strings_are_copies_in_order)
{
    _cleanup_(strv_freep) char **v = NULL;
    char word[] = "one";

    strv_push(&v, word);
    word[0] = 'X';
    strv_take(&v, xstrdup("two"));
    strv_pushf(&v, "%s-%d", "three", 3);
    assert_int_equal(strv_len(v), 3);
    assert_string_equal(v[0], "one");
    assert_string_equal(v[1], "two");
    assert_string_equal(v[2], "three-3");
    assert_null(v[3]);
    assert_true(strv_has(v, "two"));
    assert_false(strv_has(v, "tw"));
}

TEST(a_vector_of_any_length_stays_terminated)
{
    for (size_t n = 0; n < 70; n++) {
        _cleanup_(strv_freep) char **v = NULL;

        for (size_t i = 0; i < n; i++)
            strv_pushf(&v, "%zu", i);
        assert_int_equal(strv_len(v), n);
    }
}

TEST(vectors_made_by_copy_and_split_can_grow)
{
    for (size_t n = 1; n < 40; n++) {
        _cleanup_(strv_freep) char **v = NULL, **copy = NULL;

        for (size_t i = 0; i < n; i++)
            strv_push(&v, "x");
        copy = strv_copy(v);
        strv_push(&copy, "last");
        assert_int_equal(strv_len(copy), n + 1);
        assert_string_equal(copy[n], "last");
        assert_ptr_not_equal(copy[0], v[0]);
    }
}

static void check_split(const char *text, char sep, const char *joined, size_t n)
{
    _cleanup_(strv_freep) char **v = strv_split(text, sep);
    _cleanup_free_ char *back = strv_join(v, "|");

    assert_int_equal(strv_len(v), n);
    assert_string_equal(back, joined);
}

TEST(splitting_keeps_empty_parts)
{
    check_split("a,,b", ',', "a||b", 3);
    check_split(",", ',', "|", 2);
    check_split("a", ',', "a", 1);
    check_split("a,", ',', "a|", 2);
    assert_null(strv_split("", ','));
}

TEST(joining_puts_the_separator_between)
{
    _cleanup_(strv_freep) char **v = strv_split("a b c", ' ');
    _cleanup_free_ char *text = strv_join(v, ", ");

    assert_string_equal(text, "a, b, c");
}

TEST(a_variable_is_found_by_its_whole_name)
{
    char *const env[] = {(char *)"PATHS=x", (char *)"PATH=/bin", (char *)"EMPTY=", NULL};

    assert_string_equal(strv_env_get(env, "PATH"), "/bin");
    assert_string_equal(strv_env_get(env, "EMPTY"), "");
    assert_null(strv_env_get(env, "PAT"));
}

TEST(setting_a_variable_replaces_it_in_place)
{
    _cleanup_(strv_freep) char **env = NULL;

    strv_env_set(&env, "A", "1");
    strv_env_set(&env, "B", "2");
    strv_env_set(&env, "A", "x=y");
    assert_int_equal(strv_len(env), 2);
    assert_string_equal(env[0], "A=x=y");
    assert_string_equal(strv_env_get(env, "A"), "x=y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_null_vector_is_empty),
        cmocka_unit_test(pushed_strings_are_copies_in_order),
        cmocka_unit_test(a_vector_of_any_length_stays_terminated),
        cmocka_unit_test(vectors_made_by_copy_and_split_can_grow),
        cmocka_unit_test(splitting_keeps_empty_parts),
        cmocka_unit_test(joining_puts_the_separator_between),
        cmocka_unit_test(a_variable_is_found_by_its_whole_name),
        cmocka_unit_test(setting_a_variable_replaces_it_in_place),
    };

    return RUN_TESTS(tests);
}
