#include "agent/ct/volume.h"
#include "fixture.h"

TEST(a_folder_comes_before_what_is_mounted_in_it)
{
    uint32_t *order = volume_order(&fixture);

    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    free(order);
}

TEST(a_volume_covers_what_is_below_it_and_not_its_namesakes)
{
    assert_true(volume_covers(&fixture, "/home/work"));
    assert_true(volume_covers(&fixture, "/home/work/x"));
    assert_false(volume_covers(&fixture, "/home/work2"));
    assert_false(volume_covers(&fixture, "/home"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_comes_before_what_is_mounted_in_it),
        cmocka_unit_test(a_volume_covers_what_is_below_it_and_not_its_namesakes),
    };

    return RUN_TESTS(tests);
}
