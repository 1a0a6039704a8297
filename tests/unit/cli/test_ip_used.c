/* Which networks a machine uses already. */
#include "cli/ip_used.h"
#include "unit.h"

static bool is_used(const struct ip_used *u, uint32_t lo, uint32_t hi)
{
    return ip_used_overlaps(u, (struct ip_range){lo, hi});
}

static void ranges_overlap_at_their_ends(void **state)
{
    struct ip_used u = {0};

    assert_false(is_used(&u, 0, UINT32_MAX));
    ip_used_add(&u, 0x0a650005, 0xffffff00);
    assert_true(is_used(&u, 0x0a6500ff, 0x0a6501ff));
    assert_true(is_used(&u, 0x0a64ff00, 0x0a650000));
    assert_true(is_used(&u, 0x0a000000, 0x0affffff));
    assert_false(is_used(&u, 0x0a650100, 0x0a6501ff));
    assert_false(is_used(&u, 0x0a640000, 0x0a64ffff));
    ip_used_done(&u);
}

static void the_default_route_is_no_network(void **state)
{
    struct ip_used u = {0};

    ip_used_add_routes(&u,
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t000010AC\t00000000\t0001\t0\t0\t0\t0000F0FF\t0\t0\t0\n"
        "nonsense\n");
    assert_int_equal(u.count, 1);
    assert_true(is_used(&u, 0xac1f0000, 0xac1fffff));
    assert_false(is_used(&u, 0xac200000, 0xac20ffff));
    ip_used_done(&u);
}

static void name_servers_are_single_addresses(void **state)
{
    struct ip_used u = {0};

    ip_used_add_name_servers(&u,
        "# nameserver 1.2.3.4\nsearch example.org\n nameserver 10.255.255.53\nnameserver ::1\n"
        "nameserver 10.0.0.1 \nnameserver");
    assert_int_equal(u.count, 2);
    assert_true(is_used(&u, 0x0a800000, 0x0affffff));
    assert_true(is_used(&u, 0x0a000001, 0x0a000001));
    assert_false(is_used(&u, 0x0a000002, 0x0affff34));
    ip_used_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_overlap_at_their_ends),
        cmocka_unit_test(the_default_route_is_no_network),
        cmocka_unit_test(name_servers_are_single_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
