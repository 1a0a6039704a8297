/*
 * What one container of a job asks for, how many there are, and how they are to lie: the part of a
 * job that decides where it fits. Many jobs have the same, and a pass looks at each only once.
 */
#ifndef SCHED_SHAPE_H
#define SCHED_SHAPE_H

#include "base/base.h"

#define SHAPE_GPUS_MAX 64
#define SHAPE_WHOLE 1000 /* gpu_milli of one GPU */

/* No padding: shapes are compared as bytes. */
struct shape {
    uint64_t mem; /* bytes */
    uint32_t cpu_milli;
    uint32_t gpu_milli;   /* below 1000: a share of one GPU; else whole ones */
    uint32_t models;      /* bits of the models allowed; 0: any */
    uint32_t size;        /* containers */
    uint32_t group;       /* a name's number */
    uint16_t single_node; /* all on one node */
    uint16_t switches;    /* leaves at most; 0: any number */
};

/* How far apart the containers of a job are. */
enum level { LEVEL_NODE, LEVEL_LEAF, LEVEL_SPINE, LEVEL_CLUSTER };

/* Whole GPUs of one container; 0 when it asks for none or a part of one. */
static inline uint32_t shape_gpus(const struct shape *s)
{
    return s->gpu_milli / SHAPE_WHOLE;
}

static inline bool shape_is_part(const struct shape *s)
{
    return s->gpu_milli > 0 && s->gpu_milli < SHAPE_WHOLE;
}

#endif
