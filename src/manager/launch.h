/*
 * A session's life after it was accepted: placing, starting, ending, giving back. Reports of agents
 * and the clock come in; changed sessions are saved and the nodes concerned are told once that is
 * durable.
 */
#ifndef MANAGER_LAUNCH_H
#define MANAGER_LAUNCH_H

#include "manager/manager.h"
#include "wire/assignment.h"

/* Look at the queue at the end of this turn. */
void pass_want(struct manager *m);
/* Start it (the check handle must be started after the store's, see pass.c). */
void pass_start(struct manager *m);
/* Usage of every node now, for passes, the API and dry runs: count = map_count(&m->nodes). Heap. */
struct sched_node *pass_usage(struct manager *m, size_t *ret_count);
/* The decision for one session not in the queue; free with sched_free(d, 1). */
struct sched_decision *pass_dry(struct manager *m, const struct session *s);

/* A pass placed it: node, gpus, addresses are set. */
void launch_placed(struct manager *m, struct session *s);
/* End it: result and reason are kept from the first call. Pending ones end at once; others stop on
 * their nodes. again: it goes back to pending once everything is removed. */
void launch_stop(struct manager *m, struct session *s, enum session_result result, const char *code,
    bool now, const char *fmt, ...) PRINTF_LIKE(6, 7);
/* An agent's word about one container. */
void launch_report(struct manager *m, struct mnode *n, const struct report *r);
/* Nothing of a session is left on that node; why: how that came, if nobody had stopped it. */
void launch_removed(
    struct manager *m, struct mnode *n, const char *session, uint32_t attempt, const char *why);
/* The node's containers are no more: it rebooted, forgot them, or was declared lost. */
void launch_node_lost(struct manager *m, struct mnode *n, const char *why);
/* The node can or cannot be reached any more: its sessions say so. */
void launch_node_reachable(struct manager *m, const struct mnode *n);
/* Deadlines and time limits. */
void launch_tick(struct manager *m, uint64_t now_usec);
/* What the node should have of the session, NULL when nothing. */
struct assignment *launch_assignment(
    struct manager *m, const struct session *s, const struct mnode *n);
/* Tell all nodes of the session after the commit. */
void launch_tell(struct manager *m, const struct session *s);

#endif
