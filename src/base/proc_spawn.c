/*
 * Starting helper programs. The child shares the parent's memory until it executes (CLONE_VM and
 * CLONE_VFORK of clone(2), as posix_spawn(3) does): copying the page tables of a daemon costs more
 * than the rest of a start. So everything that allocates or looks something up is done before; the
 * child makes async-signal-safe calls only (signal-safety(7)), has a stack of its own, and tells
 * through a close-on-exec pipe which step failed.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/proc.h"
#include "base/str.h"
#include "base/strv.h"

const char *const PROC_ENV_FIXED[] = {
    "PATH=" PROC_PATH,
    "LC_ALL=C.UTF-8",
    "HOME=/nonexistent",
    NULL,
};

/* Descriptors in the child: 0 to 2, 3 for keep_fd, then the pipe for the failure. */
#define KEEP_FD 3
#define STATUS_FD 4
#define FIRST_CLOSED_FD 5
#define CHILD_STACK_BYTES (64 * 1024)
#define FIRST_FREE_FD 10 /* sources are moved here first, so that no target overwrites one */

enum step {
    STEP_GROUP,
    STEP_DESCRIPTORS,
    STEP_NETNS,
    STEP_MNTNS,
    STEP_CWD,
    STEP_USER,
    STEP_PARENT,
    STEP_EXEC,
};

static const char *const step_names[] = {
    [STEP_GROUP] = "setpgid",
    [STEP_DESCRIPTORS] = "descriptors",
    [STEP_NETNS] = "entering the network namespace",
    [STEP_MNTNS] = "entering the mount namespace",
    [STEP_CWD] = "chdir",
    [STEP_USER] = "changing the user",
    [STEP_PARENT] = "PR_SET_PDEATHSIG",
    [STEP_EXEC] = "execve",
};

struct failure {
    enum step step;
    int code; /* errno */
};

/* What the child needs, ready to use. */
struct launch {
    const char *path;
    char *const *argv;
    char *const *env;
    int in, out, err_out;
    int keep, netns, mntns; /* 0: none */
    int status;
    uid_t uid;
    gid_t gid;
    bool keep_running;
    pid_t parent;
};

/* ---- in the child: async-signal-safe from here ---- */

/* Handlers would go at exec anyway; ignored signals and the mask would stay. */
static void signals_reset(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &dfl, NULL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int move_up(int *fd)
{
    *fd = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    return *fd < 0 ? -1 : 0;
}

static int move_all_up(struct launch *l)
{
    /* The pipe first: the others' failure is told through it. */
    if (move_up(&l->status) < 0 || move_up(&l->in) < 0 || move_up(&l->out) < 0 ||
        move_up(&l->err_out) < 0)
        return -1;
    if (l->keep > 0 && move_up(&l->keep) < 0)
        return -1;
    if (l->netns > 0 && move_up(&l->netns) < 0)
        return -1;
    return l->mntns > 0 ? move_up(&l->mntns) : 0;
}

static int place_all(struct launch *l)
{
    if (dup2(l->in, 0) < 0 || dup2(l->out, 1) < 0 || dup2(l->err_out, 2) < 0)
        return -1;
    if (l->keep > 0 && dup2(l->keep, KEEP_FD) < 0)
        return -1;
    if (l->keep <= 0)
        close(KEEP_FD);
    if (dup3(l->status, STATUS_FD, O_CLOEXEC) < 0)
        return -1;
    l->status = STATUS_FD;
    return close_range(FIRST_CLOSED_FD, ~0U, 0);
}

/* By system call: glibc's functions would also tell the other threads, which are not here. */
static int change_user(uid_t uid, gid_t gid)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
        syscall(SYS_setresuid, uid, uid, uid) < 0)
        return -1;
    return 0;
}

/* After change_user, which takes the setting back. */
static int die_with_parent(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -1;
    if (getppid() != parent)
        _exit(127); /* it was too late to be told */
    return 0;
}

static enum step child_steps(struct launch *l)
{
    if (setpgid(0, 0) < 0)
        return STEP_GROUP;
    if (move_all_up(l) < 0)
        return STEP_DESCRIPTORS;
    if (l->netns > 0 && setns(l->netns, CLONE_NEWNET) < 0)
        return STEP_NETNS;
    if (l->mntns > 0 && setns(l->mntns, CLONE_NEWNS) < 0)
        return STEP_MNTNS;
    if (chdir("/") < 0)
        return STEP_CWD;
    if (l->uid > 0 && change_user(l->uid, l->gid) < 0)
        return STEP_USER;
    if (!l->keep_running && die_with_parent(l->parent) < 0)
        return STEP_PARENT;
    if (place_all(l) < 0)
        return STEP_DESCRIPTORS;
    execve(l->path, l->argv, l->env);
    return STEP_EXEC;
}

static int child(void *arg)
{
    struct launch *l = arg;
    struct failure failure;

    signals_reset();
    failure.step = child_steps(l);
    failure.code = errno;
    (void)!write(l->status, &failure, sizeof(failure));
    _exit(127);
}

/* ---- in the parent ---- */

/* All signals are held back until the child has executed, so that no handler of ours runs in it. */
static pid_t start_child(struct launch *l)
{
    char *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    sigset_t all, old;
    pid_t pid;

    if (stack == MAP_FAILED)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(child, stack + CHILD_STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    munmap(stack, CHILD_STACK_BYTES);
    return pid;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The program's path, heap. */
static int look_up(const char *name, char **ret, struct err *err)
{
    _cleanup_(strv_freep) char **folders = NULL;

    if (strchr(name, '/')) {
        *ret = xstrdup(name);
        return 0;
    }
    folders = strv_split(PROC_PATH, ':');
    strv_for_each (folder, folders) {
        _cleanup_free_ char *path = xasprintf("%s/%s", *folder, name);

        if (is_program(path)) {
            *ret = TAKE_PTR(path);
            return 0;
        }
    }
    return err_set(err, -ENOENT, "'%s' is not installed (looked in %s)", name, PROC_PATH);
}

/* 0 when execve has happened; otherwise the child is gone and reaped. */
static int wait_for_exec(pid_t pid, int status_fd, const char *name, struct err *err)
{
    struct failure failure;
    ssize_t n;

    do
        n = read(status_fd, &failure, sizeof(failure));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (n != (ssize_t)sizeof(failure))
        return err_set(err, -EIO, "cannot start '%s'", name);
    return err_sys(err, -failure.code, "cannot start '%s': %s", name, step_names[failure.step]);
}

int proc_spawn(
    const struct proc *p, int out_fd, int err_fd, bool keep_running, pid_t *ret, struct err *err)
{
    _cleanup_close_ int null_fd = -1, status_read = -1, status_write = -1;
    _cleanup_free_ char *path = NULL;
    struct launch l;
    int status[2], r;
    pid_t pid;

    r = look_up(p->argv[0], &path, err);
    if (r < 0)
        return r;
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        return err_sys(err, -errno, "cannot open /dev/null");
    if (pipe2(status, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    status_read = status[0];
    status_write = status[1];
    l = (struct launch){
        .path = path,
        .argv = (char *const *)p->argv,
        .env = (char *const *)(p->env ? p->env : PROC_ENV_FIXED),
        .in = p->in_fd > 0 ? p->in_fd : null_fd,
        .out = out_fd > 0 ? out_fd : null_fd,
        .err_out = err_fd > 0 ? err_fd : null_fd,
        .keep = p->keep_fd,
        .netns = p->netns_fd,
        .mntns = p->mntns_fd,
        .status = status_write,
        .uid = p->uid,
        .gid = p->gid,
        .keep_running = keep_running,
        .parent = getpid(),
    };
    pid = start_child(&l);
    if (pid < 0)
        return err_sys(err, -errno, "cannot start '%s'", p->argv[0]);
    close(TAKE_FD(status_write));
    r = wait_for_exec(pid, status_read, p->argv[0], err);
    if (r < 0)
        return r;
    *ret = pid;
    return 0;
}
