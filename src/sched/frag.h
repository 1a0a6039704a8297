/*
 * Fragmentation: how much of a node's free GPUs the work that this cluster sees could not use, and
 * how much a placement adds to it (Weng et al., "Beware of Fragmentation", USENIX ATC 2023).
 */
#ifndef SCHED_FRAG_H
#define SCHED_FRAG_H

#include "sched/usage.h"

#define FRAG_KINDS_MAX 64

struct frag_kind { /* of work that asks for GPUs */
    uint64_t mem;
    uint32_t cpu_milli, gpu_milli, models;
    uint32_t weight;
};

struct frag_mix {
    struct frag_kind kinds[FRAG_KINDS_MAX]; /* the most common */
    uint32_t count;
    uint64_t weight;                    /* of all, those without GPUs included */
    uint32_t scarcity[BOOK_MODELS_MAX]; /* of a model: demand for it alone in percent of what
                                           there is of it */
};

/* From the shapes of all jobs in the book, by how many have them. */
void frag_mix_init(struct frag_mix *mix, const struct book *b);

/* Expected milli-GPUs of the node that a random job of the mix cannot use. */
uint64_t frag_of(const struct frag_mix *mix, const struct usage *u, uint32_t node);

/*
 * What a placement of one container costs, less is better: the growth of frag_of in steps of
 * FRAG_STEP milli-GPUs (finer differences are noise of the mix, and rounding leaves ties to the
 * order of nodes, which packs better: docs/scheduling.md). *ret_gpus: the GPUs it would take.
 */
#define FRAG_STEP 40
int64_t frag_cost(const struct frag_mix *mix, struct usage *u, uint32_t node, const struct shape *s,
    uint64_t *ret_gpus);

#endif
