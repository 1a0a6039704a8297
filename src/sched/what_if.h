/*
 * Which request, a little other than that of a session that waits, would start earlier: smaller,
 * shorter, on other GPUs. Each is tried in a copy of the book by a whole pass, as if it were
 * submitted now in the place of the other one. That takes a while where much waits, and needs
 * nothing of the scheduler once it is begun: it may be run in another thread.
 */
#ifndef SCHED_WHAT_IF_H
#define SCHED_WHAT_IF_H

#include "sched/sched.h"

#define WHAT_IF_MAX 16

enum what_if_change { CHANGE_SIZE, CHANGE_GPUS, CHANGE_TIME, CHANGE_MODEL, CHANGE_MODE };

struct what_if_row {
    enum what_if_change change;
    uint64_t value; /* CHANGE_SIZE: containers; CHANGE_GPUS: of each; CHANGE_TIME: usec */
    char model[NAME_MAX_LEN + 1]; /* CHANGE_MODEL: "" any */
    uint64_t start_usec;          /* planned */
    bool now;                     /* it would start at once */
};

struct what_if {
    struct what_if_row rows[WHAT_IF_MAX]; /* by kind of change, the least one first */
    uint32_t count;
    /* Inside. */
    struct book book;
    struct pass_options options;
    struct session session; /* shallow: nothing of it that is on the heap is looked at */
    uint32_t job;
    uint64_t now_usec, start_usec;
};

/* Of a session that waits for room; what is needed is copied. False: nothing can be said of it. */
bool what_if_init(
    struct what_if *w, const struct sched *s, const struct session *session, uint64_t now_usec);
void what_if_run(struct what_if *w);
void what_if_done(struct what_if *w);

#endif
