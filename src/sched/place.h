/*
 * Where one job goes now: whole or not at all.
 *
 * - on one node if any holds all of it; otherwise, unless it wants one node, on the fewest nodes,
 *   with GPUs of one model if that takes no more, inside the smallest level (leaf, spine, cluster)
 *   that holds it;
 * - among nodes that do equally well: those whose GPU model is least wanted by name, then those
 *   whose GPUs are least fragmented by it (frag.h), then those of one leaf after the other, so that
 *   whole leaves stay free for gangs, then by name.
 */
#ifndef SCHED_PLACE_H
#define SCHED_PLACE_H

#include "sched/frag.h"

#define PLACE_BLOCK 64 /* nodes that are skipped at once when none of them has room */

struct place_block {
    int64_t cpu_milli, mem; /* the most that any node has free */
    uint16_t whole, part;   /* of GPUs */
    bool stale;             /* something was given back or taken */
};

struct place_cost { /* of so many containers of a shape on a node in a state */
    uint64_t key;
    int64_t cost;
};

struct place_candidate {
    uint32_t node, fits;
};

struct place {
    const struct book *book;
    struct usage usage;
    struct frag_mix mix;
    struct place_block *blocks;
    struct place_candidate *list; /* room for all nodes */
    uint64_t *states;             /* a hash of each node's; 0: not taken yet */
    struct place_cost *costs;     /* a cache: nodes in the same state cost the same */
    uint32_t cost_mask;           /* how many there are, less one */
    bool owns_costs;              /* and the next two */
    uint32_t *position;           /* of each node in the order of the network, which breaks ties */
    uint32_t *at_position;        /* the node there */
    struct place_ranks *ranks;    /* NULL in a copy */
    bool later;                   /* nodes that are away count, too */
    uint32_t domains;             /* one more than the highest number of a leaf or spine */
    uint64_t room;                /* containers that the last place_job that failed had room for */
    uint64_t scanned;             /* nodes looked at, for benchmarks */
};

/* What is free now; changes as jobs are placed. */
void place_init(struct place *p, const struct book *b);
/* The same, to be changed apart; gone before the one that it is from. later: nodes that are away
 * take work there, since they will be back. to: zero, or an earlier copy of the same. */
void place_copy(struct place *to, const struct place *from, bool later);
void place_done(struct place *p);

/* Room for shape.size shares; they are taken from what is free. */
bool place_job(struct place *p, const struct shape *s, struct book_share *shares);
/* Take these if there is room for all of them. */
bool place_exactly(struct place *p, const struct shape *s, const struct book_share *shares);
void place_take(struct place *p, const struct shape *s, const struct book_share *share);
void place_give(struct place *p, const struct shape *s, const struct book_share *share);

/* What is free on the node, from elsewhere. */
void place_set(struct place *p, uint32_t node, const struct usage_node *free);

/* Containers of the shape for which the node has room, at most the size; 0 when it takes no such
 * work. */
uint32_t place_fits(const struct place *p, uint32_t node, const struct shape *s);
/* Nodes with room for at least one container of the shape, into p->list; how many. *ret_total: the
 * containers that there is room for, at most the size on each node. */
uint32_t place_scan(struct place *p, const struct shape *s, uint64_t *ret_total);

#endif
