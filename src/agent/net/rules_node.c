/*
 * The table in the node's own namespace: the way out of the edges, the second fence behind theirs,
 * and who may speak VXLAN. Only packets from or to our uplinks and port 4789 are judged; all others
 * pass as if the table were not there.
 */
#include <arpa/inet.h>

#include "agent/net/rules.h"
#include "base/str.h"
#include "base/strv.h"

void rules_node_table(const struct node_net *n, char name[32])
{
    snprintf(name, 32, "inet muster_%s", n->tag);
}

int rules_node_remove(const struct node_net *n, struct buf *out)
{
    char table[32];

    rules_node_table(n, table);
    return buf_printf(out, "add table %s\ndelete table %s\n", table, table);
}

/* The peers of one family, each once, as the library would write them. */
static int peers_text(const struct node_net *n, int family, char **ret, struct err *err)
{
    _cleanup_(strv_freep) char **seen = NULL;
    char **peers = n->peers;

    strv_for_each (peer, peers) {
        char text[INET6_ADDRSTRLEN];
        struct netlink_addr a;

        if (netlink_addr_parse(*peer, &a) < 0)
            return err_set(err, -EINVAL, "a node's fabric address '%.64s' is no address", *peer);
        assert(inet_ntop(a.family, a.bytes, text, sizeof(text)));
        if (a.family == family && !strv_has(seen, text))
            strv_push(&seen, text);
    }
    *ret = strv_join(seen, ", ");
    return 0;
}

static int print_set(struct buf *out, const char *name, const char *type, const char *elements)
{
    return buf_printf(out, "  set %s { type %s;%s%s%s }\n", name, type,
        elements[0] ? " elements = { " : "", elements, elements[0] ? " }" : "");
}

static int blocked_text(const struct node_net *n, char **ret, struct err *err)
{
    _cleanup_(cidr_list_done) struct cidr_list list = {0};
    _cleanup_(buf_done) struct buf text = BUF_INIT(RULES_MAX);
    char **cidrs = n->blocked;
    int r;

    strv_for_each (cidr, cidrs) {
        r = cidr_list_add_text(&list, *cidr, err);
        if (r < 0)
            return err_prefix(err, "blocked networks"), r;
    }
    cidr_list_normalise(&list);
    r = cidr_list_print(&list, &text);
    if (r < 0)
        return err_set(err, r, "too many blocked networks");
    *ret = buf_take(&text);
    return 0;
}

static int print_sets(const struct node_net *n, struct buf *out, struct err *err)
{
    _cleanup_free_ char *blocked = NULL, *peers4 = NULL, *peers6 = NULL;
    int r = blocked_text(n, &blocked, err);

    if (r == 0)
        r = peers_text(n, AF_INET, &peers4, err);
    if (r == 0)
        r = peers_text(n, AF_INET6, &peers6, err);
    if (r != 0)
        return r;
    if (print_set(out, "blocked", "ipv4_addr; flags interval", blocked) < 0 ||
        print_set(out, "peers4", "ipv4_addr", peers4) < 0 ||
        print_set(out, "peers6", "ipv6_addr", peers6) < 0)
        return err_set(err, -EMSGSIZE, "too many nodes or blocked networks");
    return 0;
}

/* %1$s the uplinks' name pattern, %2$s their addresses */
static const char chains[] =
    "  chain prerouting { type filter hook prerouting priority -300; policy accept;\n"
    "    udp dport 4789 notrack\n"
    "    iifname \"%1$s\" jump from_uplink\n"
    "  }\n"
    "  chain from_uplink {\n" /* only with the uplink's own address */
    "    meta nfproto != ipv4 drop\n"
    "    ip saddr != %2$s drop\n"
    "    fib saddr . iif oif missing drop\n"
    "  }\n"
    "  chain input { type filter hook input priority 0; policy accept;\n"
    "    iifname \"%1$s\" jump to_node\n"
    "    udp dport 4789 jump vxlan_in\n"
    "  }\n"
    "  chain to_node {\n"
    "    meta l4proto icmp accept\n"
    "    drop\n"
    "  }\n"
    "  chain vxlan_in {\n"
    "    ip saddr @peers4 accept\n"
    "    ip6 saddr @peers6 accept\n"
    "    drop\n"
    "  }\n"
    "  chain output { type filter hook output priority -300; policy accept;\n"
    "    udp dport 4789 meta skuid != 0 drop\n"
    "    udp dport 4789 notrack\n"
    "  }\n"
    "  chain forward { type filter hook forward priority 0; policy accept;\n"
    "    iifname \"%1$s\" jump leaving\n"
    "    oifname \"%1$s\" jump entering\n"
    "    ip daddr @peers4 udp dport 4789 drop\n" /* would be masqueraded to a node's address */
    "    ip6 daddr @peers6 udp dport 4789 drop\n"
    "  }\n"
    "  chain leaving {\n"
    "    oifname \"%1$s\" drop\n"
    "    ip daddr 169.254.0.0/16 drop\n"
    "    ip daddr @blocked drop\n"
    "    udp dport 4789 drop\n"
    "    accept\n"
    "  }\n"
    "  chain entering {\n"
    "    ct state established,related accept\n"
    "    drop\n"
    "  }\n"
    "  chain post { type nat hook postrouting priority 100; policy accept;\n"
    "    ip saddr %2$s oifname != \"%1$s\" meta l4proto tcp masquerade to :%3$d-%4$d\n"
    "    ip saddr %2$s oifname != \"%1$s\" meta l4proto udp masquerade to :%3$d-%4$d\n"
    "    ip saddr %2$s oifname != \"%1$s\" masquerade\n"
    "  }\n"
    "}\n";

int rules_node(const struct node_net *n, struct buf *out, struct err *err)
{
    char table[32], prefix[LINK_NAME_MAX], pattern[LINK_NAME_MAX + 1];
    _cleanup_(cidr_list_done) struct cidr_list uplinks = {0};
    _cleanup_(buf_done) struct buf range = BUF_INIT(64);
    int r;

    rules_node_table(n, table);
    uplink_prefix(n, prefix);
    snprintf(pattern, sizeof(pattern), "%s*", prefix);
    cidr_list_add(&uplinks, n->uplink_base, n->uplink_base + 4 * UPLINK_COUNT - 1);
    if (rules_node_remove(n, out) < 0 || buf_printf(out, "table %s {\n", table) < 0 ||
        cidr_list_print(&uplinks, &range) < 0)
        return err_set(err, -EMSGSIZE, "no room for the node's rules");
    r = print_sets(n, out, err);
    if (r < 0)
        return r;
    if (buf_printf(out, chains, pattern, range.data, PORT_LOW, PORT_HIGH) < 0)
        return err_set(err, -EMSGSIZE, "no room for the node's rules");
    return 0;
}
