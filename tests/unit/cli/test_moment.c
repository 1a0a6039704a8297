/* Points in time as people write them; the local zone is one without summer time. */
#include "base/clock.h"
#include "cli/moment.h"
#include "unit.h"

#define NOON UINT64_C(1796094000000000) /* 2026-12-01T03:00:00Z, 12:00 in Seoul */
#define HOUR (3600 * USEC_PER_SEC)

static void is(const char *text, uint64_t usec)
{
    uint64_t got = 0;

    assert_int_equal(moment_parse(text, NOON, &got, NULL), 0);
    assert_int_equal(got, usec);
}

static void a_span_counts_from_now(void **state)
{
    is("2h30m", NOON + 5 * HOUR / 2);
    is("1d", NOON + 24 * HOUR);
}

static void a_time_of_day_is_the_next_one(void **state)
{
    is("18:00", NOON + 6 * HOUR);
    is("11:00", NOON + 23 * HOUR);
    is("12:00:30", NOON + 30 * USEC_PER_SEC);
}

static void a_date_is_local_and_a_zone_is_a_zone(void **state)
{
    is("2026-12-02", NOON + 12 * HOUR);
    is("2026-12-01T13:00", NOON + HOUR);
    is("2026-12-01 13:00:01", NOON + HOUR + USEC_PER_SEC);
    is("2026-12-01T04:00:00Z", NOON + HOUR);
    is("2026-12-01T13:00:00+09:00", NOON + HOUR);
}

static void anything_else_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "30", "soon", "25:00", "2026-13-01", "2026-12-01T13", "18:00 or so"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        uint64_t got;

        assert_int_equal(moment_parse(bad[i], NOON, &got, &err), -EINVAL);
        assert_string_equal(err_text(&err),
            "must be a time like 2h30m (from now), 18:00, 2026-12-24T18:00 or "
            "2026-12-24T18:00:00+09:00");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_counts_from_now),
        cmocka_unit_test(a_time_of_day_is_the_next_one),
        cmocka_unit_test(a_date_is_local_and_a_zone_is_a_zone),
        cmocka_unit_test(anything_else_is_refused),
    };

    setenv("TZ", "KST-9", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
