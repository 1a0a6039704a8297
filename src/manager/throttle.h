/*
 * How often an address may be wrong: THROTTLE_TRIES at once, then one more every
 * THROTTLE_EACH_USEC. Pure; of a bounded number of addresses, beyond which all strangers share one
 * count.
 */
#ifndef MANAGER_THROTTLE_H
#define MANAGER_THROTTLE_H

#include "base/map.h"

#define THROTTLE_TRIES 10
#define THROTTLE_EACH_USEC (UINT64_C(6) * 1000000)
#define THROTTLE_ADDRESSES_MAX 1024

struct throttle {
    struct map addresses; /* address -> struct tries */
};

void throttle_init(struct throttle *t);
void throttle_done(struct throttle *t);
/* 0: it may try; else how long it has to wait. */
uint64_t throttle_wait_usec(struct throttle *t, const char *address, uint64_t mono_usec);
/* It was wrong once more. */
void throttle_count(struct throttle *t, const char *address, uint64_t mono_usec);

#endif
