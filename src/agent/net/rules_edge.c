/*
 * The filter in a session's edge: what keeps sessions apart. It stands before the first link does,
 * and does not need the node's table.
 *
 *   out      what may leave: tcp, udp, icmp; not to other sessions, not to anything link-local
 *            (other edges' uplinks, a cloud's metadata service), not to the nodes, no VXLAN
 *   in       answers only
 *   bridge   a port may send only as the container behind it: MAC, ARP and IP; the VXLAN device
 *            only as the containers that are on other nodes. IPv4 and ARP, nothing else
 */
#include "agent/net/rules.h"

struct text {
    struct buf *out;
    int r; /* first error; later ones are skipped */
};

static void PRINTF_LIKE(2, 3) emit(struct text *t, const char *fmt, ...)
{
    _cleanup_free_ char *s = NULL;
    va_list ap;

    if (t->r < 0)
        return;
    va_start(ap, fmt);
    s = xvasprintf(fmt, ap);
    va_end(ap);
    t->r = buf_puts(t->out, s);
}

#define IP_FMT "%u.%u.%u.%u"
#define IP_ARGS(ip) (ip) >> 24, (ip) >> 16 & 255, (ip) >> 8 & 255, (ip)&255
#define MAC_FMT "%02x:%02x:%02x:%02x:%02x:%02x"
#define MAC_ARGS(m) m[0], m[1], m[2], m[3], m[4], m[5]

static void emit_blocked(struct text *t, const struct cidr_list *blocked)
{
    emit(t, "  set blocked { type ipv4_addr; flags interval;");
    if (blocked->count > 0) {
        emit(t, " elements = { ");
        if (t->r == 0)
            t->r = cidr_list_print(blocked, t->out);
        emit(t, " }");
    }
    emit(t, " }\n");
}

static void emit_out(struct text *t)
{
    emit(t,
        "  chain out {\n"
        "    ip daddr " IP_FMT "/16 drop\n"
        "    ip daddr @blocked drop\n"
        "    udp dport 4789 drop\n"
        "    meta l4proto { tcp, udp, icmp } accept\n"
        "  }\n",
        IP_ARGS(LINK_LOCAL_NET));
}

/* The session's addresses never leave; source ports below 1024 neither, which servers such as NFS
 * take as a sign of root. */
static void emit_nat(struct text *t, const struct plan *p, const char *link)
{
    emit(t, "  chain post { type nat hook postrouting priority 100; policy accept;\n");
    for (int i = 0; i < 2; i++)
        emit(t,
            "    oifname \"%s\" meta nfproto ipv4 meta l4proto %s snat ip to " IP_FMT ":%d-%d\n",
            link, i == 0 ? "tcp" : "udp", IP_ARGS(p->up_edge), PORT_LOW, PORT_HIGH);
    emit(t, "    oifname \"%s\" meta nfproto ipv4 snat ip to " IP_FMT "\n  }\n", link,
        IP_ARGS(p->up_edge));
}

static void emit_solo(struct text *t, const struct plan *p)
{
    emit(t,
        "  chain input { type filter hook input priority 0; policy drop;\n"
        "    iifname \"lo\" accept\n"
        "    ct state established,related accept\n"
        "  }\n"
        "  chain forward { type filter hook forward priority 0; policy drop; }\n"
        "  chain output { type filter hook output priority 0; policy drop;\n"
        "    oifname \"lo\" accept\n"
        "    oifname \"" CONTAINER_LINK "\" ip saddr " IP_FMT " jump out\n"
        "  }\n",
        IP_ARGS(p->a->peers[0].ip));
}

/* br0 to br0: a bridged packet, seen here only when bridge netfilter is on after all. */
static void emit_shared(struct text *t, const struct plan *p)
{
    emit(t,
        "  chain input { type filter hook input priority 0; policy drop;\n"
        "    iifname \"" EDGE_BRIDGE "\" ip daddr " IP_FMT " icmp type echo-request accept\n"
        "  }\n"
        "  chain forward { type filter hook forward priority 0; policy drop;\n"
        "    iifname \"" EDGE_BRIDGE "\" oifname \"" EDGE_BRIDGE "\" accept\n"
        "    iifname \"" EDGE_UPLINK "\" oifname \"" EDGE_BRIDGE
        "\" ct state established,related accept\n"
        "    iifname \"" EDGE_BRIDGE "\" oifname \"" EDGE_UPLINK "\" ip saddr " IP_FMT
        "/%d jump out\n"
        "  }\n",
        IP_ARGS(GATEWAY_IP), IP_ARGS(p->a->subnet), SESSION_PREFIX);
}

static void emit_senders(struct text *t, const struct plan *p, bool arp)
{
    emit(t, "  set %s { type ifname . ether_addr . %sipv4_addr; elements = {\n",
        arp ? "arp_senders" : "senders", arp ? "ether_addr . " : "");
    for (uint32_t i = 0; i < p->a->peer_count; i++) {
        const struct assigned_peer *peer = &p->a->peers[i];
        char port[LINK_NAME_MAX];
        uint8_t m[MAC_LEN];

        port_name(i, port);
        mac_of_ip(peer->ip, m);
        emit(t, "    \"%s\" . " MAC_FMT, plan_is_remote(p, peer) ? EDGE_VXLAN : port, MAC_ARGS(m));
        if (arp)
            emit(t, " . " MAC_FMT, MAC_ARGS(m));
        emit(t, " . " IP_FMT ",\n", IP_ARGS(peer->ip));
    }
    emit(t, "  } }\n");
}

static void emit_bridge(struct text *t, const struct plan *p)
{
    emit(t, "add table bridge muster\ndelete table bridge muster\ntable bridge muster {\n");
    emit_senders(t, p, false);
    emit_senders(t, p, true);
    emit(t,
        "  chain pre { type filter hook prerouting priority -300; policy drop;\n"
        "    ether type ip iifname . ether saddr . ip saddr @senders accept\n"
        "    ether type arp iifname . ether saddr . arp saddr ether . arp saddr ip @arp_senders "
        "accept\n"
        "  }\n"
        "}\n");
}

int rules_edge(const struct plan *p, const struct cidr_list *blocked, struct buf *out)
{
    struct text t = {.out = out};

    emit(&t, "add table inet muster\ndelete table inet muster\ntable inet muster {\n");
    emit_blocked(&t, blocked);
    emit_out(&t);
    if (p->solo)
        emit_solo(&t, p);
    else
        emit_shared(&t, p);
    emit_nat(&t, p, p->solo ? CONTAINER_LINK : EDGE_UPLINK);
    emit(&t, "}\n");
    if (!p->solo)
        emit_bridge(&t, p);
    return t.r;
}

int rules_edge_blocked(const struct cidr_list *blocked, struct buf *out)
{
    struct text t = {.out = out};

    emit(&t, "flush set inet muster blocked\n");
    if (blocked->count > 0) {
        emit(&t, "add element inet muster blocked { ");
        if (t.r == 0)
            t.r = cidr_list_print(blocked, out);
        emit(&t, " }\n");
    }
    return t.r;
}
