/*
 * What is free on each node: derived from a book's live shares, then changed as a pass places jobs
 * or looks into the future.
 */
#ifndef SCHED_USAGE_H
#define SCHED_USAGE_H

#include "sched/book.h"

struct usage_node {
    int64_t mem, cpu_milli;      /* below zero where a node has shrunk under its jobs */
    uint16_t whole;              /* healthy GPUs of which nothing is taken */
    uint16_t part;               /* the most that is free of a GPU that is taken in part */
    uint32_t free_milli;         /* of all healthy GPUs */
    int16_t gpu[SHAPE_GPUS_MAX]; /* free of each; 0 for an unhealthy one; below zero where it is
                                    taken twice, now and by a plan */
};

struct usage {
    const struct book *book;
    struct usage_node *nodes;
};

/* All that is not taken by the shares of running jobs. */
void usage_init(struct usage *u, const struct book *b);
void usage_done(struct usage *u);
void usage_copy(struct usage *to, const struct usage *from); /* to: of the same book, or zero */

/* Does the node take work of the shape's kind at all: open, of its group, with such GPUs? later: or
 * will it, when it can be reached again? */
bool usage_may(const struct book *b, uint32_t node, const struct shape *s, bool later);
/* Containers of the shape for which there is room on the node; at most the shape's size. */
uint32_t usage_fits(const struct usage *u, uint32_t node, const struct shape *s);
uint32_t usage_node_fits(
    const struct usage_node *n, const struct book_node *of, const struct shape *s);
/* GPUs for one more container, for which there is room; any that suit. 0 when it asks for none. */
uint64_t usage_gpus(const struct usage *u, uint32_t node, const struct shape *s);
/* The same number of them, near to each other: by NVLink, then in one NUMA domain; in the
 * domain that has the fewest to spare. */
uint64_t usage_near_gpus(const struct usage *u, uint32_t node, const struct shape *s);

/* One node's: the share is taken (sign -1) or given back (1). */
void usage_node_add(struct usage_node *n, const struct book_node *of, const struct shape *s,
    const struct book_share *share, int sign);
/* The less of both in everything. */
void usage_node_min(
    struct usage_node *n, const struct usage_node *other, const struct book_node *of);

void usage_take(struct usage *u, const struct shape *s, const struct book_share *share);
void usage_give(struct usage *u, const struct shape *s, const struct book_share *share);

#endif
