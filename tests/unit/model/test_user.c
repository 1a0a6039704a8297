/* Identity: uids, subordinate ranges, the id map. */
#include "model/user.h"
#include "support/cm.h"

static struct user alice(void)
{
    return (struct user){.name = "alice", .role = ROLE_USER, .uid = 20001, .sub_base = 0x10000000};
}

static void automatic_users_do_not_overlap(void **state)
{
    struct user a = alice(), b = alice();

    assert_works(user_assign(&a, 0, &err));
    assert_int_equal(a.uid, 20001);
    assert_int_equal(a.sub_base, 0x10000000);
    assert_works(user_assign(&b, 1, &err));
    assert_int_equal(b.uid, 20002);
    assert_int_equal(b.sub_base, a.sub_base + USER_SUB_COUNT);
    for (uint32_t n = 0; n < 70000; n++) {
        if (user_assign(&a, n, NULL) < 0)
            continue;
        assert_works(user_check(&a, &err));
        assert_int_equal(a.uid, 20001 + n);
    }
}

static void there_is_an_end_of_automatic_users(void **state)
{
    struct user a = alice();

    assert_works(user_assign(&a, 61438, &err));
    assert_fails(
        user_assign(&a, 61439, &err), -ERANGE, "there is no automatic uid and range number 61439");
    assert_fails(user_assign(&a, UINT32_MAX, &err), -ERANGE,
        "there is no automatic uid and range number 4294967295");
    /* uid 65534 would be nobody's */
    assert_int_equal(user_assign(&a, 65534 - 20001, NULL), -ERANGE);
    assert_int_equal(a.uid, 20001 + 61438);
}

static void a_bad_user_is_refused_with_the_reason(void **state)
{
    struct user u = alice();

    assert_works(user_check(&u, &err));
    u.uid = 999;
    assert_fails(
        user_check(&u, &err), -EINVAL, "user 'alice': uid must be 1000 or higher, not 999");
    u.uid = 65534;
    assert_fails(user_check(&u, &err), -EINVAL, "user 'alice': uid 65534 is reserved");
    u = alice();
    u.uid = u.sub_base + 5;
    assert_fails(user_check(&u, &err), -EINVAL,
        "user 'alice': uid 268435461 lies inside the user's own subordinate range from 268435456");
    u = alice();
    u.sub_base = 65535;
    assert_fails(user_check(&u, &err), -EINVAL,
        "user 'alice': the subordinate range must start at 65536 or higher, not at 65535");
    u.sub_base = UINT32_MAX - USER_SUB_COUNT + 1;
    assert_fails(user_check(&u, &err), -EINVAL,
        "user 'alice': the subordinate range from 4294901760 is longer than there are uids");
    u.sub_base--;
    assert_works(user_check(&u, &err));
    u = alice();
    u.role = ROLE_NONE;
    assert_fails(
        user_check(&u, &err), -EINVAL, "user 'alice': role must be user, operator or admin");
    u.name[0] = '\0';
    assert_fails(user_check(&u, &err), -EINVAL, "user name is empty");
}

static void the_id_map_covers_65536_ids_without_a_gap(void **state)
{
    struct id_extent map[USER_EXTENTS];
    struct user u = alice();
    uint32_t next = 0;

    user_id_map(&u, map);
    for (size_t i = 0; i < USER_EXTENTS; i++) {
        assert_int_equal(map[i].inside, next);
        next += map[i].count;
    }
    assert_int_equal(next, 65536);
    assert_int_equal(map[0].outside, u.sub_base);
    assert_int_equal(map[1].inside, 1000);
    assert_int_equal(map[1].outside, u.uid);
    assert_int_equal(map[1].count, 1);
    assert_int_equal(map[2].outside, u.sub_base + 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(automatic_users_do_not_overlap),
        cmocka_unit_test(there_is_an_end_of_automatic_users),
        cmocka_unit_test(a_bad_user_is_refused_with_the_reason),
        cmocka_unit_test(the_id_map_covers_65536_ids_without_a_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
