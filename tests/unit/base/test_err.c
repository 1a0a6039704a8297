#include "base/err.h"
#include "unit.h"

TEST(an_error_has_its_code_and_text)
{
    struct err err = ERR_INIT;

    assert_int_equal(err_set(&err, -EINVAL, "'%s' is odd", "x"), -EINVAL);
    assert_int_equal(err.code, -EINVAL);
    assert_string_equal(err_text(&err), "'x' is odd");
}

TEST(a_system_error_says_what_the_system_said)
{
    struct err err = ERR_INIT;

    assert_int_equal(err_sys(&err, -ENOENT, "cannot open '%s'", "x"), -ENOENT);
    assert_string_equal(err.text, "cannot open 'x': No such file or directory");
}

TEST(a_prefix_goes_before_the_text)
{
    struct err err = ERR_INIT;

    err_set(&err, -EPROTO, "line 12");
    assert_int_equal(err_prefix(&err, "CDI spec '%s'", "a"), -EPROTO);
    assert_string_equal(err.text, "CDI spec 'a': line 12");
}

TEST(nobody_needs_to_want_the_error)
{
    assert_int_equal(err_set(NULL, -EINVAL, "x"), -EINVAL);
    assert_int_equal(err_sys(NULL, -EPERM, "x"), -EPERM);
    assert_int_equal(err_prefix(NULL, "x"), -EIO);
}

TEST(a_long_text_is_cut_at_the_end)
{
    struct err err = ERR_INIT;
    char text[400];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&err, -EIO, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    err_prefix(&err, "start");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "start: aaa", 10);
    err_sys(&err, -EIO, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

TEST(an_error_without_text_is_told_by_its_code)
{
    struct err err = ERR_INIT;

    assert_string_equal(err_text(&err), "no error");
    err.code = -EACCES;
    assert_string_equal(err_text(&err), "Permission denied");
}

TEST(an_array_grows_and_is_zero_behind_its_old_end)
{
    size_t cap = 0;
    int *a = xgrow(NULL, &cap, 1, sizeof(*a));

    assert_true(cap >= 1);
    for (size_t i = 0; i < cap; i++)
        a[i] = 1;
    for (size_t old = cap, want = cap + 1; want < 1000; old = cap, want = cap + 1) {
        a = xgrow(a, &cap, want, sizeof(*a));
        assert_true(cap >= want);
        assert_int_equal(a[0], 1);
        for (size_t i = old; i < cap; i++)
            assert_int_equal(a[i], 0);
    }
    free(a);
}

static void a_text_may_be_made_of_the_old_one(void **state)
{
    struct err err = ERR_INIT;

    err_set(&err, -E2BIG, "too much");
    err_set(&err, err.code, "%s; take %d", err_text(&err), 4);
    assert_string_equal(err.text, "too much; take 4");
    err_sys(&err, -ENOENT, "%s", err_text(&err));
    assert_string_equal(err.text, "too much; take 4: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_its_code_and_text),
        cmocka_unit_test(a_system_error_says_what_the_system_said),
        cmocka_unit_test(a_prefix_goes_before_the_text),
        cmocka_unit_test(nobody_needs_to_want_the_error),
        cmocka_unit_test(a_long_text_is_cut_at_the_end),
        cmocka_unit_test(a_text_may_be_made_of_the_old_one),
        cmocka_unit_test(an_error_without_text_is_told_by_its_code),
        cmocka_unit_test(an_array_grows_and_is_zero_behind_its_old_end),
    };

    return RUN_TESTS(tests);
}
