#include "base/str.h"
#include "unit.h"

TEST(null_equals_only_null)
{
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq(NULL, ""));
    assert_false(str_eq("", NULL));
    assert_true(str_eq("a", "a"));
    assert_false(str_eq("a", "ab"));
}

TEST(null_has_no_beginning_and_no_end)
{
    assert_false(str_starts(NULL, ""));
    assert_false(str_ends(NULL, ""));
    assert_true(str_is_empty(NULL));
    assert_true(str_is_empty(""));
    assert_false(str_is_empty(" "));
}

TEST(a_string_starts_and_ends_with_itself)
{
    assert_true(str_starts("abc", "abc"));
    assert_true(str_starts("abc", ""));
    assert_false(str_starts("ab", "abc"));
    assert_true(str_ends("abc", "abc"));
    assert_true(str_ends("abc", "bc"));
    assert_false(str_ends("bc", "abc"));
}

TEST(a_cut_copy_leaves_an_empty_string)
{
    char dst[4] = "xyz";

    assert_int_equal(str_copy(dst, sizeof(dst), "four"), -ENAMETOOLONG);
    assert_string_equal(dst, "");
    assert_int_equal(str_copy(dst, sizeof(dst), "abc"), 0);
    assert_string_equal(dst, "abc");
}

TEST(a_number_is_digits_and_nothing_else)
{
    static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "one", "1e3"};
    uint64_t n = 77;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(str_to_u64(bad[i], UINT64_MAX, &n), -EINVAL);
    assert_int_equal(str_to_u64(NULL, UINT64_MAX, &n), -EINVAL);
    assert_int_equal(n, 77);
    assert_int_equal(str_to_u64("007", UINT64_MAX, &n), 0);
    assert_int_equal(n, 7);
}

TEST(a_number_stays_in_its_range)
{
    uint64_t n = 77;

    assert_int_equal(str_to_u64("18446744073709551615", UINT64_MAX, &n), 0);
    assert_true(n == UINT64_MAX);
    assert_int_equal(str_to_u64("18446744073709551616", UINT64_MAX, &n), -ERANGE);
    assert_int_equal(str_to_u64("99999999999999999999999", UINT64_MAX, &n), -ERANGE);
    assert_int_equal(str_to_u64("99999999999999999999999x", UINT64_MAX, &n), -EINVAL);
    assert_int_equal(str_to_u64("5", 5, &n), 0);
    assert_int_equal(str_to_u64("6", 5, &n), -ERANGE);
    assert_int_equal(str_to_u64("15", 5, &n), -ERANGE);
    assert_int_equal(str_to_u64("65536", 65535, &n), -ERANGE);
    assert_int_equal(str_to_u64("0", 0, &n), 0);
    assert_int_equal(str_to_u64("1", 0, &n), -ERANGE);
}

TEST(a_signed_number_reaches_both_ends)
{
    int64_t n = 0;

    assert_int_equal(str_to_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &n), 0);
    assert_true(n == INT64_MIN);
    assert_int_equal(str_to_i64("9223372036854775807", INT64_MIN, INT64_MAX, &n), 0);
    assert_true(n == INT64_MAX);
    assert_int_equal(str_to_i64("9223372036854775808", INT64_MIN, INT64_MAX, &n), -ERANGE);
    assert_int_equal(str_to_i64("-9223372036854775809", INT64_MIN, INT64_MAX, &n), -ERANGE);
    assert_int_equal(str_to_i64("-21", -20, 19, &n), -ERANGE);
    assert_int_equal(str_to_i64("--1", -20, 19, &n), -EINVAL);
    assert_int_equal(str_to_i64("-", -20, 19, &n), -EINVAL);
    assert_int_equal(str_to_i64(NULL, -20, 19, &n), -EINVAL);
}

TEST(sizes_are_read_as_people_write_them)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"0", 0},
        {"1073741824", UINT64_C(1) << 30},
        {"512M", UINT64_C(512) << 20},
        {"512MB", UINT64_C(512) << 20},
        {"16G", UINT64_C(16) << 30},
        {"16GiB", UINT64_C(16) << 30},
        {"16gib", UINT64_C(16) << 30},
        {"1.5T", UINT64_C(3) << 39},
        {"0.5k", 512},
        {"12B", 12},
        {"0.3333333333333333333333K", 341},
        {"1024P", UINT64_C(1) << 60},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        uint64_t bytes = 77;

        assert_ok(size_parse(rows[i].text, &bytes, &err), &err);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

TEST(what_is_no_size_is_refused_with_examples)
{
    static const char *const bad[] = {"", "G", "16i", "16Gi", "16iB", "1.5", "1.5B", "1.", "1.G",
        ".5G", "-1", "1 G", "1GG", "1GBB"};
    uint64_t bytes = 77;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(size_parse(bad[i], &bytes, NULL), -EINVAL);
    assert_int_equal(size_parse(NULL, &bytes, NULL), -EINVAL);
    assert_fails(size_parse("16i", &bytes, &err), &err, -EINVAL,
        "'16i' is not a size; write bytes or, for example, 512M, 16GiB, 1.5T");
    assert_int_equal(bytes, 77);
}

TEST(a_size_over_an_exbibyte_is_too_large)
{
    uint64_t bytes = 77;
    struct err err;

    assert_fails(size_parse("1025P", &bytes, &err), &err, -ERANGE,
        "'1025P' is too large; the most is 1024P");
    assert_int_equal(size_parse("1024.1P", &bytes, NULL), -ERANGE);
    assert_int_equal(size_parse("1152921504606846977", &bytes, NULL), -ERANGE);
    assert_int_equal(size_parse("99999999999999999999999999G", &bytes, NULL), -ERANGE);
    assert_int_equal(bytes, 77);
}

TEST(sizes_are_written_with_at_most_one_decimal)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {UINT64_C(512) << 20, "512 MiB"},
        {UINT64_C(3) << 29, "1.5 GiB"},
        {(UINT64_C(1) << 20) - 1, "1 MiB"},
        {UINT64_MAX, "16 EiB"},
    };
    char text[SIZE_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(size_format(rows[i].bytes, text), rows[i].text);
}

static void check_escape(const char *in, size_t len, size_t max, const char *want)
{
    char *out = str_escape(in, len, max);

    assert_string_equal(out, want);
    free(out);
}

#define ESCAPES(in, max, want) check_escape((in), sizeof(in) - 1, (max), (want))

TEST(untrusted_bytes_become_printable)
{
    ESCAPES("plain 'text'", 100, "plain 'text'");
    ESCAPES("a\nb\x7f\0c", 100, "a\\x0ab\\x7f\\x00c");
    ESCAPES("\x1b[31m", 100, "\\x1b[31m");
    ESCAPES("gr\xc3\xbc\xc3\x9f", 100, "gr\xc3\xbc\xc3\x9f");
    ESCAPES("\xf0\x9f\x98\x80", 100, "\xf0\x9f\x98\x80");
    ESCAPES("", 100, "");
}

TEST(what_only_looks_like_utf8_is_escaped)
{
    ESCAPES("\xc0\xaf", 100, "\\xc0\\xaf");                   /* overlong */
    ESCAPES("\xe0\x80\xaf", 100, "\\xe0\\x80\\xaf");          /* overlong */
    ESCAPES("\xed\xa0\x80", 100, "\\xed\\xa0\\x80");          /* surrogate */
    ESCAPES("\xf4\x90\x80\x80", 100, "\\xf4\\x90\\x80\\x80"); /* over U+10FFFF */
    ESCAPES("\xf8\x88\x80\x80\x80", 100, "\\xf8\\x88\\x80\\x80\\x80");
    ESCAPES("\xc3", 100, "\\xc3");          /* cut */
    ESCAPES("\xe2\x82", 100, "\\xe2\\x82"); /* cut */
    ESCAPES("\xc2\x9b", 100, "\\xc2\\x9b"); /* C1 control */
    ESCAPES("a\xe2\x80\xae"
            "b",
        100, "a\\xe2\\x80\\xaeb"); /* right-to-left override */
}

TEST(a_long_text_is_cut_with_dots_inside_the_bound)
{
    ESCAPES("abcdef", 6, "abcdef");
    ESCAPES("abcdefg", 6, "abc...");
    ESCAPES("abc\n\n", 6, "abc...");
    ESCAPES("\n\n\n", 8, "\\x0a...");
    ESCAPES("\xc3\xbc\xc3\xbc\xc3\xbc", 5, "\xc3\xbc...");
    ESCAPES("abcd", 3, "...");
    ESCAPES("abcd", 2, "..");
    ESCAPES("abcd", 0, "");
}

TEST(clean_text_has_no_control_characters)
{
    assert_true(str_is_clean("", 0));
    assert_true(str_is_clean("gr\xc3\xbc\xc3\x9f", 6));
    assert_false(str_is_clean("gr\xc3\xbc\xc3\x9f", 5));
    assert_false(str_is_clean("a\tb", 3));
    assert_false(str_is_clean("a\0b", 3));
}

TEST(a_name_says_what_is_wrong_with_it)
{
    char longest[NAME_MAX_LEN + 2];
    struct err err = ERR_INIT;

    assert_ok(name_check("session name", "Train-7_b.2", &err), &err);
    assert_ok(name_check("session name", "7", &err), &err);
    assert_fails(name_check("session name", "", &err), &err, -EINVAL, "session name is empty");
    assert_fails(name_check("session name", NULL, &err), &err, -EINVAL, "session name is empty");
    assert_fails(name_check("user", "-rf", &err), &err, -EINVAL,
        "user '-rf' must start with a letter or digit");
    assert_fails(name_check("user", "a b", &err), &err, -EINVAL,
        "user 'a b' may have only letters, digits, '-', '_' and '.'");
    assert_fails(name_check("user", "a\n", &err), &err, -EINVAL,
        "user 'a\\x0a' may have only letters, digits, '-', '_' and '.'");
    assert_int_equal(name_check("user", "..", NULL), -EINVAL);
    assert_int_equal(name_check("user", "\xc3\xbc", NULL), -EINVAL);
    assert_int_equal(name_check("user", "a/b", NULL), -EINVAL);

    memset(longest, 'a', sizeof(longest));
    longest[NAME_MAX_LEN] = '\0';
    assert_int_equal(name_check("user", longest, NULL), 0);
    longest[NAME_MAX_LEN] = 'a';
    longest[NAME_MAX_LEN + 1] = '\0';
    assert_int_equal(name_check("user", longest, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is longer than 63 characters"));
}

TEST(distance_counts_the_edits)
{
    char longer[66];

    assert_int_equal(str_distance("", ""), 0);
    assert_int_equal(str_distance("listen", "listen"), 0);
    assert_int_equal(str_distance("lisen", "listen"), 1);
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    assert_int_equal(str_distance("", "abc"), 3);
    assert_int_equal(str_distance("abc", ""), 3);
    memset(longer, 'a', 65);
    longer[65] = '\0';
    assert_int_equal(str_distance(longer, longer), 64);
    longer[64] = '\0';
    assert_int_equal(str_distance(longer, longer), 0);
    assert_int_equal(str_distance(longer, ""), 64);
}

TEST(a_made_uuid_is_random_and_of_version_four)
{
    char a[UUID_TEXT_LEN + 1], b[UUID_TEXT_LEN + 1];

    uuid_make(a);
    uuid_make(b);
    assert_true(uuid_is_valid(a));
    assert_true(uuid_is_valid(b));
    assert_string_not_equal(a, b);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
}

TEST(a_uuid_has_lower_case_digits_and_dashes_in_place)
{
    assert_true(uuid_is_valid("00000000-0000-0000-0000-000000000001"));
    assert_false(uuid_is_valid(NULL));
    assert_false(uuid_is_valid(""));
    assert_false(uuid_is_valid("00000000-0000-0000-0000-00000000000"));
    assert_false(uuid_is_valid("00000000-0000-0000-0000-0000000000011"));
    assert_false(uuid_is_valid("0000000A-0000-0000-0000-000000000001"));
    assert_false(uuid_is_valid("000000000000-0000-0000-0000-00000001"));
    assert_false(uuid_is_valid("0000000g-0000-0000-0000-000000000001"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_equals_only_null),
        cmocka_unit_test(null_has_no_beginning_and_no_end),
        cmocka_unit_test(a_string_starts_and_ends_with_itself),
        cmocka_unit_test(a_cut_copy_leaves_an_empty_string),
        cmocka_unit_test(a_number_is_digits_and_nothing_else),
        cmocka_unit_test(a_number_stays_in_its_range),
        cmocka_unit_test(a_signed_number_reaches_both_ends),
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(what_is_no_size_is_refused_with_examples),
        cmocka_unit_test(a_size_over_an_exbibyte_is_too_large),
        cmocka_unit_test(sizes_are_written_with_at_most_one_decimal),
        cmocka_unit_test(untrusted_bytes_become_printable),
        cmocka_unit_test(what_only_looks_like_utf8_is_escaped),
        cmocka_unit_test(a_long_text_is_cut_with_dots_inside_the_bound),
        cmocka_unit_test(clean_text_has_no_control_characters),
        cmocka_unit_test(a_name_says_what_is_wrong_with_it),
        cmocka_unit_test(distance_counts_the_edits),
        cmocka_unit_test(a_made_uuid_is_random_and_of_version_four),
        cmocka_unit_test(a_uuid_has_lower_case_digits_and_dashes_in_place),
    };

    return RUN_TESTS(tests);
}
