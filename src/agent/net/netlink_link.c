/*
 * Links: looking, making, setting, deleting. A link is made whole in one message, in the namespace
 * where it will live, with its index, group and master: no moment in which it is half of what it
 * should be, and no move between namespaces (a move waits for RCU, about 10 ms).
 */
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>

#include "agent/net/netlink.h"
#include "agent/net/netlink_talk.h"
#include "base/str.h"

#define VXLAN_PORT 4789

static struct nl_msg *link_message(uint16_t type, int flags, uint32_t index)
{
    struct ifinfomsg i = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};

    return netlink_message(type, flags, &i, sizeof(i));
}

static void put_mac(struct nl_msg *m, const uint8_t mac[MAC_LEN])
{
    static const uint8_t none[MAC_LEN];

    if (memcmp(mac, none, MAC_LEN) != 0)
        netlink_put(m, IFLA_ADDRESS, mac, MAC_LEN);
}

static void parse_vni(struct nlattr *info, uint32_t *ret)
{
    struct nlattr *kinds[IFLA_INFO_MAX + 1], *data[IFLA_VXLAN_MAX + 1];

    if (nla_parse_nested(kinds, IFLA_INFO_MAX, info, NULL) < 0 || !kinds[IFLA_INFO_KIND] ||
        nla_strcmp(kinds[IFLA_INFO_KIND], "vxlan") != 0 || !kinds[IFLA_INFO_DATA])
        return;
    if (nla_parse_nested(data, IFLA_VXLAN_MAX, kinds[IFLA_INFO_DATA], NULL) < 0 ||
        !data[IFLA_VXLAN_ID])
        return;
    *ret = nla_get_u32(data[IFLA_VXLAN_ID]);
}

static bool parse_link(struct nlmsghdr *h, struct netlink_link *l)
{
    struct nlattr *a[IFLA_MAX + 1];

    if (h->nlmsg_type != RTM_NEWLINK ||
        nlmsg_parse(h, sizeof(struct ifinfomsg), a, IFLA_MAX, NULL) < 0 || !a[IFLA_IFNAME])
        return false;
    *l = (struct netlink_link){
        .index = (uint32_t)((struct ifinfomsg *)nlmsg_data(h))->ifi_index,
        .mtu = a[IFLA_MTU] ? nla_get_u32(a[IFLA_MTU]) : 0,
    };
    nla_strlcpy(l->name, a[IFLA_IFNAME], sizeof(l->name));
    if (a[IFLA_IFALIAS])
        nla_strlcpy(l->alias, a[IFLA_IFALIAS], sizeof(l->alias));
    if (a[IFLA_LINKINFO])
        parse_vni(a[IFLA_LINKINFO], &l->vni);
    return true;
}

static int take_link(void *arg, struct nlmsghdr *h)
{
    struct netlink_link *l = arg;

    (void)parse_link(h, l);
    return 0;
}

int netlink_link_get(
    struct netlink *nl, const char *name, struct netlink_link *ret, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = link_message(RTM_GETLINK, 0, 0);
    struct netlink_link l = {0};
    int r;

    netlink_put_text(m, IFLA_IFNAME, name);
    r = netlink_talk(nl, m, take_link, &l, err);
    if (r < 0)
        return err_prefix(err, "link '%s'", name), r;
    if (l.index == 0)
        return err_set(err, -ENODEV, "link '%s': no answer", name);
    *ret = l;
    return 0;
}

struct link_list {
    struct netlink_link *links;
    size_t count, cap;
};

static int collect_link(void *arg, struct nlmsghdr *h)
{
    struct link_list *list = arg;
    struct netlink_link l;

    if (!parse_link(h, &l))
        return 0;
    list->links = xgrow(list->links, &list->cap, list->count + 1, sizeof(l));
    list->links[list->count++] = l;
    return 0;
}

int netlink_link_list(
    struct netlink *nl, struct netlink_link **ret, size_t *ret_count, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = link_message(RTM_GETLINK, NLM_F_DUMP, 0);
    struct link_list list = {0};
    int r = netlink_talk(nl, m, collect_link, &list, err);

    if (r < 0) {
        free(list.links);
        return err_prefix(err, "cannot list links"), r;
    }
    *ret = list.links;
    *ret_count = list.count;
    return 0;
}

static int add(
    struct netlink *nl, struct nl_msg *m, const char *kind, const char *name, struct err *err)
{
    int r = netlink_talk(nl, m, NULL, NULL, err);

    if (r < 0)
        err_prefix(err, "cannot make %s '%s'", kind, name);
    return r;
}

static struct nl_msg *new_link(const char *name, uint32_t mtu, uint32_t group, bool up)
{
    struct ifinfomsg i = {.ifi_flags = up ? IFF_UP : 0, .ifi_change = up ? IFF_UP : 0};
    struct nl_msg *m = netlink_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &i, sizeof(i));

    netlink_put_text(m, IFLA_IFNAME, name);
    netlink_put_u32(m, IFLA_MTU, mtu);
    netlink_put_u32(m, IFLA_GROUP, group);
    return m;
}

int netlink_add_bridge(struct netlink *nl, const struct netlink_bridge *b, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = new_link(b->name, b->mtu, b->group, true);
    struct nlattr *info, *data;

    put_mac(m, b->mac);
    info = netlink_nest(m, IFLA_LINKINFO);
    netlink_put_text(m, IFLA_INFO_KIND, "bridge");
    data = netlink_nest(m, IFLA_INFO_DATA);
    netlink_put_u32(m, IFLA_BR_STP_STATE, 0);
    netlink_put_u8(m, IFLA_BR_MCAST_SNOOPING, 0);
    nla_nest_end(m, data);
    nla_nest_end(m, info);
    return add(nl, m, "bridge", b->name, err);
}

int netlink_add_vxlan(struct netlink *nl, const struct netlink_vxlan *x, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = new_link(x->name, x->mtu, x->group, false);
    bool six = x->local.family == AF_INET6;
    struct nlattr *info, *data;
    uint16_t port = htons(VXLAN_PORT);

    netlink_put_u32(m, IFLA_NET_NS_FD, (uint32_t)x->netns_fd);
    info = netlink_nest(m, IFLA_LINKINFO);
    netlink_put_text(m, IFLA_INFO_KIND, "vxlan");
    data = netlink_nest(m, IFLA_INFO_DATA);
    netlink_put_u32(m, IFLA_VXLAN_ID, x->vni);
    netlink_put_u32(m, IFLA_VXLAN_LINK, x->lower);
    netlink_put(m, six ? IFLA_VXLAN_LOCAL6 : IFLA_VXLAN_LOCAL, x->local.bytes, six ? 16 : 4);
    netlink_put(m, IFLA_VXLAN_PORT, &port, sizeof(port));
    netlink_put_u8(m, IFLA_VXLAN_LEARNING, 0);
    nla_nest_end(m, data);
    nla_nest_end(m, info);
    return add(nl, m, "VXLAN device", x->name, err);
}

static void put_veth_peer(struct nl_msg *m, const struct netlink_veth *v)
{
    struct ifinfomsg i = {.ifi_family = AF_UNSPEC};
    struct nlattr *peer = netlink_nest(m, VETH_INFO_PEER);

    assert(nlmsg_append(m, &i, sizeof(i), NLMSG_ALIGNTO) == 0);
    netlink_put_text(m, IFLA_IFNAME, v->peer);
    netlink_put_u32(m, IFLA_MTU, v->mtu);
    netlink_put_u32(m, IFLA_GROUP, v->peer_group);
    netlink_put_u32(m, IFLA_NET_NS_FD, (uint32_t)v->peer_netns_fd);
    put_mac(m, v->peer_mac);
    nla_nest_end(m, peer);
}

int netlink_add_veth(struct netlink *nl, const struct netlink_veth *v, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = new_link(v->name, v->mtu, v->group, false);
    struct nlattr *info, *data;

    put_mac(m, v->mac);
    if (v->master)
        netlink_put_u32(m, IFLA_MASTER, v->master);
    info = netlink_nest(m, IFLA_LINKINFO);
    netlink_put_text(m, IFLA_INFO_KIND, "veth");
    data = netlink_nest(m, IFLA_INFO_DATA);
    put_veth_peer(m, v);
    nla_nest_end(m, data);
    nla_nest_end(m, info);
    return add(nl, m, "veth", v->name, err);
}

static int set(struct netlink *nl, struct nl_msg *m, uint32_t index, struct err *err)
{
    int r = netlink_talk(nl, m, NULL, NULL, err);

    if (r < 0)
        err_prefix(err, "cannot set link %u", index);
    return r;
}

int netlink_link_up(struct netlink *nl, uint32_t index, const char *alias, struct err *err)
{
    struct ifinfomsg i = {.ifi_index = (int)index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(RTM_NEWLINK, 0, &i, sizeof(i));

    if (alias)
        netlink_put(m, IFLA_IFALIAS, alias, strlen(alias));
    return set(nl, m, index, err);
}

int netlink_set_master(struct netlink *nl, uint32_t index, uint32_t master, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = link_message(RTM_NEWLINK, 0, index);

    netlink_put_u32(m, IFLA_MASTER, master);
    return set(nl, m, index, err);
}

int netlink_port_strict(struct netlink *nl, uint32_t index, struct err *err)
{
    struct ifinfomsg i = {.ifi_family = AF_BRIDGE, .ifi_index = (int)index};
    _cleanup_(nl_msg_freep) struct nl_msg *m = netlink_message(RTM_SETLINK, 0, &i, sizeof(i));
    struct nlattr *port = netlink_nest(m, IFLA_PROTINFO | NLA_F_NESTED);

    netlink_put_u8(m, IFLA_BRPORT_LEARNING, 0);
    netlink_put_u8(m, IFLA_BRPORT_UNICAST_FLOOD, 0);
    nla_nest_end(m, port);
    return set(nl, m, index, err);
}

int netlink_del_link(struct netlink *nl, uint32_t index, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = link_message(RTM_DELLINK, 0, index);
    struct err why = ERR_INIT;
    int r = netlink_talk(nl, m, NULL, NULL, &why);

    if (r < 0 && r != -ENODEV)
        return err_set(err, r, "cannot delete link %u: %s", index, err_text(&why));
    return 0;
}

int netlink_del_group(struct netlink *nl, uint32_t group, struct err *err)
{
    _cleanup_(nl_msg_freep) struct nl_msg *m = link_message(RTM_DELLINK, 0, 0);
    struct err why = ERR_INIT;
    int r;

    netlink_put_u32(m, IFLA_GROUP, group);
    r = netlink_talk(nl, m, NULL, NULL, &why);
    if (r < 0 && r != -ENODEV)
        return err_set(err, r, "cannot delete the links of an edge: %s", err_text(&why));
    return 0;
}
