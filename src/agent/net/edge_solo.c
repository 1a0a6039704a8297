/*
 * The uplink, which every edge has, and the edge of a session with one container: its own
 * namespace. eth0 has the session's address; on the veth it is the uplink's address (by NAT in the
 * container's namespace), which no device there has: the node's neighbour entry brings answers in.
 */
#include "agent/net/edge_parts.h"
#include "agent/net/netns.h"
#include "base/crash.h"
#include "base/str.h"
#include "base/strv.h"

/* An edge number that another session has is the caller's mistake: its link is not to be cut. */
static int check_owner(const struct plan *p, const char *alias, struct err *err)
{
    _cleanup_(strv_freep) char **sessions = NULL;
    int r;

    if (str_is_empty(alias) || str_eq(alias, p->a->session))
        return 0;
    r = edge_list(p->n, &sessions, err);
    if (r == 0 && strv_has(sessions, alias))
        r = err_set(err, -EEXIST, "edge number %u is session %s's", p->index, alias);
    return r;
}

/* Is the uplink there and this session's? 1: yes. What is left of an unfinished one, or of an
 * edge that is gone, is removed. */
static int uplink_is_made(const struct plan *p, struct netlink *node, struct netlink *edge,
    const char *inner, struct err *err)
{
    struct netlink_link out = {0}, in = {0};
    bool has_out = netlink_link_get(node, p->uplink, &out, NULL) == 0;
    bool has_in = netlink_link_get(edge, inner, &in, NULL) == 0;
    int r = check_owner(p, out.alias, err);

    if (r == 0 && has_out && has_in && str_eq(out.alias, p->a->session))
        return 1;
    if (r == 0 && has_out)
        r = netlink_del_link(node, out.index, err);
    if (r == 0 && has_in)
        r = netlink_del_link(edge, in.index, err);
    return r;
}

/* On the node's side: no IPv6, so that its link-local address is not there to talk to; sources are
 * checked even while the node's table is gone. */
static int uplink_sysctls(const struct plan *p, struct err *err)
{
    static const struct {
        const char *family, *key, *value;
    } settings[] = {
        {"ipv6", "disable_ipv6", "1"},
        {"ipv4", "rp_filter", "1"},
        {"ipv4", "accept_redirects", "0"},
        {"ipv4", "send_redirects", "0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        _cleanup_free_ char *name = xasprintf(
            "%s/conf/%s/%s", settings[i].family, p->uplink, settings[i].key);
        int r = netns_sysctl(name, settings[i].value, err);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

static int make_uplink_veth(const struct plan *p, struct netlink *node, int edge_fd,
    const char *inner, const uint8_t inner_mac[MAC_LEN], struct err *err)
{
    struct netlink_veth v = {
        .name = p->uplink,
        .peer = inner,
        .peer_group = EDGE_GROUP,
        .peer_netns_fd = edge_fd,
        .mtu = p->mtu,
    };
    struct netlink_link link;
    int r;

    memcpy(v.mac, gateway_mac, MAC_LEN);
    memcpy(v.peer_mac, inner_mac, MAC_LEN);
    r = netlink_add_veth(node, &v, err);
    if (r == 0)
        r = uplink_sysctls(p, err);
    if (r == 0)
        r = netlink_link_get(node, p->uplink, &link, err);
    if (r == 0)
        r = netlink_ensure_addr(node, link.index, p->up_node, 30, err);
    if (r == 0)
        r = netlink_ensure_neigh(node, link.index, p->up_edge, inner_mac, err);
    if (r == 0) /* last: the alias says that it is whole */
        r = netlink_link_up(node, link.index, p->a->session, err);
    return r;
}

int edge_make_uplink(const struct plan *p, struct netlink *node, struct netlink *edge, int edge_fd,
    const char *inner, const uint8_t inner_mac[MAC_LEN], struct netlink_link *ret, struct err *err)
{
    int r = uplink_is_made(p, node, edge, inner, err);

    if (r == 0)
        r = make_uplink_veth(p, node, edge_fd, inner, inner_mac, err);
    if (r < 0)
        return err_prefix(err, "uplink '%s'", p->uplink), r;
    return netlink_link_get(edge, inner, ret, err);
}

/* The container's way to the gateway: an address that no device here has, reached by a link route
 * and a neighbour entry that never expires. */
int edge_route_by_gateway(struct netlink *nl, uint32_t index, struct err *err)
{
    int r = netlink_ensure_route(nl, index, GATEWAY_IP, 32, 0, 0, err);

    if (r == 0)
        r = netlink_ensure_neigh(nl, index, GATEWAY_IP, gateway_mac, err);
    if (r == 0)
        r = netlink_ensure_route(nl, index, 0, 0, GATEWAY_IP, 0, err);
    return r;
}

int edge_make_solo(const struct plan *p, struct err *err)
{
    _cleanup_(netlink_close) struct netlink node = {0}, edge = {0};
    _cleanup_close_ int fd = -1;
    char path[NETNS_PATH_MAX];
    struct netlink_link eth0;
    uint8_t mac[MAC_LEN];
    int r;

    edge_container_netns(p->n, p->a->session, p->a->peers[0].name, path);
    fd = netns_pin(path, edge_prepare_container, err);
    if (fd < 0)
        return fd;
    r = netlink_open(&node, err);
    if (r == 0)
        r = netlink_open_in(&edge, fd, err);
    if (r == 0)
        r = edge_apply_filter(p, &node, fd, err);
    if (r == 0)
        r = crash_point("net.after_filter", err);
    if (r < 0)
        return r;
    mac_of_ip(p->a->peers[0].ip, mac);
    r = edge_make_uplink(p, &node, &edge, fd, CONTAINER_LINK, mac, &eth0, err);
    if (r == 0)
        r = crash_point("net.after_link", err);
    if (r == 0)
        r = netlink_link_up(&edge, LOOPBACK_INDEX, NULL, err);
    if (r == 0)
        r = netlink_ensure_addr(&edge, eth0.index, p->a->peers[0].ip, 32, err);
    if (r == 0)
        r = netlink_link_up(&edge, eth0.index, NULL, err);
    return r < 0 ? r : edge_route_by_gateway(&edge, eth0.index, err);
}
