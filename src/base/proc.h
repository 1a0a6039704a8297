/*
 * Helper programs (crun, nft, mkfs.erofs, skopeo, ssh): a fixed environment, cwd /, no inherited
 * descriptors but those named, output bounded, killed at the deadline. proc_run blocks: call it
 * from a worker thread (uv_queue_work), never from a daemon's loop.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct proc {
    const char *const *argv; /* argv[0] is looked up in PATH below */
    const char *const *env;  /* NULL: PROC_ENV_FIXED */
    int in_fd;               /* 0: /dev/null (so descriptor 0 itself cannot be given) */
    int netns_fd, mntns_fd;  /* > 0: setns(2) before exec */
    int keep_fd;             /* > 0: passed on as descriptor 3 */
    uid_t uid;               /* > 0: setgid(gid), setuid(uid), no groups */
    gid_t gid;
    uint64_t timeout_usec; /* 0: 60 s */
    struct buf *out;       /* NULL: /dev/null; at its max the rest is read and dropped */
    struct buf *err_out;   /* NULL: kept for the error text only */
};

#define PROC_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
extern const char *const PROC_ENV_FIXED[]; /* PATH=PROC_PATH, LC_ALL=C.UTF-8, HOME=/nonexistent */

/*
 * Start, wait, reap. 0 when the program exited with 0; -EPROTO with "'crun' exited with 1: (last
 * line of its stderr)" otherwise; -ETIMEDOUT; or why it could not be started. ret_status (may be
 * NULL) gets the wait status.
 */
int proc_run(const struct proc *p, int *ret_status, struct err *err);
/* Start only. The child is in its own process group and dies with SIGKILL if keep_running is false
 * and the caller's thread ends (PR_SET_PDEATHSIG). out and err_out are not used: stdout and stderr
 * are out_fd and err_fd (0: /dev/null). */
int proc_spawn(
    const struct proc *p, int out_fd, int err_fd, bool keep_running, pid_t *ret, struct err *err);

/* Start time of a process in clock ticks since boot (proc(5), stat field 22): with the boot id it
 * tells one pid from a later one with the same number. -ESRCH. */
int proc_start_time(pid_t pid, uint64_t *ret);
/* The running program's own path, and the folder that it is in ("" when they cannot be told).
 * Heap. */
char *proc_own_path(void);
char *proc_own_folder(void);
/* The path of a file beside the running program's own, whether or not there is one. Heap. */
char *proc_beside(const char *name);
/* The machine's boot id (/proc/sys/kernel/random/boot_id). */
int proc_boot_id(char text[37], struct err *err);

#endif
