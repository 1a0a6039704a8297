/*
 * muster-init: process 1 of every container. Runs the SSH server, waits at the barrier, runs the
 * user's command, reaps, passes signals on, writes the record, and ends as the command ended.
 *
 * Talks to the agent through one folder, read-only but for the record:
 *   init/plan   what to run (plan.h), read once at the start
 *   init/go     the barrier (barrier.h)
 *   record      what became of the command (record.h); may be missing
 */
#ifndef INIT_INIT_H
#define INIT_INIT_H

#define INIT_ETC_DEFAULT "/etc/muster"
#define INIT_EXIT_BAD_PLAN 125

/* Returns the exit status of the process; the kernel then kills the rest of the container. */
int init_run(const char *etc);

#endif
