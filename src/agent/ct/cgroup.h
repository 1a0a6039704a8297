/*
 * Control groups of both versions. A group is named by its path relative to the roots of the
 * hierarchies ("muster/TAG/SESSION/CONTAINER"). Internal to this folder; cgroup_layout is in
 * runtime.h.
 */
#ifndef AGENT_CT_CGROUP_H
#define AGENT_CT_CGROUP_H

#include <sys/types.h>

#include "base/err.h"

/* Swap is counted, so that it can be limited (v1: swapaccount=1). */
bool cgroup_counts_swap(void);
/* An OOM kill was counted in the group; false when it is gone. */
bool cgroup_oom_killed(const char *group);
/* The process is in the group or below it. */
bool cgroup_holds(const char *group, pid_t pid);
/* SIGKILL to all processes in and below it until none is left; frozen ones are thawed. */
int cgroup_kill(const char *group, uint64_t timeout_usec, struct err *err);
/* Remove the group and those below it in every hierarchy. -EBUSY if a process is left. */
int cgroup_remove(const char *group, uint64_t timeout_usec, struct err *err);
/* Remove it if it is empty: no process, no group below. */
int cgroup_remove_empty(const char *group, struct err *err);
/* Names of the groups below it, in any hierarchy; heap vector. */
int cgroup_children(const char *group, char ***ret, struct err *err);

#endif
