#include "base/map.h"
#include "unit.h"

static char *key_of(int i, char key[16])
{
    snprintf(key, 16, "key-%d", i);
    return key;
}

TEST(a_zeroed_map_is_an_empty_map)
{
    struct map m = {0};

    assert_null(map_get(&m, "a"));
    assert_null(map_remove(&m, "a"));
    assert_int_equal(map_count(&m), 0);
    map_for_each (e, &m)
        fail_msg("'%s' in an empty map", e->key);
    map_done(&m, NULL);
}

TEST(setting_again_returns_the_value_before)
{
    int a, b;
    struct map m;

    map_init(&m);
    assert_null(map_set(&m, "k", &a));
    assert_ptr_equal(map_set(&m, "k", &b), &a);
    assert_ptr_equal(map_get(&m, "k"), &b);
    assert_int_equal(map_count(&m), 1);
    assert_ptr_equal(map_remove(&m, "k"), &b);
    assert_null(map_get(&m, "k"));
    assert_null(map_remove(&m, "k"));
    assert_int_equal(map_count(&m), 0);
    map_done(&m, NULL);
}

TEST(keys_are_copied_and_may_be_empty)
{
    char key[] = "key";
    struct map m;

    map_init(&m);
    map_set(&m, key, key);
    key[0] = 'X';
    assert_non_null(map_get(&m, "key"));
    assert_null(map_get(&m, "Xey"));
    map_set(&m, "", &m);
    assert_ptr_equal(map_get(&m, ""), &m);
    map_done(&m, NULL);
}

TEST(many_keys_come_and_go)
{
    enum { N = 20000 };
    static int values[N];
    struct map m;
    char key[16];

    map_init(&m);
    for (int i = 0; i < N; i++)
        assert_null(map_set(&m, key_of(i, key), &values[i]));
    for (int i = 0; i < N; i += 3)
        assert_ptr_equal(map_remove(&m, key_of(i, key)), &values[i]);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(map_get(&m, key_of(i, key)), i % 3 ? &values[i] : NULL);
    assert_int_equal(map_count(&m), N - (N + 2) / 3);
    map_done(&m, NULL);
}

TEST(iteration_is_in_order_of_insertion)
{
    static const char *const want[] = {"c", "b", "a"};
    size_t n = 0;
    struct map m;

    map_init(&m);
    map_set(&m, "c", &m);
    map_set(&m, "a", &m);
    map_set(&m, "b", &m);
    map_remove(&m, "a");
    map_set(&m, "a", &m);
    map_set(&m, "c", &m); /* stays where it is */
    map_for_each (e, &m)
        assert_string_equal(e->key, want[n++]);
    assert_int_equal(n, 3);
    map_done(&m, NULL);
}

TEST(order_survives_the_closing_of_holes)
{
    int last = -1, n = 0;
    struct map m;
    char key[16];

    map_init(&m);
    for (int i = 0; i < 1000; i++)
        map_set(&m, key_of(i, key), &m);
    for (int i = 0; i < 990; i++)
        map_remove(&m, key_of(i, key));
    map_set(&m, key_of(1000, key), &m);
    assert_int_equal(m.used, 11); /* no holes left */
    map_for_each (e, &m) {
        int i = (int)strtol(e->key + 4, NULL, 10);

        assert_true(i > last);
        last = i;
        n++;
    }
    assert_int_equal(n, 11);
    map_done(&m, NULL);
}

TEST(the_current_key_may_be_removed_in_the_loop)
{
    int seen = 0;
    struct map m;
    char key[16];

    map_init(&m);
    for (int i = 0; i < 100; i++)
        map_set(&m, key_of(i, key), &m);
    map_for_each (e, &m) {
        if (seen++ % 2)
            assert_ptr_equal(map_remove(&m, e->key), &m);
    }
    assert_int_equal(seen, 100);
    assert_int_equal(map_count(&m), 50);
    map_done(&m, NULL);
}

TEST(a_map_that_turns_over_does_not_grow)
{
    struct map m;
    char key[16];

    map_init(&m);
    for (int i = 0; i < 100000; i++) {
        map_set(&m, key_of(i, key), &m);
        if (i >= 10)
            assert_non_null(map_remove(&m, key_of(i - 10, key)));
    }
    assert_int_equal(map_count(&m), 10);
    assert_true(m.cap <= 64);
    assert_true(m.index_size <= 64);
    map_done(&m, NULL);
}

TEST(values_are_freed_when_asked)
{
    struct map m;

    map_init(&m);
    map_set(&m, "a", xstrdup("1"));
    map_set(&m, "b", xstrdup("2"));
    free(map_remove(&m, "a"));
    map_done(&m, free);
    assert_int_equal(map_count(&m), 0);
}

TEST(a_copy_has_the_same_in_the_same_order_and_goes_its_own_way)
{
    struct map m, copy;
    char key[16];
    int i = 0;

    map_init(&m);
    for (i = 0; i < 100; i++)
        map_set(&m, key_of(i, key), &m);
    map_remove(&m, key_of(0, key));
    map_copy(&copy, &m);
    map_done(&m, NULL);
    assert_int_equal(map_count(&copy), 99);
    i = 1;
    map_for_each (e, &copy) {
        assert_string_equal(e->key, key_of(i++, key));
        assert_ptr_equal(e->value, &m);
    }
    map_done(&copy, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_map_is_an_empty_map),
        cmocka_unit_test(setting_again_returns_the_value_before),
        cmocka_unit_test(keys_are_copied_and_may_be_empty),
        cmocka_unit_test(many_keys_come_and_go),
        cmocka_unit_test(iteration_is_in_order_of_insertion),
        cmocka_unit_test(order_survives_the_closing_of_holes),
        cmocka_unit_test(the_current_key_may_be_removed_in_the_loop),
        cmocka_unit_test(a_map_that_turns_over_does_not_grow),
        cmocka_unit_test(values_are_freed_when_asked),
        cmocka_unit_test(a_copy_has_the_same_in_the_same_order_and_goes_its_own_way),
    };

    return RUN_TESTS(tests);
}
