/*
 * The private network of a session on this node. Each session has an "edge": the network namespace
 * in which its filter and its way out live.
 *
 *   size 1:   the container's own namespace is the edge: eth0 is a veth to the node. It has the
 *             session's address (/32); on the veth that becomes the uplink's by NAT in the
 *             container's namespace, so the node knows uplinks only.
 *   larger:   a namespace of its own with a bridge "br0" (a port "pRANK" for each container), the
 *             VXLAN device "vx0" when containers are on other nodes, and a veth "up0" to the node.
 *
 * In the node an uplink is called "m-TAG-III" (III: the edge's index, hexadecimal) and has the
 * session's id as its alias (`ip link`): what is left over is found by these two.
 *
 * Sessions share no bridge and no route, and the filter that keeps them apart is in their edges,
 * where a `nft flush ruleset` on the node does not reach: that costs the way out for the seconds
 * until node_net_repair, and opens nothing. (docs/decisions/session-edge.md)
 *
 * All calls block (netlink, nft) and are made from worker threads; different sessions may be worked
 * on at once, one session by one thread. All are idempotent: making what is there, or removing what
 * is not, is success, so that a restarted agent just does them again.
 * Namespaces are pinned as files below netns_dir, in the agent's mount namespace.
 */
#ifndef AGENT_NET_EDGE_H
#define AGENT_NET_EDGE_H

#include "wire/assignment.h"

struct node_net {
    char netns_dir[256];  /* RUN/netns */
    char tag[9];          /* 1..8 of [a-z0-9]: told apart by it, several agents may share a network
                             namespace; part of the nft table's name and of link names */
    char fabric_addr[64]; /* local address of VXLAN traffic; IPv4 or IPv6 */
    char fabric_dev[16];  /* the device that carries it: node_net_find_fabric */
    uint32_t fabric_mtu;  /* of that device */
    char **blocked;       /* CIDRs that sessions must not reach: all sessions' networks, the nodes'
                             addresses (management and fabric networks), storage networks */
    char **peers;         /* fabric addresses of all nodes: 4789/udp is taken from them only */
    uint32_t uplink_base; /* host byte order; 169.254.64.0 + 4 * index: a /30 for each edge */
};

/* Fill fabric_dev and fabric_mtu from fabric_addr. -ENODEV when no device has it. */
int node_net_find_fabric(struct node_net *n, struct err *err);

/*
 * Once at start, and again whenever blocked or peers change: forwarding on, the node's nft table
 * ("inet muster_TAG": masquerade for the uplinks to ports 32768-60999, tcp and udp; forward accept
 * from uplinks outwards and established back, drop uplink to uplink and from uplinks to blocked;
 * input from uplinks drop but icmp; 4789/udp in from peers only, out from root only). One
 * transaction; replaces what was there. Other tables are not touched, nor is the node's bridge-nf
 * switch, which Docker needs: our bridges are in the edges, where it is off. The edges that stand
 * get the new list of blocked networks too. The first call takes some 30 ms (libnftables loads),
 * later ones 1 ms.
 */
int node_net_setup(const struct node_net *n, struct err *err);
/* 1 when the tables were gone or changed and have been put back, 0 when all was well. Cheap enough
 * for every second. */
int node_net_repair(const struct node_net *n, struct err *err);
/* Take away tables and whatever of this tag is left (links, edges). For `muster down`. */
int node_net_remove(const struct node_net *n, struct err *err);
/* A netlink socket (non-blocking) that becomes readable when somebody changes nft rules in this
 * network namespace: drain it and call node_net_repair. */
int node_net_watch(int *ret_fd, struct err *err);
void node_net_drain(int fd);

/* index: 0..4095, unique among the edges of this node (the caller keeps it in its spec file). */
/* The edge of a session: namespace, bridge, VXLAN with its forwarding entries, veth, filter. For
 * size 1 (peer_count 1) this makes the container's namespace itself. */
int edge_make(
    const struct node_net *n, const struct assignment *a, uint32_t index, struct err *err);
/* One container's namespace with eth0 on the bridge: address from its peer entry, MTU, gateway
 * 169.254.1.1, static neighbour, sysctls (ip_unprivileged_port_start=0, ping_group_range, IPv6 off
 * unless the overlay carries it), loopback up. Nothing to do for size 1. */
int edge_add_container(
    const struct node_net *n, const struct assignment *a, uint32_t rank, struct err *err);
/* All of a session: containers' namespaces too. Returns after the kernel has let go of the links.
 */
int edge_remove(const struct node_net *n, const char *session_id, struct err *err);

/* Where the namespace of a container is pinned: "NETNS_DIR/SESSION_ID.main1"; the edge's own is
 * "NETNS_DIR/SESSION_ID". */
#define NETNS_PATH_MAX 384
void edge_container_netns(
    const struct node_net *n, const char *session_id, const char *name, char path[NETNS_PATH_MAX]);
/* A socket that lives in the container's namespace: socket(2) there, used from here. Runs on the
 * calling thread, which is back in its own namespace when it returns. Returns the fd. */
int edge_socket_in(const char *netns_path, int domain, int type);

/* Sessions that have namespaces here, for the agent's start: heap vector of session ids. */
int edge_list(const struct node_net *n, char ***ret, struct err *err);

/* MTU inside a session: the fabric's less 50 (VXLAN over IPv4) or 70 (over IPv6); the fabric's own
 * when all are on one node (vni 0). A loopback device as fabric counts as 1500. */
uint32_t edge_mtu(const struct node_net *n, const struct assignment *a);

#endif
