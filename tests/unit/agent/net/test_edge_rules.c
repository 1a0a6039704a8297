/* The texts that go to nftables. What they do to packets is shown by tests/system/test_edge.py. */
#include "agent/net/rules.h"
#include "edge_cases.h"

static char *edge_text(struct edge_case *c, const char *blocked)
{
    _cleanup_(cidr_list_done) struct cidr_list l = {0};
    _cleanup_(buf_done) struct buf out = BUF_INIT(RULES_MAX);
    struct plan p;

    assert_int_equal(plan_make(&c->n, &c->a, 1, &p, NULL), 0);
    if (blocked)
        assert_int_equal(cidr_list_add_text(&l, blocked, NULL), 0);
    assert_int_equal(rules_edge(&p, &l, &out), 0);
    return buf_take(&out);
}

static void a_solo_edge_judges_what_its_own_container_sends(void **state)
{
    _cleanup_free_ char *text = NULL;
    struct edge_case c;

    edge_case_init(&c, 1);
    text = edge_text(&c, "10.9.0.0/24");
    assert_string_equal(text,
        "add table inet muster\n"
        "delete table inet muster\n"
        "table inet muster {\n"
        "  set blocked { type ipv4_addr; flags interval; elements = { 10.9.0.0-10.9.0.255 } }\n"
        "  chain out {\n"
        "    ip daddr 169.254.0.0/16 drop\n"
        "    ip daddr @blocked drop\n"
        "    udp dport 4789 drop\n"
        "    meta l4proto { tcp, udp, icmp } accept\n"
        "  }\n"
        "  chain input { type filter hook input priority 0; policy drop;\n"
        "    iifname \"lo\" accept\n"
        "    ct state established,related accept\n"
        "  }\n"
        "  chain forward { type filter hook forward priority 0; policy drop; }\n"
        "  chain output { type filter hook output priority 0; policy drop;\n"
        "    oifname \"lo\" accept\n"
        "    oifname \"eth0\" ip saddr 10.128.4.1 jump out\n"
        "  }\n"
        "  chain post { type nat hook postrouting priority 100; policy accept;\n"
        "    oifname \"eth0\" meta nfproto ipv4 meta l4proto tcp snat ip to "
        "169.254.64.6:32768-60999\n"
        "    oifname \"eth0\" meta nfproto ipv4 meta l4proto udp snat ip to "
        "169.254.64.6:32768-60999\n"
        "    oifname \"eth0\" meta nfproto ipv4 snat ip to 169.254.64.6\n"
        "  }\n"
        "}\n");
}

static void a_port_may_send_only_as_its_container(void **state)
{
    _cleanup_free_ char *text = NULL;
    struct edge_case c;

    edge_case_init(&c, 3);
    text = edge_text(&c, NULL);
    assert_non_null(strstr(text, "set blocked { type ipv4_addr; flags interval; }\n"));
    assert_non_null(strstr(text,
        "  set senders { type ifname . ether_addr . ipv4_addr; elements = {\n"
        "    \"p0\" . 02:4d:0a:80:04:01 . 10.128.4.1,\n"
        "    \"p1\" . 02:4d:0a:80:04:02 . 10.128.4.2,\n"
        "    \"vx0\" . 02:4d:0a:80:04:03 . 10.128.4.3,\n"
        "  } }\n"));
    assert_non_null(strstr(text, "hook prerouting priority -300; policy drop;"));
    assert_non_null(strstr(text, "hook forward priority 0; policy drop;"));
    assert_non_null(strstr(text, "hook input priority 0; policy drop;"));
}

static void the_largest_session_has_room(void **state)
{
    struct assigned_peer *peers = xnew_array(struct assigned_peer, 1022);
    _cleanup_free_ char *text = NULL;
    struct edge_case c;

    edge_case_init(&c, 3);
    for (uint32_t i = 0; i < 1022; i++) {
        peers[i] = c.peers[2];
        peers[i].ip = c.a.subnet + 1 + i;
    }
    c.a.peers = peers;
    c.a.peer_count = 1022;
    text = edge_text(&c, NULL);
    assert_non_null(strstr(text, "10.128.7.254,"));
    free(peers);
}

static void the_nodes_table_has_its_tag_its_uplinks_and_its_peers(void **state)
{
    char *blocked[] = {"10.9.0.0/24", "10.8.0.0/24", NULL};
    char *peers[] = {"10.8.0.1", "10.8.0.2", "10.8.0.1", "fd00:0::1", NULL};
    _cleanup_(buf_done) struct buf out = BUF_INIT(RULES_MAX);
    struct edge_case c;

    edge_case_init(&c, 1);
    c.n.blocked = blocked;
    c.n.peers = peers;
    assert_int_equal(rules_node(&c.n, &out, NULL), 0);
    assert_non_null(strstr(out.data, "table inet muster_t1 {\n"));
    assert_non_null(strstr(out.data, "elements = { 10.8.0.0-10.8.0.255, 10.9.0.0-10.9.0.255 }"));
    assert_non_null(
        strstr(out.data, "set peers4 { type ipv4_addr; elements = { 10.8.0.1, 10.8.0.2 } }"));
    assert_non_null(strstr(out.data, "set peers6 { type ipv6_addr; elements = { fd00::1 } }"));
    assert_non_null(strstr(out.data, "iifname \"m-t1-*\" jump leaving\n"));
    assert_non_null(strstr(out.data,
        "ip saddr 169.254.64.0-169.254.127.255 oifname != \"m-t1-*\" meta l4proto tcp "
        "masquerade to :32768-60999\n"));
}

static void no_peers_means_vxlan_from_nobody(void **state)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(RULES_MAX);
    struct edge_case c;

    edge_case_init(&c, 1);
    assert_int_equal(rules_node(&c.n, &out, NULL), 0);
    assert_non_null(strstr(out.data, "set peers4 { type ipv4_addr; }\n"));
}

static void text_from_outside_does_not_become_rules(void **state)
{
    char *injection[] = {"10.8.0.1 }; flush ruleset; #", NULL};
    _cleanup_(buf_done) struct buf out = BUF_INIT(RULES_MAX);
    struct err err = ERR_INIT;
    struct edge_case c;

    edge_case_init(&c, 1);
    c.n.peers = injection;
    assert_int_equal(rules_node(&c.n, &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is no address"));
    c.n.peers = NULL;
    c.n.blocked = injection;
    assert_int_equal(rules_node(&c.n, &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "blocked networks: '10.8.0.1 }; flush ruleset; #' is not"));
}

static void too_much_is_an_error_and_not_half_a_table(void **state)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(500);
    struct err err = ERR_INIT;
    struct edge_case c;

    edge_case_init(&c, 1);
    assert_int_equal(rules_node(&c.n, &out, &err), -EMSGSIZE);
    assert_string_equal(err.text, "no room for the node's rules");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_solo_edge_judges_what_its_own_container_sends),
        cmocka_unit_test(a_port_may_send_only_as_its_container),
        cmocka_unit_test(the_largest_session_has_room),
        cmocka_unit_test(the_nodes_table_has_its_tag_its_uplinks_and_its_peers),
        cmocka_unit_test(no_peers_means_vxlan_from_nobody),
        cmocka_unit_test(text_from_outside_does_not_become_rules),
        cmocka_unit_test(too_much_is_an_error_and_not_half_a_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
