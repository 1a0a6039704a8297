/* WebSocket frames as RFC 6455 shows them, and UTF-8. */
#include "net/frame.h"
#include "unit.h"

TEST(the_examples_of_the_rfc_are_read)
{
    static const uint8_t hello[] = {
        0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58};
    uint8_t payload[5];
    struct frame f;

    assert_int_equal(frame_parse(hello, sizeof(hello), &f), 6);
    assert_true(f.fin && f.masked);
    assert_int_equal(f.op, FRAME_TEXT);
    assert_int_equal(f.len, 5);
    memcpy(payload, hello + 6, 5);
    frame_mask(payload, 5, f.mask, 0);
    assert_memory_equal(payload, "Hello", 5);
}

TEST(a_head_that_is_cut_anywhere_is_not_complete)
{
    static const uint8_t large[] = {0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4};
    struct frame f;

    for (size_t n = 0; n < sizeof(large); n++)
        assert_int_equal(frame_parse(large, n, &f), 0);
    assert_int_equal(frame_parse(large, sizeof(large), &f), 14);
    assert_int_equal(f.len, 65536);
}

TEST(what_is_formatted_is_read_again)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    static const uint64_t sizes[] = {0, 1, 125, 126, 127, 65535, 65536, UINT64_C(1) << 40};
    uint8_t head[FRAME_HEAD_MAX];
    struct frame f;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = frame_format(FRAME_BINARY, i % 2, sizes[i], NULL, head);

        assert_int_equal(frame_parse(head, n, &f), n);
        assert_int_equal(f.len, sizes[i]);
        assert_int_equal(f.fin, i % 2);
        assert_false(f.masked);
        n = frame_format(FRAME_BINARY, i % 2, sizes[i], mask, head);
        assert_int_equal(frame_parse(head, n, &f), n);
        assert_int_equal(f.len, sizes[i]);
        assert_true(f.masked);
        assert_memory_equal(f.mask, mask, 4);
    }
}

TEST(unmasking_in_pieces_is_unmasking_at_once)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    uint8_t whole[100], pieces[100];

    for (size_t cut = 0; cut <= 100; cut++) {
        for (size_t i = 0; i < 100; i++)
            whole[i] = pieces[i] = (uint8_t)(i * 7);
        frame_mask(whole, 100, mask, 0);
        frame_mask(pieces, cut, mask, 0);
        frame_mask(pieces + cut, 100 - cut, mask, cut);
        assert_memory_equal(whole, pieces, 100);
    }
}

TEST(utf8_is_told_from_what_only_looks_like_it)
{
    static const char *const good[] = {"", "ASCII and more", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "12345678\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4"};
    static const char *const bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc2",
        "\xe1\x80", "12345678\xff", "\xc2\xc2", "\xe1\x80\xc0"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(frame_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (frame_is_utf8(bad[i], strlen(bad[i])))
            fail_msg("row %zu was taken", i);
    }
}

TEST(close_codes_are_those_that_may_be_sent)
{
    static const unsigned bad[] = {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535};
    static const unsigned good[] = {1000, 1001, 1003, 1007, 1011, 1013, 3000, 4001, 4999};
    uint8_t payload[FRAME_CONTROL_MAX];
    char text[200];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(frame_close_code_is_valid(bad[i]));
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(frame_close_code_is_valid(good[i]));
    assert_int_equal(frame_format_close(1006, "x", payload), 0);
    assert_int_equal(frame_format_close(1000, "", payload), 2);
    memset(text, 'x', sizeof(text));
    memcpy(text + 122, "\xc3\xa9", 3); /* a character across the cut */
    assert_int_equal(frame_format_close(1000, text, payload), 124);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rfc_are_read),
        cmocka_unit_test(a_head_that_is_cut_anywhere_is_not_complete),
        cmocka_unit_test(what_is_formatted_is_read_again),
        cmocka_unit_test(unmasking_in_pieces_is_unmasking_at_once),
        cmocka_unit_test(utf8_is_told_from_what_only_looks_like_it),
        cmocka_unit_test(close_codes_are_those_that_may_be_sent),
    };

    return RUN_TESTS(tests);
}
