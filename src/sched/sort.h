/*
 * Many small records in the order of a whole number, in a time that grows with their number only:
 * a pass sorts the queue and the ends of all that runs.
 */
#ifndef SCHED_SORT_H
#define SCHED_SORT_H

#include "base/base.h"

struct sort_item {
    uint64_t key;
    uint32_t value;
};

/* The least key first; equal ones stay in their order. */
void sort_items(struct sort_item *items, uint32_t count);

#endif
