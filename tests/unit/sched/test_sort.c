#include "sched/sort.h"
#include "support/cm.h"
#include "support/prng.h"

#define COUNT 5000

static void assert_sorted(const struct sort_item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        assert_true(items[i - 1].key <= items[i].key);
        if (items[i - 1].key == items[i].key)
            assert_true(items[i - 1].value < items[i].value);
    }
}

static void records_are_in_the_order_of_their_keys_and_equal_ones_stay_in_theirs(
    UNUSED void **state)
{
    static const uint64_t spreads[] = {1, 3, 300, UINT64_C(1) << 40, UINT64_MAX};
    struct prng random = {prng_seed("sort")};
    struct sort_item items[COUNT];

    for (size_t s = 0; s < ARRAY_LEN(spreads); s++) {
        uint64_t before = 0, after = 0;

        for (uint32_t i = 0; i < COUNT; i++) {
            items[i] = (struct sort_item){prng_next(&random) % spreads[s], i};
            before ^= items[i].key * (i + 1);
        }
        sort_items(items, COUNT);
        assert_sorted(items, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            after ^= items[i].key * (items[i].value + 1);
        assert_true(before == after); /* each with its own key, none lost */
    }
}

static void nothing_and_one_record_are_sorted(UNUSED void **state)
{
    struct sort_item one = {7, 1};

    sort_items(NULL, 0);
    sort_items(&one, 1);
    assert_int_equal(one.key, 7);
    assert_int_equal(one.value, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_in_the_order_of_their_keys_and_equal_ones_stay_in_theirs),
        cmocka_unit_test(nothing_and_one_record_are_sorted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
