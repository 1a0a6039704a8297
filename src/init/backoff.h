/*
 * When to start a process again that keeps dying: after 100 ms, then twice as long each time, 5 s
 * at most; from the beginning once it has lived for 10 s. Pure: the caller owns the clock, a
 * monotonic one in usec.
 */
#ifndef INIT_BACKOFF_H
#define INIT_BACKOFF_H

#include <stdint.h>

#define USEC_PER_MSEC ((uint64_t)1000)
#define USEC_PER_SEC ((uint64_t)1000000)

#define BACKOFF_MIN_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (5 * USEC_PER_SEC)
#define BACKOFF_GOOD_USEC (10 * USEC_PER_SEC)

struct backoff {
    uint64_t delay; /* used last; 0 at first */
    uint64_t started;
};

static inline void backoff_started(struct backoff *b, uint64_t now)
{
    b->started = now;
}

/* It died at now: the time of the next start. */
static inline uint64_t backoff_died(struct backoff *b, uint64_t now)
{
    if (b->delay == 0 || now - b->started >= BACKOFF_GOOD_USEC)
        b->delay = BACKOFF_MIN_USEC;
    else
        b->delay = b->delay * 2 < BACKOFF_MAX_USEC ? b->delay * 2 : BACKOFF_MAX_USEC;
    return now + b->delay;
}

#endif
