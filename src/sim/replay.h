/*
 * A workload on a virtual clock, through the scheduler that the manager runs.
 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "sched/pass.h"
#include "sim/workload.h"

struct replay_options {
    struct pass_options pass;
    uint64_t pass_usec; /* a pass at most so often; 0: at every event */
    bool srtf;          /* the reference instead: shortest remaining first, preempting for free */
};

struct replay_sample { /* after an event */
    uint64_t at;
    uint64_t gpu_milli; /* in use */
    uint32_t waiting;
};

struct replay_result {
    uint64_t *start, *end; /* of each job of the workload; BOOK_FOREVER: never */
    uint64_t *preempted;   /* how often */
    struct replay_sample *samples;
    size_t sample_count, sample_cap;
    uint64_t passes, pass_nsec, pass_max_nsec;
    uint64_t never; /* jobs that no empty cluster could hold */
};

/* nsec: a clock for the times of passes, or NULL. */
void replay_run(struct book *b, const struct workload *w, const struct replay_options *o,
    uint64_t (*nsec)(void), struct replay_result *ret);
void replay_done(struct replay_result *r);

#endif
