/*
 * The scheduler: pure. A snapshot goes in, decisions with reasons come out. No clock, no I/O; the
 * same input gives the same output. Everything in the snapshot is borrowed for the call.
 *
 * Rules of this form (EASY backfill, quotas and preemption come beside them):
 * - sessions are looked at in the order given (the caller sorts by submission);
 * - a gang is placed whole or not at all, inside one group;
 * - single-node: on one node, or it waits;
 * - multi-node: whole on one node if any can hold it now, else on the fewest nodes;
 * - among nodes that do equally well: least left over (best fit), then name;
 * - on a node, GPUs are given lowest index first, healthy ones and of the model asked only.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "model/node.h"
#include "model/session.h"

struct sched_node {
    const struct node *node;
    struct resources free; /* capacity less what live containers hold */
    uint64_t gpu_free;     /* bit i: GPU i is free (healthy or not) */
};

struct sched_snapshot {
    struct sched_node *nodes; /* free and gpu_free are used up as decisions are made */
    size_t node_count;
    const struct session *const *pending; /* in order */
    size_t pending_count;
};

struct sched_share { /* one container's place */
    const struct node *node;
    uint64_t gpus; /* bits */
};

struct sched_decision {
    const struct session *session;
    bool placed;
    struct sched_share *shares; /* session->size of them by rank, when placed */
    /* when not: */
    char code[48];  /* "resources", "no_node_up", "group_drained", "single_node_too_small_now" */
    char text[256]; /* "needs 4 x (2 CPUs, 4 GiB) on one node; the most any node of group 'default'
                       has free is 3 x (n2)" */
    uint32_t largest; /* size of the same session that would fit now (0..size-1) */
};

/* One decision per pending session, in their order. Free with sched_free. */
void sched_pass(struct sched_snapshot *snap, struct sched_decision **ret, size_t *ret_count);
void sched_free(struct sched_decision *d, size_t count);

/*
 * Could the session ever run on the group's nodes as they are when empty (whatever their state)?
 * 0, or -E2BIG with "asks for 4 x 8 GPUs = 32 on one node; the largest node of group 'default' (n1)
 * has 8", or -ENOENT when the group has no node at all. ret_largest: the largest size that could.
 */
int sched_could_ever(const struct session *s, const struct node *const *nodes, size_t count,
    uint32_t *ret_largest, struct err *err);

#endif
