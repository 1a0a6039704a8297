/*
 * The knobs of the scheduler by name: one table for the API, the command line, the simulator and
 * their help. Values are whole numbers; names that end in "_usec" are durations.
 */
#ifndef SCHED_POLICY_H
#define SCHED_POLICY_H

#include "base/json.h"
#include "sched/pass.h"

struct policy_knob {
    const char *name;
    size_t offset; /* in struct pass_options */
    bool wide;     /* a uint64_t; else a uint32_t */
    uint64_t max;
    const char *help;
};

extern const struct policy_knob policy_knobs[]; /* ends with name NULL */

const struct policy_knob *policy_find(const char *name); /* NULL */
uint64_t policy_get(const struct pass_options *o, const struct policy_knob *k);
/* -ERANGE "'reservations' must be at most 1000". */
int policy_set(
    struct pass_options *o, const struct policy_knob *k, uint64_t value, struct err *err);
/* Set the knobs that the object has, {"reservations": 16}; at the first bad one it stops. -EINVAL,
 * -ERANGE. */
int policy_read(const json_t *body, struct pass_options *o, struct err *err);

#endif
