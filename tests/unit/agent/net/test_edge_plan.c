/* Names, addresses and checks of edges, and lists of networks. */
#include "agent/net/plan.h"
#include "edge_cases.h"

static void an_edge_is_named_and_numbered_by_its_index(void **state)
{
    struct err err = ERR_INIT;
    struct edge_case c;
    struct plan p;

    edge_case_init(&c, 3);
    assert_int_equal(plan_make(&c.n, &c.a, 0x0ab, &p, &err), 0);
    assert_string_equal(p.uplink, "m-t1-0ab");
    assert_int_equal(p.up_node, 0xa9fe4000 + 4 * 0xab + 1);
    assert_int_equal(p.up_edge, p.up_node + 1);
    assert_false(p.solo);
    assert_true(plan_is_remote(&p, &c.peers[2]));
    assert_false(plan_is_remote(&p, &c.peers[1]));
}

static void the_longest_names_fit_into_a_link_name(void **state)
{
    struct edge_case c;
    struct plan p;

    edge_case_init(&c, 1);
    STR_SET(c.n.tag, "abcdefgh");
    assert_int_equal(plan_make(&c.n, &c.a, 4095, &p, NULL), 0);
    assert_string_equal(p.uplink, "m-abcdefgh-fff");
    assert_true(p.solo);
}

static void a_hosts_address_is_compared_as_an_address(void **state)
{
    struct edge_case c;
    struct plan p;

    edge_case_init(&c, 3);
    STR_SET(c.n.fabric_addr, "fd00:8::1");
    STR_SET(c.peers[0].fabric, "fd00:8:0:0::0001");
    assert_int_equal(plan_make(&c.n, &c.a, 0, &p, NULL), 0);
    assert_false(plan_is_remote(&p, &c.peers[0]));
    assert_true(plan_is_remote(&p, &c.peers[1]));
}

static void the_mtu_leaves_room_for_the_overlay(void **state)
{
    static const struct {
        uint32_t fabric, vni, want;
        const char *addr;
    } cases[] = {
        {1500, 7, 1450, "10.8.0.1"},
        {1500, 7, 1430, "fd00::1"},
        {9000, 7, 8950, "10.8.0.1"},
        {65520, 7, 65470, "10.8.0.1"}, /* IPoIB */
        {9000, 0, 9000, "10.8.0.1"},
        {65536, 0, 1500, "127.0.0.1"}, /* lo */
        {0, 7, 1450, "10.8.0.1"},
        {100, 7, 576, "10.8.0.1"},
    };
    struct edge_case c;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        edge_case_init(&c, 3);
        c.n.fabric_mtu = cases[i].fabric;
        c.a.vni = cases[i].vni;
        STR_SET(c.n.fabric_addr, cases[i].addr);
        assert_int_equal(edge_mtu(&c.n, &c.a), cases[i].want);
    }
}

static void the_macs_follow_the_addresses(void **state)
{
    static const uint8_t want[] = {0x02, 0x4d, 10, 128, 4, 1};
    uint8_t mac[MAC_LEN];

    mac_of_ip(0x0a800401, mac);
    assert_memory_equal(mac, want, MAC_LEN);
}

static void refused(struct edge_case *c, uint32_t index, const char *text)
{
    struct err err = ERR_INIT;
    struct plan p;

    assert_int_equal(plan_make(&c->n, &c->a, index, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, text));
}

static void what_cannot_be_is_refused(void **state)
{
    struct edge_case c;

    edge_case_init(&c, 3);
    refused(&c, 4096, "edge number 4096 is not below 4096");
    STR_SET(c.n.tag, "T1");
    refused(&c, 0, "tag must be of a-z and 0-9");
    c.n.tag[0] = '\0';
    refused(&c, 0, "tag must have 1 to 8 characters");
    edge_case_init(&c, 3);
    STR_SET(c.n.fabric_addr, "h1");
    refused(&c, 0, "the fabric address 'h1' is no address");
    edge_case_init(&c, 3);
    c.n.uplink_base += 2;
    refused(&c, 0, "multiple of 4");
    edge_case_init(&c, 3);
    STR_SET(c.a.session, "../../etc");
    refused(&c, 0, "no UUID");
    edge_case_init(&c, 3);
    c.a.peer_count = 0;
    refused(&c, 0, "a session of 0 containers cannot be");
    edge_case_init(&c, 3);
    c.a.vni = 1 << 24;
    refused(&c, 0, "more than 24 bits");
    edge_case_init(&c, 3);
    c.a.vni = 0;
    refused(&c, 0, "several nodes, but no VNI");
}

static void a_peer_with_a_wrong_name_or_address_is_refused(void **state)
{
    struct edge_case c;

    edge_case_init(&c, 3);
    STR_SET(c.peers[1].name, "a/../b");
    refused(&c, 0, "must be of a-z and 0-9");
    c.peers[1].name[0] = '\0';
    refused(&c, 0, "no name");
    edge_case_init(&c, 3);
    c.peers[2].ip = c.a.subnet; /* the network's own */
    refused(&c, 0, "the address of 'sub2' is not in the session's network");
    c.peers[2].ip = c.a.subnet + 1023; /* its broadcast */
    refused(&c, 0, "not in the session's network");
    c.peers[2].ip = c.a.subnet + 1024;
    refused(&c, 0, "not in the session's network");
    edge_case_init(&c, 3);
    c.peers[0].fabric[0] = '\0';
    refused(&c, 0, "'main1' has no fabric address");
}

static void networks_are_sorted_and_joined(void **state)
{
    static const char *const in[] = {
        "10.9.0.0/24", "10.8.0.7", "10.9.1.77/24", "10.8.0.0/30", "fd00::/8", "10.9.0.5"};
    _cleanup_(cidr_list_done) struct cidr_list l = {0};
    _cleanup_(buf_done) struct buf out = BUF_INIT(256);

    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        assert_int_equal(cidr_list_add_text(&l, in[i], NULL), 0);
    cidr_list_normalise(&l);
    assert_int_equal(cidr_list_print(&l, &out), 0);
    assert_string_equal(out.data, "10.8.0.0-10.8.0.3, 10.8.0.7, 10.9.0.0-10.9.1.255");
}

static void the_whole_internet_is_a_network_too(void **state)
{
    _cleanup_(cidr_list_done) struct cidr_list l = {0};
    _cleanup_(buf_done) struct buf out = BUF_INIT(256);

    assert_int_equal(cidr_list_add_text(&l, "0.0.0.0/0", NULL), 0);
    assert_int_equal(cidr_list_add_text(&l, "255.255.255.255/32", NULL), 0);
    cidr_list_normalise(&l);
    assert_int_equal(cidr_list_print(&l, &out), 0);
    assert_string_equal(out.data, "0.0.0.0-255.255.255.255");
}

static void what_is_no_network_is_refused_with_its_text(void **state)
{
    static const char *const bad[] = {"", "/", "10.9.0.0/33", "10.9.0.0/", "10.9.0.0/-1", "10.9.0",
        "10.9.0.0/24 } ; flush ruleset", "fd00::/129", "host", "10.9.0.0/2\n4"};
    _cleanup_(cidr_list_done) struct cidr_list l = {0};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(cidr_list_add_text(&l, bad[i], &err), -EINVAL);
        assert_non_null(strstr(err.text, "is not a network such as 10.9.0.0/24"));
        assert_null(strchr(err.text, '\n'));
    }
    assert_int_equal(l.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_is_named_and_numbered_by_its_index),
        cmocka_unit_test(the_longest_names_fit_into_a_link_name),
        cmocka_unit_test(a_hosts_address_is_compared_as_an_address),
        cmocka_unit_test(the_mtu_leaves_room_for_the_overlay),
        cmocka_unit_test(the_macs_follow_the_addresses),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_peer_with_a_wrong_name_or_address_is_refused),
        cmocka_unit_test(networks_are_sorted_and_joined),
        cmocka_unit_test(the_whole_internet_is_a_network_too),
        cmocka_unit_test(what_is_no_network_is_refused_with_its_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
