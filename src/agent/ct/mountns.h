/*
 * The agent's mount namespace, which outlives the agent: made once per boot, pinned as RUN/ns/mnt
 * on a private mount, propagation slave of the system's. Every later agent enters it, so that an
 * ended container's mounts never live on in an older copy and a blob is mounted once.
 * /dev/null is on a read-only mount in it (it can still be written to), so that no runtime gives
 * the node's to a user. On a hybrid cgroup layout /sys/fs/cgroup/unified is unmounted in it
 * (crun(1) refuses it).
 */
#ifndef AGENT_CT_MOUNTNS_H
#define AGENT_CT_MOUNTNS_H

#include "base/err.h"

/* -EOPNOTSUPP where the process's root is not its mount namespace's (chroot(2)): to enter another
 * one would be to leave it. Changes nothing. */
int mountns_usable(struct err *err);
/* Enter, making it if need be. Before any thread exists (setns(2): single-threaded). run_dir must
 * exist. The calling process's network namespace is not changed. */
int mountns_enter(const char *run_dir, struct err *err);
/* Is one pinned there? */
bool mountns_is_pinned(const char *run_dir);
/* Unpin: from outside of it, after everything in it was unmounted. For `muster down`. */
int mountns_remove(const char *run_dir, struct err *err);

#endif
