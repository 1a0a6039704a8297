/* Where one gang goes: the choice of nodes and GPUs, without reasons. Inside sched only. */
#ifndef SCHED_PLACE_H
#define SCHED_PLACE_H

#include "sched/sched.h"

/* GPUs of the node, as bits, that are of the model (any when ""); healthy ones only if asked. */
uint64_t place_gpus(const struct node *n, const char *model, bool healthy_only);

/* Nodes of the snapshot that could take a part of a session, with how many containers fit on each.
 */
struct candidate {
    struct sched_node *sn;
    uint64_t gpus; /* free, healthy, of the model asked */
    uint32_t fits; /* containers; 0: none */
    bool used;     /* by this placement */
};

/* Up, not drained, in the session's group; heap, by node name; *ret_count of them. */
struct candidate *place_candidates(
    const struct sched_snapshot *snap, const struct session *s, size_t *ret_count);

/*
 * Place the whole session or nothing. On true shares has one entry a container, by rank, and what
 * they take is gone from the snapshot. shares: room for s->size.
 */
bool place_gang(
    struct candidate *cand, size_t count, const struct session *s, struct sched_share *shares);

#endif
