/*
 * The two kinds of process that init starts, both as the plan's user and without a capability: the
 * user's command and the SSH server. Everything between fork(2) and execve(2) is here.
 */
#ifndef INIT_SPAWN_H
#define INIT_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "init/plan.h"
#include "init/record.h"

/* What became of a start, as far as the pipe from the command's process tells. Zero at first. */
struct spawn_report {
    enum { SPAWN_PENDING, SPAWN_STARTED, SPAWN_FAILED, SPAWN_DIED } outcome;
    bool reached_exec;
    enum start_stage stage; /* SPAWN_FAILED */
    int error;              /* SPAWN_FAILED: an errno */
};

/*
 * Hand the container's standard streams on: let go of the terminal, so that the command can have
 * it, and let the user open the streams by name (/dev/stderr, /dev/pts/0), which belong to init's
 * uid at first. Best effort. With the signals blocked: eats the SIGHUP that comes of it.
 */
void spawn_give_streams(const struct plan *plan);

/*
 * A session and process group of its own, the terminal if stdin is one. Returns the pid, and in
 * *ret_fd a non-blocking descriptor for spawn_read_report(); or a negative errno.
 */
pid_t spawn_command(const struct plan *plan, int *ret_fd);

/*
 * Take in what the descriptor has. True when the outcome stands, and the descriptor is of no more
 * use. SPAWN_DIED: killed before the exec.
 */
bool spawn_read_report(int fd, struct spawn_report *report);

/* Its output goes to /dev/null. A failed exec looks like an early death. */
pid_t spawn_sshd(const struct plan *plan);

#endif
