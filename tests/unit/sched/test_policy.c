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

static int read_text(const char *text, struct pass_options *to, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL;

    assert_int_equal(json_parse(text, strlen(text), 4096, &body, NULL), 0);
    return policy_read(body, to, err);
}

static void an_object_sets_what_it_has(void **state)
{
    struct pass_options o = pass_default;

    assert_works(read_text("{\"reservations\": 3, \"patience_usec\": 0}", &o, &err));
    assert_int_equal(o.reservations, 3);
    assert_int_equal(o.patience_usec, 0);
    assert_int_equal(o.turns_milli, pass_default.turns_milli);
}

static void what_no_policy_has_is_refused_by_its_name(void **state)
{
    struct pass_options o = pass_default;

    assert_fails(read_text("{\"reservation\": 3}", &o, &err), -EINVAL,
        "there is no 'reservation' in the policy");
    assert_fails(read_text("{\"reservations\": -1}", &o, &err), -EINVAL,
        "'reservations' must be a whole number");
    assert_fails(read_text("{\"reservations\": \"3\"}", &o, &err), -EINVAL,
        "'reservations' must be a whole number");
    assert_fails(read_text("{\"turns_milli\": 1001}", &o, &err), -ERANGE,
        "'turns_milli' must be at most 1000");
    assert_fails(
        read_text("[]", &o, &err), -EINVAL, "a policy is an object like {\"reservations\": 16}");
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
        cmocka_unit_test(an_object_sets_what_it_has),
        cmocka_unit_test(what_no_policy_has_is_refused_by_its_name),
        cmocka_unit_test(the_defaults_can_be_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
