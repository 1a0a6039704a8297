/* Addresses and paths as text. */
#include "model/ip.h"
#include "model/path.h"
#include "support/cm.h"

static void addresses_go_both_ways(void **state)
{
    char text[IPV4_TEXT_MAX];
    uint32_t ip = 5;

    assert_string_equal(ipv4_format(0x0a800002, text), "10.128.0.2");
    assert_string_equal(ipv4_format(UINT32_MAX, text), "255.255.255.255");
    assert_int_equal(ipv4_parse("10.128.0.2", &ip), 0);
    assert_int_equal(ip, 0x0a800002);
    assert_int_equal(ipv4_parse("10.128.0", &ip), -EINVAL);
    assert_int_equal(ipv4_parse("10.128.0.256", &ip), -EINVAL);
    assert_int_equal(ipv4_parse(NULL, &ip), -EINVAL);
    assert_int_equal(ip, 0x0a800002);
}

static void only_addresses_and_networks_are_valid(void **state)
{
    assert_true(ip_is_valid("192.0.2.1"));
    assert_true(ip_is_valid("fd00::1"));
    assert_false(ip_is_valid("fe80::1%eth0"));
    assert_false(ip_is_valid("[fd00::1]"));
    assert_false(ip_is_valid("host"));
    assert_false(ip_is_valid(""));
    assert_true(cidr_is_valid("10.0.0.0/8"));
    assert_true(cidr_is_valid("0.0.0.0/0"));
    assert_true(cidr_is_valid("fd00::/64"));
    assert_true(cidr_is_valid("192.0.2.1/32"));
    assert_false(cidr_is_valid("192.0.2.1/33"));
    assert_false(cidr_is_valid("fd00::/129"));
    assert_false(cidr_is_valid("192.0.2.1"));
    assert_false(cidr_is_valid("192.0.2.1/"));
    assert_false(cidr_is_valid("192.0.2.1/ 8"));
    assert_false(cidr_is_valid("/8"));
    assert_false(cidr_is_valid("192.0.2.1/8; flush ruleset"));
    assert_false(
        cidr_is_valid("192.0.2.1000000000000000000000000000000000000000000000000000000/8"));
}

static void a_clean_path_says_where_it_leads(void **state)
{
    static const char *const clean[] = {"/", "/a", "/a/b", "/a.b/..c", "/...", "/data/x y"};
    static const char *const unclean[] = {"", "a", "./a", "/a/", "//", "//a", "/a//b", "/.", "/..",
        "/a/..", "/a/./b", "/a/../b", "/a\nb", "/a\x1b[2J", "/\xff"};

    for (size_t i = 0; i < ARRAY_LEN(clean); i++)
        assert_true(path_is_clean(clean[i]));
    for (size_t i = 0; i < ARRAY_LEN(unclean); i++)
        assert_false(path_is_clean(unclean[i]));
}

static void paths_overlap_when_one_holds_the_other(void **state)
{
    assert_true(path_overlaps("/a", "/a"));
    assert_true(path_overlaps("/a", "/a/b"));
    assert_true(path_overlaps("/a/b", "/a"));
    assert_true(path_overlaps("/", "/a"));
    assert_false(path_overlaps("/a", "/ab"));
    assert_false(path_overlaps("/a/b", "/a/c"));
    assert_false(path_overlaps("/data", "/dat"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_go_both_ways),
        cmocka_unit_test(only_addresses_and_networks_are_valid),
        cmocka_unit_test(a_clean_path_says_where_it_leads),
        cmocka_unit_test(paths_overlap_when_one_holds_the_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
