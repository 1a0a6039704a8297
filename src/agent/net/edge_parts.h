/*
 * The steps of making an edge, shared by the files of this folder only. Each ensures one thing.
 */
#ifndef AGENT_NET_EDGE_PARTS_H
#define AGENT_NET_EDGE_PARTS_H

#include "agent/net/netlink.h"
#include "agent/net/plan.h"

/* "NETNS_DIR/SESSION_ID", the namespace of a shared edge. */
void edge_netns(const struct node_net *n, const char *session_id, char path[NETNS_PATH_MAX]);
/* For netns_pin: the sysctls. */
int edge_prepare_container(struct err *err);
int edge_prepare_shared(struct err *err);

/* What an edge must not reach: the node's list, and the addresses that this node has right now.
 * Normalised. node: a connection into the node's namespace. */
int edge_blocked(
    const struct node_net *n, struct netlink *node, struct cidr_list *ret, struct err *err);
int edge_apply_filter(const struct plan *p, struct netlink *node, int edge_fd, struct err *err);

/* The veth from the node into the edge, named inner there. ret: the inner end. */
int edge_make_uplink(const struct plan *p, struct netlink *node, struct netlink *edge, int edge_fd,
    const char *inner, const uint8_t inner_mac[MAC_LEN], struct netlink_link *ret, struct err *err);
int edge_route_by_gateway(struct netlink *nl, uint32_t index, struct err *err);

/* Every session's edge, and uplinks that lost theirs. */
int edge_remove_all(const struct node_net *n, struct err *err);

int edge_make_solo(const struct plan *p, struct err *err);
int edge_make_shared(const struct plan *p, struct err *err);
int edge_make_container(const struct plan *p, uint32_t rank, struct err *err);

#endif
