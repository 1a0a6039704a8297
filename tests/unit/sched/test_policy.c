/* The scheduler's knobs by name. */
#include "sched/policy.h"
#include "support/cm.h"

static void every_knob_keeps_what_it_is_set_to(void **state)
{
    struct pass_options o = pass_default;
    uint64_t n = 1;

    for (const struct policy_knob *k = policy_knobs; k->name; k++)
        assert_works(policy_set(&o, k, n++, &err));
    n = 1;
    for (const struct policy_knob *k = policy_knobs; k->name; k++) {
        assert_int_equal(policy_get(&o, k), n++);
        assert_ptr_equal(policy_find(k->name), k);
    }
    assert_null(policy_find("nothing"));
}

static void what_is_out_of_range_changes_nothing(void **state)
{
    struct pass_options o = pass_default;
    struct err err = ERR_INIT;

    assert_int_equal(policy_set(&o, policy_find("reservations"), 1001, &err), -ERANGE);
    assert_string_equal(err_text(&err), "'reservations' must be at most 1000");
    assert_memory_equal(&o, &pass_default, sizeof(o));
}

static void the_defaults_can_be_set(void **state)
{
    struct pass_options o = pass_default;

    for (const struct policy_knob *k = policy_knobs; k->name; k++)
        assert_works(policy_set(&o, k, policy_get(&pass_default, k), &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_knob_keeps_what_it_is_set_to),
        cmocka_unit_test(what_is_out_of_range_changes_nothing),
        cmocka_unit_test(the_defaults_can_be_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
