/* conmon's log lines to frames: every byte, whatever it is. */
#include "agent/logfile.h"
#include "base/buf.h"
#include "unit.h"
#include "wire/logframe.h"

#define STAMP "2026-11-30T14:37:48.123456789+00:00 "
#define STAMP_USEC UINT64_C(1796049468123456)

static struct logline parse(const char *text)
{
    struct logline l;

    assert_int_equal(logline_parse(text, strlen(text), &l), strlen(text));
    return l;
}

TEST(a_whole_line_has_its_newline_back)
{
    struct logline l = parse(STAMP "stdout F hello\n");

    assert_int_equal(l.channel, 1);
    assert_int_equal(l.usec, STAMP_USEC);
    assert_int_equal(l.len, 5);
    assert_memory_equal(l.data, "hello", 5);
    assert_true(l.newline);
}

TEST(a_part_has_none)
{
    struct logline l = parse(STAMP "stderr P half a l\n");

    assert_int_equal(l.channel, 2);
    assert_int_equal(l.len, 8);
    assert_false(l.newline);
}

TEST(an_empty_line_is_a_newline)
{
    struct logline l = parse(STAMP "stdout F \n");

    assert_int_equal(l.len, 0);
    assert_true(l.newline);
}

TEST(another_time_zone_is_the_same_moment)
{
    struct logline l = parse("2026-11-30T23:37:48.123456789+09:00 stdout F x\n");

    assert_int_equal(l.usec, STAMP_USEC);
}

TEST(a_line_that_is_not_complete_waits)
{
    struct logline l;

    assert_int_equal(logline_parse(STAMP "stdout F hel", strlen(STAMP "stdout F hel"), &l), 0);
    assert_int_equal(logline_parse("", 0, &l), 0);
}

TEST(what_is_no_log_line_is_told)
{
    static const char *const bad[] = {
        "\n",
        "hello\n",
        STAMP "\n",
        STAMP "stdlog F x\n",
        STAMP "stdout X x\n",
        STAMP "stdout Fx\n",
        "2026-11-30 14:37:48.123456789+00:00 stdout F x\n",
        "2026-11-30T14:37:48,123456789+00:00 stdout F x\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct logline l;
        assert_int_equal(logline_parse(bad[i], strlen(bad[i]), &l), -EINVAL);
    }
}

/* The bytes of a channel in the frames, and the last frame's next. */
static uint64_t collect(const struct buf *frames, uint8_t channel, struct buf *out)
{
    uint64_t next = 0;

    for (size_t at = 0; at < frames->len;) {
        struct logframe f;
        int head = logframe_parse(frames->data + at, frames->len - at, &f);
        assert_int_equal(head, LOGFRAME_HEADER);
        if (f.channel == channel)
            buf_append(out, frames->data + at + head, f.len);
        assert_true(f.next > next);
        next = f.next;
        at += (size_t)head + f.len;
    }
    return next;
}

TEST(binary_bytes_come_through_exactly)
{
    struct buf log = BUF_INIT(1 << 20), frames = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
    char bytes[256], want[257];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    /* conmon ends its lines at the newline within */
    buf_puts(&log, STAMP "stdout F ");
    buf_append(&log, bytes, '\n');
    buf_puts(&log, "\n" STAMP "stdout P ");
    buf_append(&log, bytes + '\n' + 1, 256 - '\n' - 1);
    buf_puts(&log, "\n");
    assert_int_equal(logfile_to_frames(log.data, log.len, 1000, &frames), log.len);
    assert_int_equal(collect(&frames, 1, &out), 1000 + log.len);
    memcpy(want, bytes, 256);
    assert_int_equal(out.len, 256);
    assert_memory_equal(out.data, want, 256);
    buf_done(&log);
    buf_done(&frames);
    buf_done(&out);
}

TEST(streams_stay_apart_and_in_order)
{
    static const char log[] = STAMP "stdout F one\n" STAMP "stderr F two\n" STAMP
                                    "stdout F three\n";
    struct buf frames = BUF_INIT(4096), out = BUF_INIT(4096);

    assert_int_equal(logfile_to_frames(log, strlen(log), 0, &frames), strlen(log));
    assert_int_equal(collect(&frames, 1, &out), strlen(log));
    assert_string_equal(out.data, "one\nthree\n");
    buf_consume(&out, out.len);
    collect(&frames, 2, &out);
    assert_string_equal(out.data, "two\n");
    buf_done(&frames);
    buf_done(&out);
}

TEST(the_rest_of_a_broken_line_is_left_and_a_bad_one_passed_over)
{
    static const char log[] = "tail of a line that was cut\n" STAMP "stdout F whole\n" STAMP "stdo";
    struct buf frames = BUF_INIT(4096), out = BUF_INIT(4096);
    size_t used = logfile_to_frames(log, strlen(log), 0, &frames);

    assert_int_equal(used, strlen(log) - strlen(STAMP "stdo"));
    collect(&frames, 1, &out);
    assert_string_equal(out.data, "whole\n");
    buf_done(&frames);
    buf_done(&out);
}

TEST(a_malformed_frame_is_refused)
{
    char head[LOGFRAME_HEADER] = {3};
    struct logframe f;

    assert_int_equal(logframe_parse(head, 23, &f), -EAGAIN);
    assert_int_equal(logframe_parse(head, sizeof(head), &f), -EINVAL);
    head[0] = 1;
    head[7] = 1; /* 16 MiB */
    assert_int_equal(logframe_parse(head, sizeof(head), &f), -EINVAL);
    head[0] = 0;
    head[7] = 0;
    assert_int_equal(logframe_parse(head, sizeof(head), &f), LOGFRAME_HEADER);
    head[4] = 1; /* an end with bytes */
    assert_int_equal(logframe_parse(head, sizeof(head), &f), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_line_has_its_newline_back),
        cmocka_unit_test(a_part_has_none),
        cmocka_unit_test(an_empty_line_is_a_newline),
        cmocka_unit_test(another_time_zone_is_the_same_moment),
        cmocka_unit_test(a_line_that_is_not_complete_waits),
        cmocka_unit_test(what_is_no_log_line_is_told),
        cmocka_unit_test(binary_bytes_come_through_exactly),
        cmocka_unit_test(streams_stay_apart_and_in_order),
        cmocka_unit_test(the_rest_of_a_broken_line_is_left_and_a_bad_one_passed_over),
        cmocka_unit_test(a_malformed_frame_is_refused),
    };

    return RUN_TESTS(tests);
}
