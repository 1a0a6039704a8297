/* Who has had least of what is his. */
#include "sched/tree.h"
#include "support/cm.h"

static uint32_t account(struct tree *t, const char *name, uint32_t parent, uint32_t shares)
{
    return tree_put(
        t, &(struct tree_account){.name = (char *)name, .parent = parent, .shares = shares});
}

static void accounts_are_compared_before_their_users(void **state)
{
    struct tree t;
    uint32_t red, blue, leaves[4];
    uint64_t used[4] = {0};

    tree_init(&t);
    red = account(&t, "red", TREE_NONE, 1);
    blue = account(&t, "blue", TREE_NONE, 1);
    leaves[0] = tree_leaf(&t, red, 1);
    leaves[1] = tree_leaf(&t, red, 2);
    leaves[2] = tree_leaf(&t, blue, 3);
    leaves[3] = tree_leaf(&t, blue, 4);
    used[0] = 10, used[1] = 0, used[2] = 3, used[3] = 4;
    tree_fairness(&t, used);
    /* Blue has had 7, red 10: blue's users come first, whoever has had none. */
    assert_true(t.leaves[leaves[2]].fair > t.leaves[leaves[3]].fair);
    assert_true(t.leaves[leaves[3]].fair > t.leaves[leaves[1]].fair);
    assert_true(t.leaves[leaves[1]].fair > t.leaves[leaves[0]].fair);
    assert_int_equal(t.leaves[leaves[2]].fair, 1000);
    tree_done(&t);
}

static void shares_are_weights(void **state)
{
    struct tree t;
    uint32_t large, small;
    uint64_t used[2] = {29, 10};

    tree_init(&t);
    large = tree_leaf(&t, account(&t, "large", TREE_NONE, 3), 1);
    small = tree_leaf(&t, account(&t, "small", TREE_NONE, 1), 2);
    tree_fairness(&t, used);
    assert_true(t.leaves[large].fair > t.leaves[small].fair);
    used[0] = 31;
    tree_fairness(&t, used);
    assert_true(t.leaves[large].fair < t.leaves[small].fair);
    tree_done(&t);
}

static void equal_use_is_equal(void **state)
{
    struct tree t;
    uint64_t used[3] = {5, 5, 9};

    tree_init(&t);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tree_leaf(&t, TREE_NONE, i), i);
    tree_fairness(&t, used);
    assert_int_equal(t.leaves[0].fair, t.leaves[1].fair);
    assert_true(t.leaves[2].fair < t.leaves[0].fair);
    tree_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounts_are_compared_before_their_users),
        cmocka_unit_test(shares_are_weights),
        cmocka_unit_test(equal_use_is_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
