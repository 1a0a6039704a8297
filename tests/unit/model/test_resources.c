/* Arithmetic of resources and its text. */
#include "model/resources.h"
#include "support/cm.h"

#define GIB (UINT64_C(1) << 30)

static void cpus_are_read_in_every_form(void **state)
{
    static const struct {
        const char *text;
        uint32_t milli;
    } cases[] = {{"2", 2000}, {"0.5", 500}, {".25", 250}, {"1500m", 1500}, {"0.01", 10},
        {"4096", 4096000}, {"1.250", 1250}, {"3.", 3000}, {"10m", 10}};
    uint32_t milli;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_works(cpus_parse(cases[i].text, &milli, &err));
        assert_int_equal(milli, cases[i].milli);
    }
}

static void cpus_out_of_range_or_form_are_refused(void **state)
{
    static const char *const cases[] = {"", ".", "0", "0.001", "0.009", "4096.001", "4097", "-1",
        "1e3", "1.2345", "2 ", " 2", "m", "9m", "4096001m", "1.5m", "0x2", "1..2", "inf", "nan",
        "99999999999999999999999999"};
    uint32_t milli = 77;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_fails(cpus_parse(cases[i], &milli, &err), -EINVAL,
            "CPUs must be a number from 0.01 to 4096, like '2', '0.5' or '1500m'");
    assert_int_equal(cpus_parse(NULL, &milli, NULL), -EINVAL);
    assert_int_equal(milli, 77);
}

static void cpus_are_shown_without_needless_zeros(void **state)
{
    char text[CPUS_TEXT_MAX];

    assert_string_equal(cpus_format(2000, text), "2");
    assert_string_equal(cpus_format(500, text), "0.5");
    assert_string_equal(cpus_format(10, text), "0.01");
    assert_string_equal(cpus_format(1205, text), "1.205");
    assert_string_equal(cpus_format(0, text), "0");
    assert_string_equal(cpus_format(100000, text), "100");
    assert_string_equal(cpus_format(UINT32_MAX, text), "4294967.295");
}

static void resources_are_shown_as_people_say_them(void **state)
{
    struct resources r = {.cpu_milli = 2000, .mem = 4 * GIB, .gpus = 1};
    char text[RESOURCES_TEXT_MAX];

    assert_string_equal(resources_format(&r, text), "2 CPUs, 4 GiB, 1 GPU");
    r = (struct resources){.cpu_milli = 1000, .mem = 512 << 20};
    assert_string_equal(resources_format(&r, text), "1 CPU, 512 MiB");
    r = (struct resources){.cpu_milli = 500, .mem = GIB, .gpus = 8};
    assert_string_equal(resources_format(&r, text), "0.5 CPUs, 1 GiB, 8 GPUs");
}

static void it_fits_only_in_every_dimension(void **state)
{
    struct resources a = {.cpu_milli = 1000, .gpus = 1, .mem = 10}, b = a;

    assert_true(resources_fit(&a, &b));
    a.cpu_milli++;
    assert_false(resources_fit(&a, &b));
    a = b;
    a.gpus++;
    assert_false(resources_fit(&a, &b));
    a = b;
    a.mem++;
    assert_false(resources_fit(&a, &b));
}

static void the_scarcest_dimension_says_how_often_it_fits(void **state)
{
    struct resources each = {.cpu_milli = 1000, .mem = GIB};
    struct resources whole = {.cpu_milli = 8500, .gpus = 4, .mem = 5 * GIB};

    assert_int_equal(resources_times(&each, &whole), 5);
    whole.mem = 100 * GIB;
    assert_int_equal(resources_times(&each, &whole), 8);
    each.gpus = 2;
    assert_int_equal(resources_times(&each, &whole), 2);
    whole.gpus = 1;
    assert_int_equal(resources_times(&each, &whole), 0);
    each = (struct resources){0};
    assert_int_equal(resources_times(&each, &whole), UINT32_MAX);
}

static void nothing_wraps_around(void **state)
{
    struct resources big = {.cpu_milli = UINT32_MAX, .gpus = UINT32_MAX, .mem = UINT64_MAX};
    struct resources one = {.cpu_milli = 1, .gpus = 1, .mem = 1}, r = big;

    resources_add(&r, &one);
    assert_memory_equal(&r, &big, sizeof(r));
    r = one;
    resources_sub(&r, &big);
    assert_int_equal(r.cpu_milli, 0);
    assert_int_equal(r.gpus, 0);
    assert_int_equal(r.mem, 0);
    assert_int_equal(resources_scale(&big, 2, &r), -EOVERFLOW);
    assert_int_equal(resources_scale(&one, 1000, &r), 0);
    assert_int_equal(r.mem, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_are_read_in_every_form),
        cmocka_unit_test(cpus_out_of_range_or_form_are_refused),
        cmocka_unit_test(cpus_are_shown_without_needless_zeros),
        cmocka_unit_test(resources_are_shown_as_people_say_them),
        cmocka_unit_test(it_fits_only_in_every_dimension),
        cmocka_unit_test(the_scarcest_dimension_says_how_often_it_fits),
        cmocka_unit_test(nothing_wraps_around),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
