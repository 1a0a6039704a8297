#include "base/buf.h"
#include "unit.h"

TEST(a_new_buffer_has_no_data_and_gives_an_empty_text)
{
    struct buf b = BUF_INIT(10);
    char *text;

    assert_null(b.data);
    text = buf_take(&b);
    assert_string_equal(text, "");
    free(text);
    buf_done(&b);
}

TEST(appended_bytes_are_always_terminated)
{
    struct buf b = BUF_INIT(1000);

    for (int i = 0; i < 100; i++) {
        assert_int_equal(buf_puts(&b, "ab"), 0);
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 200);
    assert_int_equal(buf_printf(&b, "%d!", 42), 0);
    assert_string_equal(b.data + 200, "42!");
    buf_done(&b);
    assert_null(b.data);
    assert_int_equal(b.max, 1000);
}

TEST(an_empty_append_makes_an_empty_string)
{
    struct buf b = BUF_INIT(0);

    assert_int_equal(buf_append(&b, NULL, 0), 0);
    assert_string_equal(b.data, "");
    assert_int_equal(buf_puts(&b, "x"), -EMSGSIZE);
    buf_done(&b);
}

TEST(what_does_not_fit_is_not_appended_at_all)
{
    struct buf b = BUF_INIT(5);

    assert_int_equal(buf_puts(&b, "abc"), 0);
    assert_int_equal(buf_puts(&b, "def"), -EMSGSIZE);
    assert_int_equal(buf_printf(&b, "%s", "def"), -EMSGSIZE);
    assert_int_equal(buf_append(&b, "x", SIZE_MAX), -EMSGSIZE);
    assert_string_equal(b.data, "abc");
    assert_int_equal(buf_puts(&b, "de"), 0);
    assert_string_equal(b.data, "abcde");
    buf_done(&b);
}

TEST(consumed_bytes_make_room)
{
    struct buf b = BUF_INIT(5);

    assert_int_equal(buf_puts(&b, "abcde"), 0);
    buf_consume(&b, 0);
    buf_consume(&b, 3);
    assert_string_equal(b.data, "de");
    assert_int_equal(buf_puts(&b, "fgh"), 0);
    assert_string_equal(b.data, "defgh");
    buf_consume(&b, 5);
    assert_string_equal(b.data, "");
    buf_done(&b);
}

TEST(a_taken_text_leaves_the_buffer_usable)
{
    struct buf b = BUF_INIT(5);
    char *text;

    assert_int_equal(buf_puts(&b, "abc"), 0);
    text = buf_take(&b);
    assert_string_equal(text, "abc");
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_puts(&b, "defgh"), 0);
    assert_string_equal(b.data, "defgh");
    free(text);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_buffer_has_no_data_and_gives_an_empty_text),
        cmocka_unit_test(appended_bytes_are_always_terminated),
        cmocka_unit_test(an_empty_append_makes_an_empty_string),
        cmocka_unit_test(what_does_not_fit_is_not_appended_at_all),
        cmocka_unit_test(consumed_bytes_make_room),
        cmocka_unit_test(a_taken_text_leaves_the_buffer_usable),
    };

    return RUN_TESTS(tests);
}
