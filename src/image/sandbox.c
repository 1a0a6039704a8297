/*
 * The user "nobody" (uid 65534), no groups, no new privileges, limits, and for those who are alone
 * a filter that knows the few system calls of reading, computing and writing; any other fails with
 * EPERM, so that a library that asks for something odd goes on without it.
 */
#include "image/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"

/* A sanitizer's shadow counts as data. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_LIMITED false
#else
#define MEMORY_IS_LIMITED true
#endif

static const char *const allowed[] = {"brk", "clock_gettime", "clock_nanosleep", "close", "exit",
    "exit_group", "fallocate", "fcntl", "fstat", "fsync", "ftruncate", "futex", "getpid",
    "getrandom", "gettid", "gettimeofday", "lseek", "madvise", "mprotect", "mremap", "munmap",
    "nanosleep", "newfstatat", "poll", "pread64", "pwrite64", "read", "readv", "recvfrom",
    "recvmsg", "restart_syscall", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sendmsg",
    "sendto", "sigaltstack", "sync_file_range", "sysinfo", "tgkill", "write", "writev"};

static int set_filter(struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = 0;

    if (!ctx)
        return err_set(err, -ENOMEM, "cannot make a filter of system calls");
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++) {
        int number = seccomp_syscall_resolve_name(allowed[i]);
        if (number >= 0) /* this architecture has it */
            r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
    }
    /* No memory that holds code. */
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
            SCMP_A2(SCMP_CMP_MASKED_EQ, 4 /* PROT_EXEC */, 0));
    if (r == 0)
        r = seccomp_load(ctx);
    seccomp_release(ctx);
    return r < 0 ? err_sys(err, r, "cannot set the filter of system calls") : 0;
}

static int set_limit(int what, uint64_t value)
{
    struct rlimit limit = {value, value};

    return setrlimit((__rlimit_resource_t)what, &limit);
}

static int become_nobody(struct err *err)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(SANDBOX_USER, SANDBOX_USER, SANDBOX_USER) < 0 ||
        setresuid(SANDBOX_USER, SANDBOX_USER, SANDBOX_USER) < 0)
        return err_sys(err, -errno, "cannot become the user nobody");
    return 0;
}

int sandbox_enter(enum sandbox kind, const struct sandbox_limits *limits, struct err *err)
{
    int r;

    if (set_limit(RLIMIT_CORE, 0) < 0 || set_limit(RLIMIT_FSIZE, limits->file_bytes) < 0 ||
        (MEMORY_IS_LIMITED && set_limit(RLIMIT_DATA, limits->memory_bytes) < 0))
        return err_sys(err, -errno, "cannot set limits");
    /* Fails for who is not root and may not make namespaces; the filter has no socket either. */
    if (kind != SANDBOX_NETWORK)
        (void)unshare(CLONE_NEWNET | CLONE_NEWIPC);
    r = become_nobody(err);
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_sys(err, -errno, "cannot give up privileges");
    return kind == SANDBOX_ALONE ? set_filter(err) : 0;
}

/* ---- a function in a process of its own ---- */

static _Noreturn void run(enum sandbox kind, const char *folder,
    const struct sandbox_limits *limits, int (*fn)(void *arg, struct err *err), void *arg, int out)
{
    struct err err = ERR_INIT;
    int r = chdir(folder) < 0 ? err_sys(&err, -errno, "cannot enter '%s'", folder) : 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (r == 0)
        r = sandbox_enter(kind, limits, &err);
    if (r == 0)
        r = fn(arg, &err);
    if (r < 0)
        (void)!write(out, &err, sizeof(err));
    _exit(r < 0);
}

static int take_result(int in, pid_t pid, struct err *err)
{
    struct err said = ERR_INIT;
    ssize_t n;
    int status = 0;

    do
        n = read(in, &said, sizeof(said));
    while (n < 0 && errno == EINTR);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (n == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    said.text[sizeof(said.text) - 1] = '\0';
    if (n != sizeof(said) || said.code >= 0 || !str_is_clean(said.text, strlen(said.text)))
        return err_set(err, -EPROTO, "the process without rights ended with status %d", status);
    return err_set(err, said.code, "%s", said.text);
}

int sandbox_run(enum sandbox kind, const char *folder, const struct sandbox_limits *limits,
    int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
    int ends[2], r;
    pid_t pid;

    if (mkdir(folder, 0700) < 0)
        return err_sys(err, -errno, "cannot make '%s'", folder);
    if (geteuid() == 0 && chown(folder, SANDBOX_USER, SANDBOX_USER) < 0)
        return err_sys(err, -errno, "cannot give away '%s'", folder);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run(kind, folder, limits, fn, arg, ends[1]);
    }
    close(ends[1]);
    r = pid < 0 ? err_sys(err, -errno, "cannot start a process") : take_result(ends[0], pid, err);
    close(ends[0]);
    return r;
}
