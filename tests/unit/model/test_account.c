/* Accounts: their bounds, and use over time. */
#include "model/account.h"
#include "support/cm.h"

#define HOUR (3600 * UINT64_C(1000000))
#define DAY (24 * HOUR)
#define NOON (20000 * DAY + 12 * HOUR)

static int check(struct account_quota *quotas, uint32_t count, struct err *err)
{
    struct account a;

    account_init(&a);
    STR_SET(a.name, "lab");
    a.quotas = quotas;
    a.quota_count = count;
    return account_check(&a, err);
}

static void a_right_is_between_guarantee_and_maximum(void **state)
{
    struct account_quota q[2] = {{.guarantee = 1000, .deserved = 2000, .max = 4000}};

    assert_works(check(q, 1, &err));
    q[0].guarantee = 3000;
    assert_fails(
        check(q, 1, &err), -EINVAL, "quota of all models: 'guarantee' is more than 'deserved'");
    q[0] = (struct account_quota){.gpu_model = "h100", .deserved = 5000, .max = 4000};
    assert_fails(check(q, 1, &err), -EINVAL, "quota of h100: 'deserved' is more than 'max'");
    q[0].deserved = ACCOUNT_NO_LIMIT;
    assert_works(check(q, 1, &err));
    q[1] = q[0];
    assert_fails(check(q, 2, &err), -EINVAL, "two quotas are for the same group and GPU model");
}

static void use_fades_by_half_lives(void **state)
{
    assert_int_equal(account_decay(1 << 20, 7 * DAY, 7 * DAY), 1 << 19);
    assert_int_equal(account_decay(1 << 20, 14 * DAY, 7 * DAY), 1 << 18);
    assert_int_equal(account_decay(1 << 20, 7 * DAY / 2, 7 * DAY), 3 << 18);
    assert_int_equal(account_decay(1 << 20, 1000 * DAY, 7 * DAY), 0);
    assert_int_equal(account_decay(1 << 20, 1000 * DAY, 0), 1 << 20);
}

static void a_window_forgets_what_is_older(void **state)
{
    struct account_use u = {0};

    account_use_add(&u, 100, 100, NOON, 0);
    account_use_add(&u, 50, 50, NOON + 2 * DAY, 0);
    assert_int_equal(u.used, 150);
    assert_int_equal(account_use_window(&u, 1, NOON + 2 * DAY), 50);
    assert_int_equal(account_use_window(&u, 3, NOON + 2 * DAY), 150);
    assert_int_equal(account_use_window(&u, 3, NOON + 3 * DAY), 50);
    assert_int_equal(account_use_window(&u, 28, NOON + 29 * DAY), 50);
    assert_int_equal(account_use_window(&u, 28, NOON + 1000 * DAY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_is_between_guarantee_and_maximum),
        cmocka_unit_test(use_fades_by_half_lives),
        cmocka_unit_test(a_window_forgets_what_is_older),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
