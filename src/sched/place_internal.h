/* Between the files of place.h only. */
#ifndef SCHED_PLACE_INTERNAL_H
#define SCHED_PLACE_INTERNAL_H

#include "sched/place.h"

/* Of so many containers of a shape on a node that has room for them; less is better. cost_key: of
 * the shape and the count, place_cost_key. */
int64_t place_cost(
    struct place *p, uint32_t node, const struct shape *s, uint32_t count, uint64_t cost_key);
uint64_t place_cost_key(const struct shape *s, uint32_t count);

/* What shapes that come again and again cost on every node, kept as nodes change (place_rank.c). */
struct place_ranks;
struct place_ranks *place_ranks_new(const struct book *b);
void place_ranks_free(struct place_ranks *r);
/* Something was taken or given back on the node at this position. */
void place_ranks_touch(struct place_ranks *r, uint32_t position);
/* The shape was placed on one node: it may be worth a ranking. */
void place_ranks_learn(struct place_ranks *r, const struct shape *s);
bool place_ranks_know(const struct place_ranks *r, const struct shape *s);
/* The cheapest node with room for all of a known shape, the first of equal ones; BOOK_NONE. */
uint32_t place_ranks_cheapest(struct place *p, const struct shape *s);

#endif
