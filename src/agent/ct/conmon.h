/* conmon(8), the monitor of one container. Internal to this folder. */
#ifndef AGENT_CT_CONMON_H
#define AGENT_CT_CONMON_H

#include "agent/ct/runtime.h"

/* Start conmon, which has the runtime create the container; *ret_pid is init's. The error is the
 * runtime's own words. */
int conmon_create(
    const struct runtime *rt, const char *id, const char *name, pid_t *ret_pid, struct err *err);
/* A conmon that some agent started has not finished creating the container. */
bool conmon_is_creating(const struct runtime *rt, const char *id);
/* conmon's pid for this container, 0 if it is gone. */
pid_t conmon_pid(const struct runtime *rt, const char *id);
/* Wait for it to end (it writes out the log); kill it at the deadline. */
void conmon_wait(const struct runtime *rt, const char *id, uint64_t timeout_usec);

char *conmon_log_path(const struct runtime *rt, const char *id, char path[512]);
char *conmon_exit_path(const struct runtime *rt, const char *id, char path[512]);

#endif
