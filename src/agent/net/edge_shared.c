/*
 * The edge of a session with several containers: a bridge, a port for each container of this node,
 * a VXLAN device towards those of other nodes. Frames go where a forwarding entry says; only
 * broadcasts (ARP) are flooded. All entries are known beforehand: nothing is learned.
 */
#include "agent/net/edge_parts.h"
#include "agent/net/netns.h"
#include "base/crash.h"

static int make_bridge(
    const struct plan *p, struct netlink *edge, struct netlink_link *ret, struct err *err)
{
    struct netlink_bridge b = {.name = EDGE_BRIDGE, .mtu = p->mtu, .group = EDGE_GROUP};
    int r = 0;

    memcpy(b.mac, gateway_mac, MAC_LEN);
    if (netlink_link_get(edge, EDGE_BRIDGE, ret, NULL) < 0) {
        r = netlink_add_bridge(edge, &b, err);
        if (r == 0)
            r = netlink_link_get(edge, EDGE_BRIDGE, ret, err);
    }
    if (r == 0)
        r = netlink_ensure_addr(edge, ret->index, GATEWAY_IP, 32, err);
    if (r == 0)
        r = netlink_ensure_route(
            edge, ret->index, p->a->subnet, SESSION_PREFIX, 0, GATEWAY_IP, err);
    return r;
}

static int add_vxlan(const struct plan *p, struct netlink *node, int edge_fd, struct err *err)
{
    struct netlink_vxlan x = {
        .name = EDGE_VXLAN,
        .netns_fd = edge_fd,
        .vni = p->a->vni,
        .mtu = p->mtu,
        .group = EDGE_GROUP,
        .local = p->fabric,
    };
    struct netlink_link lower;
    int r = netlink_link_get(node, p->n->fabric_dev, &lower, err);

    if (r < 0)
        return err_prefix(err, "the fabric"), r;
    x.lower = lower.index;
    r = netlink_add_vxlan(node, &x, err);
    if (r < 0)
        err_prefix(err, "VNI %u", p->a->vni);
    return r;
}

static int fill_vxlan(const struct plan *p, struct netlink *edge, uint32_t index, struct err *err)
{
    static const uint8_t all[MAC_LEN];

    for (uint32_t i = 0; i < p->a->peer_count; i++) {
        const struct assigned_peer *peer = &p->a->peers[i];
        struct netlink_addr host;
        uint8_t mac[MAC_LEN];
        int r;

        if (!plan_is_remote(p, peer))
            continue;
        r = netlink_addr_parse(peer->fabric, &host);
        if (r < 0 || host.family != p->fabric.family)
            return err_set(
                err, -EINVAL, "'%s' cannot be reached from '%s'", peer->fabric, p->n->fabric_addr);
        mac_of_ip(peer->ip, mac);
        r = netlink_ensure_vxlan_fdb(edge, index, all, &host, err);
        if (r == 0)
            r = netlink_ensure_vxlan_fdb(edge, index, mac, &host, err);
        if (r == 0)
            r = netlink_ensure_fdb(edge, index, mac, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* One with another VNI is of an earlier attempt. */
static int ensure_vxlan(const struct plan *p, struct netlink *node, struct netlink *edge,
    int edge_fd, struct netlink_link *ret, struct err *err)
{
    int r = 0;

    if (netlink_link_get(edge, EDGE_VXLAN, ret, NULL) == 0) {
        if (ret->vni == p->a->vni)
            return 0;
        r = netlink_del_link(edge, ret->index, err);
    }
    if (r == 0)
        r = add_vxlan(p, node, edge_fd, err);
    return r < 0 ? r : netlink_link_get(edge, EDGE_VXLAN, ret, err);
}

static int make_vxlan(const struct plan *p, struct netlink *node, struct netlink *edge, int edge_fd,
    uint32_t bridge, struct err *err)
{
    struct netlink_link vx;
    int r;

    if (!plan_has_remote(p))
        return 0;
    r = ensure_vxlan(p, node, edge, edge_fd, &vx, err);
    if (r == 0)
        r = netlink_set_master(edge, vx.index, bridge, err);
    if (r == 0)
        r = netlink_port_strict(edge, vx.index, err);
    if (r == 0)
        r = fill_vxlan(p, edge, vx.index, err);
    if (r == 0)
        r = netlink_link_up(edge, vx.index, NULL, err);
    return r;
}

static int make_way_out(
    const struct plan *p, struct netlink *node, struct netlink *edge, int edge_fd, struct err *err)
{
    struct netlink_link up;
    uint8_t mac[MAC_LEN];
    int r;

    mac_of_ip(p->up_edge, mac);
    r = edge_make_uplink(p, node, edge, edge_fd, EDGE_UPLINK, mac, &up, err);
    if (r == 0)
        r = crash_point("net.after_link", err);
    if (r == 0)
        r = netlink_ensure_addr(edge, up.index, p->up_edge, 30, err);
    if (r == 0)
        r = netlink_ensure_neigh(edge, up.index, p->up_node, gateway_mac, err);
    if (r == 0)
        r = netlink_link_up(edge, up.index, NULL, err);
    if (r == 0)
        r = netlink_ensure_route(edge, up.index, 0, 0, p->up_node, 0, err);
    return r;
}

int edge_make_shared(const struct plan *p, struct err *err)
{
    _cleanup_(netlink_close) struct netlink node = {0}, edge = {0};
    _cleanup_close_ int fd = -1;
    char path[NETNS_PATH_MAX];
    struct netlink_link bridge;
    int r;

    edge_netns(p->n, p->a->session, path);
    fd = netns_pin(path, edge_prepare_shared, err);
    if (fd < 0)
        return fd;
    r = netlink_open(&node, err);
    if (r == 0)
        r = netlink_open_in(&edge, fd, err);
    if (r == 0)
        r = edge_apply_filter(p, &node, fd, err);
    if (r == 0)
        r = crash_point("net.after_filter", err);
    if (r == 0)
        r = netlink_link_up(&edge, LOOPBACK_INDEX, NULL, err);
    if (r == 0)
        r = make_bridge(p, &edge, &bridge, err);
    if (r == 0)
        r = make_way_out(p, &node, &edge, fd, err);
    if (r == 0)
        r = make_vxlan(p, &node, &edge, fd, bridge.index, err);
    return r;
}

/* The port on the bridge and eth0 behind it; both or none. */
static int make_port(const struct plan *p, uint32_t rank, struct netlink *edge,
    struct netlink *inside, int inside_fd, struct netlink_link *ret_port,
    struct netlink_link *ret_eth0, struct err *err)
{
    char name[LINK_NAME_MAX];
    struct netlink_veth v = {
        .name = name,
        .group = EDGE_GROUP,
        .peer = CONTAINER_LINK,
        .peer_group = EDGE_GROUP,
        .peer_netns_fd = inside_fd,
        .mtu = p->mtu,
    };
    struct netlink_link bridge;
    bool has_port, has_eth0;
    int r = 0;

    port_name(rank, name);
    has_port = netlink_link_get(edge, name, ret_port, NULL) == 0;
    has_eth0 = netlink_link_get(inside, CONTAINER_LINK, ret_eth0, NULL) == 0;
    if (has_port && has_eth0)
        return 0;
    if (has_port)
        r = netlink_del_link(edge, ret_port->index, err);
    if (r == 0 && has_eth0)
        r = netlink_del_link(inside, ret_eth0->index, err);
    if (r == 0)
        r = netlink_link_get(edge, EDGE_BRIDGE, &bridge, err);
    if (r != 0)
        return r;
    v.master = bridge.index;
    mac_of_ip(p->a->peers[rank].ip, v.peer_mac);
    r = netlink_add_veth(edge, &v, err);
    if (r == 0)
        r = netlink_link_get(edge, name, ret_port, err);
    if (r == 0)
        r = netlink_link_get(inside, CONTAINER_LINK, ret_eth0, err);
    return r;
}

static int plug_port(uint32_t port, uint32_t ip, struct netlink *edge, struct err *err)
{
    struct netlink_link bridge;
    uint8_t mac[MAC_LEN];
    int r = netlink_link_get(edge, EDGE_BRIDGE, &bridge, err);

    mac_of_ip(ip, mac);
    if (r == 0)
        r = netlink_port_strict(edge, port, err);
    if (r == 0)
        r = netlink_ensure_fdb(edge, port, mac, err);
    if (r == 0)
        r = netlink_ensure_neigh(edge, bridge.index, ip, mac, err);
    if (r == 0)
        r = netlink_link_up(edge, port, NULL, err);
    return r;
}

int edge_make_container(const struct plan *p, uint32_t rank, struct err *err)
{
    const struct assigned_peer *peer = &p->a->peers[rank];
    _cleanup_(netlink_close) struct netlink edge = {0}, inside = {0};
    _cleanup_close_ int edge_fd = -1, fd = -1;
    struct netlink_link port, eth0;
    char path[NETNS_PATH_MAX];
    int r;

    edge_netns(p->n, p->a->session, path);
    edge_fd = netns_open(path, err);
    if (edge_fd < 0)
        return edge_fd;
    edge_container_netns(p->n, p->a->session, peer->name, path);
    fd = netns_pin(path, edge_prepare_container, err);
    if (fd < 0)
        return fd;
    r = netlink_open_in(&edge, edge_fd, err);
    if (r == 0)
        r = netlink_open_in(&inside, fd, err);
    if (r == 0)
        r = make_port(p, rank, &edge, &inside, fd, &port, &eth0, err);
    if (r == 0)
        r = crash_point("net.after_port", err);
    if (r == 0)
        r = plug_port(port.index, peer->ip, &edge, err);
    if (r == 0)
        r = netlink_link_up(&inside, LOOPBACK_INDEX, NULL, err);
    if (r == 0)
        r = netlink_ensure_addr(&inside, eth0.index, peer->ip, SESSION_PREFIX, err);
    if (r == 0)
        r = netlink_link_up(&inside, eth0.index, NULL, err);
    return r != 0 ? r : edge_route_by_gateway(&inside, eth0.index, err);
}
