/* How often an address may be wrong. */
#include "manager/throttle.h"
#include "unit.h"

#define SEC UINT64_C(1000000)
#define NOW (UINT64_C(1000) * SEC)

static void ten_wrong_tries_are_free_and_the_next_waits(void **state)
{
    struct throttle t;

    throttle_init(&t);
    for (int i = 0; i < THROTTLE_TRIES; i++) {
        assert_int_equal(throttle_wait_usec(&t, "10.0.0.1", NOW), 0);
        throttle_count(&t, "10.0.0.1", NOW);
    }
    assert_int_equal(throttle_wait_usec(&t, "10.0.0.1", NOW), THROTTLE_EACH_USEC);
    assert_int_equal(throttle_wait_usec(&t, "10.0.0.2", NOW), 0);
    assert_int_equal(throttle_wait_usec(&t, "10.0.0.1", NOW + THROTTLE_EACH_USEC - 1), 1);
    assert_int_equal(throttle_wait_usec(&t, "10.0.0.1", NOW + THROTTLE_EACH_USEC), 0);
    throttle_count(&t, "10.0.0.1", NOW + THROTTLE_EACH_USEC);
    assert_int_equal(
        throttle_wait_usec(&t, "10.0.0.1", NOW + THROTTLE_EACH_USEC), THROTTLE_EACH_USEC);
    throttle_done(&t);
}

static void after_a_while_all_is_forgotten(void **state)
{
    struct throttle t;
    uint64_t later = NOW + THROTTLE_TRIES * THROTTLE_EACH_USEC;

    throttle_init(&t);
    for (int i = 0; i < THROTTLE_TRIES; i++)
        throttle_count(&t, "10.0.0.1", NOW);
    for (int i = 0; i < THROTTLE_TRIES; i++) {
        assert_int_equal(throttle_wait_usec(&t, "10.0.0.1", later), 0);
        throttle_count(&t, "10.0.0.1", later);
    }
    assert_int_equal(throttle_wait_usec(&t, "10.0.0.1", later), THROTTLE_EACH_USEC);
    throttle_done(&t);
}

static void strangers_beyond_what_is_kept_share_one_count(void **state)
{
    struct throttle t;
    char address[24];

    throttle_init(&t);
    for (int i = 0; i < THROTTLE_ADDRESSES_MAX + THROTTLE_TRIES; i++) {
        snprintf(address, sizeof(address), "10.1.%d.%d", i / 256, i % 256);
        throttle_count(&t, address, NOW);
    }
    assert_true(map_count(&t.addresses) <= THROTTLE_ADDRESSES_MAX + 1);
    assert_int_equal(throttle_wait_usec(&t, "192.0.2.1", NOW), THROTTLE_EACH_USEC);
    assert_int_equal(throttle_wait_usec(&t, "10.1.0.1", NOW), 0);
    /* When the old ones are forgotten, there is room for each of its own again. */
    throttle_count(&t, "192.0.2.1", NOW + 100 * SEC);
    assert_int_equal(map_count(&t.addresses), 1);
    throttle_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_wrong_tries_are_free_and_the_next_waits),
        cmocka_unit_test(after_a_while_all_is_forgotten),
        cmocka_unit_test(strangers_beyond_what_is_kept_share_one_count),
    };

    return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
