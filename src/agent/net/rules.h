/*
 * The nftables texts of nodes and edges. Pure: rules in, text out, so that tests can read what will
 * be applied. Every value printed was parsed before: nothing from outside gets in as text.
 */
#ifndef AGENT_NET_RULES_H
#define AGENT_NET_RULES_H

#include "agent/net/plan.h"

#define RULES_MAX (1024 * 1024)

/* "inet muster_TAG" whole, replacing what was there. */
int rules_node(const struct node_net *n, struct buf *out, struct err *err);
int rules_node_remove(const struct node_net *n, struct buf *out);
void rules_node_table(const struct node_net *n, char name[32]); /* "inet muster_TAG" */

/* An edge's tables whole. blocked is normalised. */
int rules_edge(const struct plan *p, const struct cidr_list *blocked, struct buf *out);
/* New contents for the set of blocked networks of an edge that stands. */
int rules_edge_blocked(const struct cidr_list *blocked, struct buf *out);

#endif
