/*
 * The commit thread: takes one batch at a time, makes it durable through the backend, gives it
 * back. All calls are the loop thread's.
 */
#ifndef STORE_COMMITTER_H
#define STORE_COMMITTER_H

#include "store/backend.h"

struct committer {
    struct backend *backend;
    uv_async_t *wake; /* sent to when there is something to collect */
    uv_thread_t thread;
    uv_mutex_t lock; /* guards what follows */
    uv_cond_t changed;
    struct batch *queued;    /* for the thread */
    struct batch *committed; /* for the loop */
    struct err failure;      /* code < 0: the thread has ended */
    bool stop;
};

int committer_start(
    struct committer *c, struct backend *backend, uv_async_t *wake, struct err *err);
/* Only when the one before it has been collected. b is the thread's until it is collected. */
void committer_submit(struct committer *c, struct batch *b);
/* *ret: the batch that was submitted, now durable, or NULL while it is not (never when wait).
 * An error is final. */
int committer_collect(struct committer *c, bool wait, struct batch **ret, struct err *err);
/* With nothing in flight. *err has the failure of the last housekeeping, if any. */
int committer_stop(struct committer *c, struct err *err);

#endif
