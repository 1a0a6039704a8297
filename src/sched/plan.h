/*
 * The future, as far as it is planned: when running jobs end at the latest, and the reservations
 * that the first jobs of the queue hold. EASY backfill with several reservations (Lifka 1995;
 * Mualem and Feitelson 2001), of single GPUs and not of whole nodes.
 *
 * A node may be closed for a time, too (close_from, close_to of the book): whatever would run then
 * is not placed there.
 *
 * A reservation is a place at a time: shares from start on, for the job's limit. What is placed
 * now and runs beyond a reservation's start leaves its shares alone.
 */
#ifndef SCHED_PLAN_H
#define SCHED_PLAN_H

#include "sched/place.h"
#include "sched/sort.h"

#define PLAN_RESERVATIONS_MAX 1000

struct reservation {
    uint32_t job;
    uint64_t start, end;       /* usec; end BOOK_FOREVER: no limit */
    struct book_share *shares; /* of the job's shape's size; heap */
};

struct plan_node_end { /* of one share */
    uint64_t at;
    uint32_t job, share;
};

struct plan_started { /* the same, of a job started in this pass */
    struct plan_node_end end;
    uint32_t next; /* on this node, one more than its place in the list; 0: none */
};

struct plan {
    const struct book *book;
    uint64_t now;
    struct sort_item *ends; /* when each running job ends; those without a limit are not there */
    uint32_t end_count;
    size_t end_cap;
    bool sorted;              /* ends, by time */
    uint64_t back_at;         /* nodes that are away may be back; BOOK_FOREVER: there are none */
    struct reservation *list; /* max of them, in the order of the queue */
    uint32_t count, max;

    /* What running jobs give back, by node: those of node n from first[n] to first[n + 1]. */
    struct plan_node_end *node_ends;
    uint32_t *first;
    struct plan_started *started; /* in this pass, which are not there */
    uint32_t *last_started;       /* of each node: the head of its chain */
    uint32_t started_count;
    size_t started_cap;

    /* Nodes that reservations have shares on, and what they have free but for the view. */
    uint32_t *held;
    uint32_t held_count;
    uint32_t *held_at;        /* of each node: one more than its place in held; 0: not there */
    struct usage_node *saved; /* by place in held */
    size_t saved_cap;
    struct place future; /* of the last walk: memory for the next one */
    uint32_t *closing;   /* nodes that are closed now or later */
    uint32_t closing_count;
    bool viewed;
    uint64_t view_end;
};

void plan_init(struct plan *p, const struct book *b, uint64_t now_usec, uint32_t reservations);
void plan_done(struct plan *p);
/* A job has been started in this pass (its shares are in the book): it ends at its limit. */
void plan_started(struct plan *p, uint32_t job);

/* A running job's limit has changed in the book. */
void plan_move_end(struct plan *p, uint32_t job);
/* now is what is free, again, and not what a job would see that leaves reservations alone. */
void plan_look_now(struct plan *p, struct place *now);
/* The last reservation is none any more. */
void plan_drop_last(struct plan *p, struct place *now);

/*
 * Reserve the earliest time and place for the job, given what is free now. False when there is
 * none (jobs without a limit are in the way), or no reservation is left.
 */
bool plan_reserve(struct plan *p, struct place *now, uint32_t job);

/*
 * Place a job now without touching a reservation that starts within its limit. -EAGAIN: there is
 * room, but a reservation needs it, *ret_blocker is its job, BOOK_NONE when a node is closed then;
 * -ENOSPC: there is no room.
 */
int plan_place(struct plan *p, struct place *now, uint32_t job, struct book_share *shares,
    uint32_t *ret_blocker);

#endif
