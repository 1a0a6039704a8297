/*
 * The few rtnetlink requests that edges need, over libnl: links, addresses, routes, neighbours and
 * forwarding entries. (rtnetlink(7); libnl-route 3.7 lacks half of the attributes used here, so the
 * messages are put together by hand.)
 *
 * A connection belongs to the network namespace in which it was opened and keeps it, wherever the
 * thread goes later. "ensure" calls succeed when the thing is there already. Errors carry the
 * kernel's own explanation when it gave one.
 */
#ifndef AGENT_NET_NETLINK_H
#define AGENT_NET_NETLINK_H

#include "base/err.h"

#define MAC_LEN 6
#define LINK_NAME_MAX 16 /* with the NUL; IFNAMSIZ */
#define LOOPBACK_INDEX 1 /* in every namespace */

struct nl_sock;

struct netlink {
    struct nl_sock *sock; /* NULL: not open */
};

struct netlink_addr { /* an IPv4 or IPv6 address, network byte order */
    int family;
    uint8_t bytes[16];
};

struct netlink_link {
    uint32_t index;
    uint32_t mtu;
    uint32_t vni; /* of a VXLAN device */
    char name[LINK_NAME_MAX];
    char alias[64]; /* cut if longer */
};

int netlink_open(struct netlink *nl, struct err *err); /* in the thread's namespace */
int netlink_open_in(struct netlink *nl, int netns_fd, struct err *err);
void netlink_close(struct netlink *nl); /* for _cleanup_(netlink_close) */

/* "10.8.0.1" or "fd00::1". -EINVAL. */
int netlink_addr_parse(const char *text, struct netlink_addr *ret);

/* -ENODEV (err is set too). */
int netlink_link_get(
    struct netlink *nl, const char *name, struct netlink_link *ret, struct err *err);
/* Heap array. */
int netlink_link_list(
    struct netlink *nl, struct netlink_link **ret, size_t *ret_count, struct err *err);

/* New links: -EEXIST when the name is taken. */
struct netlink_bridge {
    const char *name;
    uint8_t mac[MAC_LEN];
    uint32_t mtu, group;
};
/* No spanning tree, no multicast snooping; up. */
int netlink_add_bridge(struct netlink *nl, const struct netlink_bridge *b, struct err *err);

struct netlink_vxlan {
    const char *name;
    int netns_fd; /* where the device lives; its UDP socket is in nl's namespace */
    uint32_t vni, mtu, group;
    uint32_t lower; /* index in nl's namespace of the device that carries it */
    struct netlink_addr local;
};
/* Port 4789, no learning; down. */
int netlink_add_vxlan(struct netlink *nl, const struct netlink_vxlan *x, struct err *err);

struct netlink_veth {
    const char *name; /* here */
    uint8_t mac[MAC_LEN];
    uint32_t group;
    uint32_t master;  /* index of a bridge; 0: none */
    const char *peer; /* there */
    uint8_t peer_mac[MAC_LEN];
    uint32_t peer_group;
    int peer_netns_fd;
    uint32_t mtu;
};
/* Both ends down; an all-zero MAC: random. */
int netlink_add_veth(struct netlink *nl, const struct netlink_veth *v, struct err *err);

/* alias: NULL to leave it. */
int netlink_link_up(struct netlink *nl, uint32_t index, const char *alias, struct err *err);
int netlink_set_master(struct netlink *nl, uint32_t index, uint32_t master, struct err *err);
/* Of a bridge port: no learning and no flooding of unicast frames: they go where a forwarding entry
 * says, or nowhere. */
int netlink_port_strict(struct netlink *nl, uint32_t index, struct err *err);
/* Success when it is not there. Returns when the kernel has let go of it. */
int netlink_del_link(struct netlink *nl, uint32_t index, struct err *err);
/* All links of a group at once, their peers in other namespaces too. */
int netlink_del_group(struct netlink *nl, uint32_t group, struct err *err);

/* IPv4 below is in host byte order. */
int netlink_ensure_addr(
    struct netlink *nl, uint32_t index, uint32_t ip, uint8_t prefix, struct err *err);
/* gateway 0: on the link itself. src 0: the kernel's choice. */
int netlink_ensure_route(struct netlink *nl, uint32_t index, uint32_t dst, uint8_t prefix,
    uint32_t gateway, uint32_t src, struct err *err);
/* Permanent. */
int netlink_ensure_neigh(
    struct netlink *nl, uint32_t index, uint32_t ip, const uint8_t mac[MAC_LEN], struct err *err);
/* A static entry of the bridge that index is a port of. */
int netlink_ensure_fdb(
    struct netlink *nl, uint32_t index, const uint8_t mac[MAC_LEN], struct err *err);
/* An entry of a VXLAN device: frames for mac go to this host. The all-zero MAC (broadcast) may have
 * several hosts. */
int netlink_ensure_vxlan_fdb(struct netlink *nl, uint32_t index, const uint8_t mac[MAC_LEN],
    const struct netlink_addr *host, struct err *err);

/* Calls fn for every address of the namespace; stops with its result when that is negative. */
int netlink_each_addr(struct netlink *nl,
    int (*fn)(void *arg, uint32_t index, const struct netlink_addr *a), void *arg, struct err *err);

#endif
