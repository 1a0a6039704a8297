/* Connections of agents: hello, orders, reports, silence. */
#ifndef MANAGER_LINKS_H
#define MANAGER_LINKS_H

#include "manager/manager.h"
#include "wire/assignment.h"
#include "wire/link.h"

/* Send to a node; dropped when it is not connected (the next hello makes up for it). */
void link_send(struct mnode *n, const struct link_message *message);
/* Silent agents; nodes that are away for too long. */
void links_tick(struct manager *m, uint64_t now_usec);
/* Tell all agents the addresses of the nodes (after one joined or moved). */
void links_tell_peers(struct manager *m);
/* Containers on this node that hold something, by kind; for deciding whether it may be given up. */
bool node_has_kind(struct manager *m, const struct mnode *n, enum session_kind kind);
/* An administrator's word: what is quarantined there is removed. */
void node_purge(struct manager *m, struct mnode *n);
/* Close its link for good: the agent must dial again, and be let in again. */
void links_drop(struct manager *m, struct mnode *n, const char *why);
/* The node of that name, made when there is none. */
struct mnode *node_for(struct manager *m, const char *name);
void node_declare_lost(struct manager *m, struct mnode *n, const char *why);

#endif
