#include "image/skeleton.h"
#include "unit.h"

static struct node *add(struct skeleton *s, struct node *parent, const char *name)
{
    return skeleton_add(s, parent, name, strlen(name), NODE_DIR);
}

static struct node *find(const struct skeleton *s, const struct node *parent, const char *name)
{
    return skeleton_find(s, parent, name, strlen(name));
}

TEST(a_name_is_found_in_its_own_folder_only)
{
    struct skeleton s;
    struct node *a, *b;

    skeleton_init(&s, NULL);
    a = add(&s, s.root, "a");
    b = add(&s, a, "b");
    assert_ptr_equal(find(&s, s.root, "a"), a);
    assert_ptr_equal(find(&s, a, "b"), b);
    assert_null(find(&s, s.root, "b"));
    assert_null(find(&s, a, "bb"));
    assert_null(skeleton_find(&s, a, "b", 0));
    skeleton_done(&s);
}

TEST(many_names_are_found_again)
{
    struct skeleton s;
    char name[16];

    skeleton_init(&s, NULL);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        add(&s, s.root, name);
    }
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_non_null(find(&s, s.root, name));
    }
    assert_int_equal(s.count, 20000);
    skeleton_done(&s);
}

TEST(a_path_is_told_from_the_root_and_bounded)
{
    struct skeleton s;
    char path[16];
    struct node *n;

    skeleton_init(&s, NULL);
    n = add(&s, add(&s, add(&s, s.root, "usr"), "lib"), "x");
    assert_int_equal(skeleton_path(n, path, sizeof(path)), 0);
    assert_string_equal(path, "usr/lib/x");
    assert_int_equal(skeleton_depth(n), 3);
    assert_int_equal(skeleton_path(s.root, path, sizeof(path)), 0);
    assert_string_equal(path, "");
    assert_int_equal(skeleton_path(n, path, 9), -ENAMETOOLONG);
    assert_int_equal(skeleton_path(n, path, 10), 0);
    assert_string_equal(path, "usr/lib/x");
    skeleton_done(&s);
}

TEST(pruning_forgets_all_below_and_nothing_else)
{
    struct skeleton s;
    struct node *a, *other;

    skeleton_init(&s, NULL);
    a = add(&s, s.root, "a");
    other = add(&s, s.root, "other");
    add(&s, add(&s, a, "b"), "c");
    add(&s, other, "b");
    skeleton_prune(&s, a);
    assert_null(find(&s, a, "b"));
    assert_ptr_equal(find(&s, s.root, "a"), a);
    assert_non_null(find(&s, other, "b"));
    assert_int_equal(s.count, 3);
    skeleton_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_found_in_its_own_folder_only),
        cmocka_unit_test(many_names_are_found_again),
        cmocka_unit_test(a_path_is_told_from_the_root_and_bounded),
        cmocka_unit_test(pruning_forgets_all_below_and_nothing_else),
    };

    return RUN_TESTS(tests);
}
