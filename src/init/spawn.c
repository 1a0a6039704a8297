/*
 * From fork(2) to execve(2). The child reports over a close-on-exec pipe: one message just before
 * the exec (after its signals are unblocked, so that a death by an early signal is not taken for
 * a start), one when something failed. End of file after the first alone means: executed.
 */
#include "init/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "init/path.h"

#define SSHD_PATH "PATH=/opt/muster/bin:" PATH_DEFAULT

struct message {
    uint8_t failed; /* 0: about to exec */
    uint8_t stage;
    int32_t error;
};

static bool may_give(int fd)
{
    struct stat st;

    return isatty(fd) || (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode));
}

/*
 * The kernel tells the foreground group, which is us, about the lost terminal; that SIGHUP is not
 * one for the command.
 */
static void release_terminal(void)
{
    static const struct timespec now = {0};
    sigset_t hup;

    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    if (isatty(STDIN_FILENO) && ioctl(STDIN_FILENO, TIOCNOTTY) == 0)
        sigtimedwait(&hup, NULL, &now);
}

void spawn_give_streams(const struct plan *plan)
{
    release_terminal();
    for (int fd = 0; fd <= 2; fd++)
        if (may_give(fd) && fchown(fd, plan->uid, (gid_t)-1) < 0)
            continue; /* somebody else's pipe: only opening it by name will not work */
}

/* Inheritable capabilities survive a change of uid; the other sets do not. */
static int drop_inheritable(void)
{
    struct {
        uint32_t version;
        int pid;
    } header = {0x20080522, 0}; /* _LINUX_CAPABILITY_VERSION_3 */
    struct {
        uint32_t effective, permitted, inheritable;
    } none[2] = {{0}};

    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int become_user(const struct plan *plan)
{
    bool was_root = geteuid() == 0;

    if (setgroups(plan->groups_len, plan->groups) < 0) {
        /* Without privileges there are no groups to drop either. */
        if (errno != EPERM || plan->groups_len > 0 || plan->uid != geteuid())
            return -errno;
    }
    if (setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
        setresuid(plan->uid, plan->uid, plan->uid) < 0)
        return -errno;
    if (plan->uid == 0)
        return 0;
    if (was_root && setuid(0) == 0)
        return -EPERM; /* a user that can go back is worse than none */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return drop_inheritable();
}

static void reset_signals(void)
{
    sigset_t none;

    for (int sig = 1; sig <= SIGRTMAX; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int open_null(int fd, int flags)
{
    int null = open("/dev/null", flags | O_CLOEXEC);
    int r;

    if (null < 0)
        return -errno;
    r = dup2(null, fd) < 0 ? -errno : 0;
    if (null != fd)
        close(null);
    return r;
}

/* A terminal becomes the controlling one of the new session; anything else is not for us. */
static int set_up_stdin(void)
{
    if (!isatty(STDIN_FILENO))
        return open_null(STDIN_FILENO, O_RDONLY);
    ioctl(STDIN_FILENO, TIOCSCTTY, 0);
    return 0;
}

static void report(int fd, uint8_t failed, enum start_stage stage, int error)
{
    struct message m = {.failed = failed, .stage = (uint8_t)stage, .error = error};

    while (write(fd, &m, sizeof(m)) < 0 && errno == EINTR)
        continue;
}

__attribute__((noreturn)) static void fail(int fd, enum start_stage stage, int r)
{
    report(fd, 1, stage, -r);
    _exit(record_start_failed_code(stage, -r));
}

__attribute__((noreturn)) static void run_command(const struct plan *plan, int fd)
{
    bool found;
    int r;

    setsid();
    umask(022);
    r = set_up_stdin();
    if (r < 0)
        fail(fd, START_STDIO, r);
    r = become_user(plan);
    if (r < 0)
        fail(fd, START_IDENTITY, r);
    if (chdir(plan->cwd) < 0) /* as the user: a home folder on NFS may be closed to root */
        fail(fd, START_CWD, -errno);
    reset_signals();
    report(fd, 0, START_EXEC, 0);
    r = path_exec(plan_getenv(plan, "PATH"), plan->argv, plan->envp, &found);
    fail(fd, found ? START_INTERPRETER : START_EXEC, r);
}

pid_t spawn_command(const struct plan *plan, int *ret_fd)
{
    int fds[2];
    pid_t pid;
    int r;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run_command(plan, fds[1]);
    r = -errno;
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return r;
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK); /* the reading end only */
    *ret_fd = fds[0];
    return pid;
}

/* Messages are smaller than PIPE_BUF: each comes whole or not at all. */
bool spawn_read_report(int fd, struct spawn_report *report)
{
    struct message m;
    ssize_t n;

    while (report->outcome == SPAWN_PENDING) {
        n = read(fd, &m, sizeof(m));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n != (ssize_t)sizeof(m)) {
            report->outcome = report->reached_exec ? SPAWN_STARTED : SPAWN_DIED;
        } else if (m.failed) {
            report->outcome = SPAWN_FAILED;
            report->stage = (enum start_stage)m.stage;
            report->error = m.error;
        } else {
            report->reached_exec = true;
        }
    }
    return true;
}

__attribute__((noreturn)) static void run_sshd(const struct plan *plan)
{
    /* -r: serve a login by a fork, without executing sshd again for it. That would give each login
     * an address space of another layout, for a server that has no more rights than who logs in. */
    char *argv[] = {(char *)plan->sshd, "-D", "-r", "-e", "-f", (char *)plan->sshd_config, NULL};
    char *envp[] = {SSHD_PATH, NULL};

    setsid();
    umask(022);
    if (open_null(0, O_RDONLY) < 0 || open_null(1, O_WRONLY) < 0 || open_null(2, O_WRONLY) < 0)
        _exit(126);
    if (become_user(plan) < 0 || chdir("/") < 0)
        _exit(126);
    reset_signals();
    execve(plan->sshd, argv, envp);
    _exit(127);
}

pid_t spawn_sshd(const struct plan *plan)
{
    pid_t pid = fork();

    if (pid == 0)
        run_sshd(plan);
    return pid < 0 ? -errno : pid;
}
