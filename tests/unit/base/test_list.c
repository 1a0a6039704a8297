#include "base/list.h"
#include "unit.h"

struct item {
    int n;
    struct list link;
};

TEST(a_new_list_is_empty)
{
    struct list head;

    list_init(&head);
    assert_true(list_is_empty(&head));
    list_for_each (it, &head)
        fail_msg("%p in an empty list", (void *)it);
}

TEST(items_come_in_the_order_they_were_appended)
{
    struct item items[3];
    struct list head;
    int n = 0;

    list_init(&head);
    for (int i = 0; i < 3; i++) {
        items[i].n = i;
        list_append(&head, &items[i].link);
    }
    assert_false(list_is_empty(&head));
    list_for_each (it, &head)
        assert_int_equal(LIST_ENTRY(it, struct item, link)->n, n++);
    assert_int_equal(n, 3);
}

TEST(removing_twice_does_no_harm)
{
    struct item a, b;
    struct list head;

    list_init(&head);
    list_append(&head, &a.link);
    list_append(&head, &b.link);
    list_remove(&a.link);
    list_remove(&a.link);
    assert_ptr_equal(head.next, &b.link);
    assert_ptr_equal(head.prev, &b.link);
    list_remove(&b.link);
    assert_true(list_is_empty(&head));
}

TEST(the_current_item_may_be_freed_in_the_loop)
{
    struct list head;

    list_init(&head);
    for (int i = 0; i < 5; i++) {
        struct item *item = xnew(struct item);

        list_append(&head, &item->link);
    }
    list_for_each_safe (it, &head) {
        list_remove(it);
        free(LIST_ENTRY(it, struct item, link));
    }
    assert_true(list_is_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_list_is_empty),
        cmocka_unit_test(items_come_in_the_order_they_were_appended),
        cmocka_unit_test(removing_twice_does_no_harm),
        cmocka_unit_test(the_current_item_may_be_freed_in_the_loop),
    };

    return RUN_TESTS(tests);
}
