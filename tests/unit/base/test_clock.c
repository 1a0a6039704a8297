#include "base/clock.h"
#include "unit.h"

#define SEC USEC_PER_SEC
#define MINUTE (60 * SEC)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

TEST(time_goes_on)
{
    uint64_t mono = clock_mono_usec(), real = clock_real_usec();

    assert_true(mono > 0);
    assert_true(clock_mono_usec() >= mono);
    assert_true(real > UINT64_C(1700000000) * SEC);
}

TEST(a_time_is_written_in_utc_with_microseconds)
{
    char text[CLOCK_TEXT_MAX];

    assert_string_equal(clock_format(0, text), "1970-01-01T00:00:00.000000Z");
    assert_string_equal(
        clock_format(UINT64_C(1796049468123456), text), "2026-11-30T14:37:48.123456Z");
    assert_true(strlen(clock_format(UINT64_MAX, text)) < CLOCK_TEXT_MAX);
}

TEST(times_are_read_in_every_form_of_rfc_3339)
{
    static const struct {
        const char *text;
        uint64_t usec;
    } rows[] = {
        {"2026-11-30T14:37:48.123456Z", UINT64_C(1796049468123456)},
        {"2026-11-30T14:37:48Z", UINT64_C(1796049468000000)},
        {"2026-11-30t14:37:48.5z", UINT64_C(1796049468500000)},
        {"2026-11-30 14:37:48.123456789Z", UINT64_C(1796049468123456)},
        {"2026-11-30T15:37:48+01:00", UINT64_C(1796049468000000)},
        {"2026-11-30T09:07:48-05:30", UINT64_C(1796049468000000)},
        {"1970-01-01T00:00:00Z", 0},
        {"2024-02-29T00:00:00Z", UINT64_C(1709164800000000)},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        uint64_t usec = 77;

        assert_ok(clock_parse(rows[i].text, &usec, &err), &err);
        assert_int_equal(usec, rows[i].usec);
    }
}

TEST(what_is_no_time_is_refused)
{
    static const char *const bad[] = {"", "now", "2026-11-30", "2026-11-30T14:37:48",
        "2026-11-30T14:37Z", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-11-31T00:00:00Z",
        "2026-11-30T24:00:00Z", "2026-11-30T14:60:00Z", "2026-11-30T14:37:60Z",
        "2026-11-30T14:37:48.Z", "2026-11-30T14:37:48Zx", "2026-11-30T14:37:48+1:00",
        "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", "26-11-30T14:37:48Z",
        "2026-11-00T14:37:48Z"};
    uint64_t usec = 77;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(clock_parse(bad[i], &usec, NULL), -EINVAL);
    assert_int_equal(clock_parse(NULL, &usec, NULL), -EINVAL);
    assert_fails(clock_parse("tomorrow", &usec, &err), &err, -EINVAL,
        "'tomorrow' is not a time; write it like 2026-11-30T14:37:48Z");
    assert_int_equal(usec, 77);
}

TEST(durations_are_read_with_units_and_in_slurms_forms)
{
    static const struct {
        const char *text;
        uint64_t usec;
    } rows[] = {
        {"90s", 90 * SEC},
        {"30m", 30 * MINUTE},
        {"8h", 8 * HOUR},
        {"2d", 2 * DAY},
        {"1h30m", HOUR + 30 * MINUTE},
        {"1d 2h", DAY + 2 * HOUR},
        {"1d1h1m1s1ms1us", DAY + HOUR + MINUTE + SEC + 1001},
        {"500ms", SEC / 2},
        {"0", 0},
        {"30", 30 * MINUTE},
        {"1:30", MINUTE + 30 * SEC},
        {"90:00", 90 * MINUTE},
        {"01:02:03", HOUR + 2 * MINUTE + 3 * SEC},
        {"1-2", DAY + 2 * HOUR},
        {"1-2:3", DAY + 2 * HOUR + 3 * MINUTE},
        {"1-02:03:04", DAY + 2 * HOUR + 3 * MINUTE + 4 * SEC},
        {"7-00:00:00", 7 * DAY},
        {"3650d", 3650 * DAY},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        uint64_t usec = 77;

        assert_ok(duration_parse(rows[i].text, &usec, &err), &err);
        assert_int_equal(usec, rows[i].usec);
    }
}

TEST(what_is_no_duration_is_refused_with_the_forms)
{
    static const char *const bad[] = {"", " ", "x", "s", "-1", "1-", "1:2:3:4", "1-2:3:4:5",
        "1:", ":1", "30m1h", "1h1h", "1.5h", "1hh", "1h 30", "1h ", "1w", "1 h", "5sm", "1--2",
        "1-2-3"};
    uint64_t usec = 77;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(duration_parse(bad[i], &usec, NULL), -EINVAL);
    assert_int_equal(duration_parse(NULL, &usec, NULL), -EINVAL);
    assert_fails(duration_parse("soon", &usec, &err), &err, -EINVAL,
        "'soon' is not a duration; write 90s, 30m, 8h, 2d, 1h30m, or minutes, "
        "HH:MM:SS, D-HH:MM:SS");
    assert_int_equal(usec, 77);
}

TEST(a_duration_lasts_ten_years_at_most)
{
    static const char *const bad[] = {"3651d", "99999999999999999999999999d",
        "18446744073709551616", "3650d1us", "3650-00:00:01", "315360001s"};
    uint64_t usec = 77;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(duration_parse(bad[i], &usec, NULL), -EINVAL);
    assert_fails(
        duration_parse("4000d", &usec, &err), &err, -EINVAL, "'4000d' is longer than 10 years");
    assert_int_equal(usec, 77);
}

TEST(durations_are_written_in_two_units)
{
    static const struct {
        uint64_t usec;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {7, "7us"},
        {120000, "120ms"},
        {45 * SEC, "45s"},
        {90 * SEC, "1m 30s"},
        {HOUR + 30 * MINUTE + 59 * SEC, "1h 30m"},
        {2 * DAY + 3 * HOUR, "2d 3h"},
        {2 * DAY + 59 * MINUTE, "2d"},
        {SEC + 1500, "1s 1ms"},
    };
    char text[DURATION_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(duration_format(rows[i].usec, text), rows[i].text);
    assert_true(strlen(duration_format(UINT64_MAX, text)) < DURATION_TEXT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_goes_on),
        cmocka_unit_test(a_time_is_written_in_utc_with_microseconds),
        cmocka_unit_test(times_are_read_in_every_form_of_rfc_3339),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(durations_are_read_with_units_and_in_slurms_forms),
        cmocka_unit_test(what_is_no_duration_is_refused_with_the_forms),
        cmocka_unit_test(a_duration_lasts_ten_years_at_most),
        cmocka_unit_test(durations_are_written_in_two_units),
    };

    return RUN_TESTS(tests);
}
