/*
 * What an edge will look like, computed and checked before anything is touched: names, addresses
 * and numbers, from the node's settings and the assignment. Pure. Used by the files of this folder.
 */
#ifndef AGENT_NET_PLAN_H
#define AGENT_NET_PLAN_H

#include "agent/net/cidr.h"
#include "agent/net/edge.h"
#include "agent/net/netlink.h"

#define SESSION_PREFIX 22
#define LINK_LOCAL_NET 0xa9fe0000u /* 169.254.0.0/16 */
#define GATEWAY_IP 0xa9fe0101u     /* 169.254.1.1, in every session */
#define UPLINK_COUNT 4096u
#define PORT_LOW 32768
#define PORT_HIGH 60999

#define EDGE_BRIDGE "br0"
#define EDGE_VXLAN "vx0"
#define EDGE_UPLINK "up0"
#define CONTAINER_LINK "eth0"
/* All links that were made in a session's namespaces have this group: deleted in one go. */
#define EDGE_GROUP 0x6d757374u

extern const uint8_t gateway_mac[MAC_LEN]; /* 02:4d:00:00:00:01 */

struct plan {
    const struct node_net *n;
    const struct assignment *a;
    uint32_t index;
    uint32_t mtu;
    uint32_t up_node, up_edge;  /* the two ends of the /30, host byte order */
    char uplink[LINK_NAME_MAX]; /* the veth's end in the node */
    bool solo;                  /* one container: its namespace is the edge */
    struct netlink_addr fabric; /* this node's */
};

/* -EINVAL when the assignment cannot be built (from outside: everything is checked). */
int plan_make(const struct node_net *n, const struct assignment *a, uint32_t index,
    struct plan *ret, struct err *err);
int plan_check_node(const struct node_net *n, struct err *err);

/* Is this peer's container on another node? */
bool plan_is_remote(const struct plan *p, const struct assigned_peer *peer);
bool plan_has_remote(const struct plan *p);
/* 02:4d and the four bytes of the address. */
void mac_of_ip(uint32_t ip, uint8_t mac[MAC_LEN]);
void port_name(uint32_t rank, char name[LINK_NAME_MAX]);                  /* "p3": on the bridge */
void uplink_prefix(const struct node_net *n, char prefix[LINK_NAME_MAX]); /* "m-TAG-" */

#endif
