/*
 * How long a session will run, from what the same user's sessions like it took: of the same image,
 * command and resources, or at least of the same resources. What it is good for: the order of the
 * queue. Nobody is ended at an estimate.
 *
 * How good they were is kept, too: each session that ran to its own end is compared with what had
 * been expected of it.
 */
#ifndef SCHED_ESTIMATE_H
#define SCHED_ESTIMATE_H

#include "base/map.h"
#include "model/session.h"

#define ESTIMATE_KEPT 8 /* run times of each kind, the last ones */
#define ESTIMATE_KINDS_MAX 65536

struct estimate_quality {
    uint64_t count;           /* sessions that had an estimate, and ran to their end */
    uint64_t within_2x;       /* of them: off by a factor of two at most */
    uint64_t below, above;    /* that took less, more */
    uint64_t limit_count;     /* sessions that had a time limit, and ran to their end */
    uint64_t limit_within_2x; /* of them: took at least half of it */
};

struct estimator {
    struct map kinds; /* text -> struct estimate_kind, heap */
    struct estimate_quality quality;
};

void estimator_init(struct estimator *e);
void estimator_done(struct estimator *e);
/* usec; 0: nothing like it is known. At most its time limit. */
uint64_t estimator_guess(const struct estimator *e, const struct session *s);
/* One has ended. Those that were stopped, or were lost, say nothing. */
void estimator_learn(struct estimator *e, const struct session *s);

#endif
