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
/* A pass may be due by time. */
void pass_tick(struct manager *m, uint64_t now_usec);
/* A session or a node is new, has changed, or is no more: state.c says it with each save. */
void pass_session_changed(struct manager *m, const char *id);
void pass_node_changed(struct manager *m, const char *name);
/* Why a session waits, now; its own reason becomes that. */
void pass_reason(struct manager *m, struct session *s, struct sched_reason *ret);
/* What would become of one that is not in the queue: sched_try. */
bool pass_try(struct manager *m, const struct session *s, struct sched_start *ret_start,
    struct sched_reason *ret_reason);

/* sched_would_move, now. */
size_t pass_would_move(
    struct manager *m, const struct session *longer, struct sched_moved *ret, size_t max);

struct node_usage {
    const struct node *node;
    struct resources free; /* capacity less what is held there */
};

/* Of every node, now: count = map_count(&m->nodes). Heap. */
struct node_usage *pass_usage(struct manager *m, size_t *ret_count);

/* A pass placed it: node, gpus, addresses are set. */
void launch_placed(struct manager *m, struct session *s);
/* When it must have started to be over in time (finish_usec); 0: whenever. */
uint64_t launch_last_start(const struct session *s);
/* End it: result and reason are kept from the first call. Pending ones end at once; others stop on
 * their nodes. again: it goes back to pending once everything is removed. */
void launch_stop(struct manager *m, struct session *s, enum session_result result, const char *code,
    bool now, const char *fmt, ...) PRINTF_LIKE(6, 7);
/* It has to leave, so that the other one starts. */
void launch_preempt(struct manager *m, struct session *s, const struct session *for_whom);
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
