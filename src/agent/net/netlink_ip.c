/*
 * Addresses, routes, neighbours and forwarding entries. Every call replaces what is there under the
 * same key, so that repeating one changes nothing.
 */
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "agent/net/netlink.h"
#include "agent/net/netlink_talk.h"

#define REPLACE (NLM_F_CREATE | NLM_F_REPLACE)

static void put_ip(struct nl_msg *m, int attr, uint32_t ip)
{
    uint32_t wire = htonl(ip);

    netlink_put(m, attr, &wire, sizeof(wire));
}

static char *ip_text(uint32_t ip, char text[INET_ADDRSTRLEN])
{
    struct in_addr a = {.s_addr = htonl(ip)};

    assert(inet_ntop(AF_INET, &a, text, INET_ADDRSTRLEN));
    return text;
}

static int ensure(
    struct netlink *nl, struct nl_msg *m, const char *what, uint32_t ip, struct err *err)
{
    char text[INET_ADDRSTRLEN];
    int r = netlink_talk(nl, m, NULL, NULL, err);

    if (r < 0)
        err_prefix(err, "cannot set %s %s", what, ip_text(ip, text));
    return r;
}

int netlink_ensure_addr(
    struct netlink *nl, uint32_t index, uint32_t ip, uint8_t prefix, struct err *err)
{
    struct ifaddrmsg i = {.ifa_family = AF_INET, .ifa_prefixlen = prefix, .ifa_index = index};
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(RTM_NEWADDR, REPLACE, &i, sizeof(i));

    put_ip(m, IFA_LOCAL, ip);
    put_ip(m, IFA_ADDRESS, ip);
    return ensure(nl, m, "address", ip, err);
}

int netlink_ensure_route(struct netlink *nl, uint32_t index, uint32_t dst, uint8_t prefix,
    uint32_t gateway, uint32_t src, struct err *err)
{
    struct rtmsg i = {
        .rtm_family = AF_INET,
        .rtm_dst_len = prefix,
        .rtm_table = RT_TABLE_MAIN,
        .rtm_protocol = RTPROT_STATIC,
        .rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
        .rtm_type = RTN_UNICAST,
    };
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(
        RTM_NEWROUTE, REPLACE, &i, sizeof(i));

    if (prefix)
        put_ip(m, RTA_DST, dst);
    if (gateway)
        put_ip(m, RTA_GATEWAY, gateway);
    if (src)
        put_ip(m, RTA_PREFSRC, src);
    netlink_put_u32(m, RTA_OIF, index);
    return ensure(nl, m, "route to", dst, err);
}

int netlink_ensure_neigh(
    struct netlink *nl, uint32_t index, uint32_t ip, const uint8_t mac[MAC_LEN], struct err *err)
{
    struct ndmsg i = {.ndm_family = AF_INET, .ndm_ifindex = (int)index, .ndm_state = NUD_PERMANENT};
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(
        RTM_NEWNEIGH, REPLACE, &i, sizeof(i));

    put_ip(m, NDA_DST, ip);
    netlink_put(m, NDA_LLADDR, mac, MAC_LEN);
    return ensure(nl, m, "neighbour", ip, err);
}

static int ensure_entry(
    struct netlink *nl, struct nl_msg *m, const uint8_t mac[MAC_LEN], struct err *err)
{
    int r = netlink_talk(nl, m, NULL, NULL, err);

    if (r < 0)
        err_prefix(err, "cannot set a forwarding entry for %02x:%02x:%02x:%02x:%02x:%02x", mac[0],
            mac[1], mac[2], mac[3], mac[4], mac[5]);
    return r;
}

int netlink_ensure_fdb(
    struct netlink *nl, uint32_t index, const uint8_t mac[MAC_LEN], struct err *err)
{
    struct ndmsg i = {
        .ndm_family = AF_BRIDGE,
        .ndm_ifindex = (int)index,
        .ndm_state = NUD_NOARP, /* static */
        .ndm_flags = NTF_MASTER,
    };
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(
        RTM_NEWNEIGH, REPLACE, &i, sizeof(i));

    netlink_put(m, NDA_LLADDR, mac, MAC_LEN);
    return ensure_entry(nl, m, mac, err);
}

int netlink_ensure_vxlan_fdb(struct netlink *nl, uint32_t index, const uint8_t mac[MAC_LEN],
    const struct netlink_addr *host, struct err *err)
{
    static const uint8_t all[MAC_LEN];
    /* the all-zero entry collects hosts; any other has one */
    int how = memcmp(mac, all, MAC_LEN) == 0 ? NLM_F_CREATE | NLM_F_APPEND : REPLACE;
    struct ndmsg i = {
        .ndm_family = AF_BRIDGE,
        .ndm_ifindex = (int)index,
        .ndm_state = NUD_NOARP | NUD_PERMANENT,
        .ndm_flags = NTF_SELF,
    };
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(RTM_NEWNEIGH, how, &i, sizeof(i));

    netlink_put(m, NDA_LLADDR, mac, MAC_LEN);
    netlink_put(m, NDA_DST, host->bytes, host->family == AF_INET6 ? 16 : 4);
    return ensure_entry(nl, m, mac, err);
}

struct each_addr {
    int (*fn)(void *arg, uint32_t index, const struct netlink_addr *a);
    void *arg;
};

static int take_addr(void *arg, struct nlmsghdr *h)
{
    struct each_addr *e = arg;
    struct ifaddrmsg *i = nlmsg_data(h);
    struct nlattr *a[IFA_MAX + 1], *own;
    struct netlink_addr addr = {0};
    size_t len;

    if (h->nlmsg_type != RTM_NEWADDR || nlmsg_parse(h, sizeof(*i), a, IFA_MAX, NULL) < 0)
        return 0;
    own = a[IFA_LOCAL] ? a[IFA_LOCAL] : a[IFA_ADDRESS];
    len = i->ifa_family == AF_INET ? 4 : 16;
    if (!own || nla_len(own) != (int)len)
        return 0;
    addr.family = i->ifa_family;
    memcpy(addr.bytes, nla_data(own), len);
    return e->fn(e->arg, i->ifa_index, &addr);
}

int netlink_each_addr(struct netlink *nl,
    int (*fn)(void *arg, uint32_t index, const struct netlink_addr *a), void *arg, struct err *err)
{
    struct ifaddrmsg i = {.ifa_family = AF_UNSPEC};
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(
        RTM_GETADDR, NLM_F_DUMP, &i, sizeof(i));
    struct each_addr e = {fn, arg};
    int r = netlink_talk(nl, m, take_addr, &e, err);

    if (r < 0)
        err_prefix(err, "cannot list addresses");
    return r;
}
