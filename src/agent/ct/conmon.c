/*
 * Starting conmon and hearing from it. It forks itself into the background; what became of the
 * container comes through a pipe as one line of JSON, {"data": PID} or {"data": -1, "message": ...}
 * (conmon's _OCI_SYNCPIPE protocol). It stays in the agent's control group: it is the node's
 * process, not the container's.
 *
 * conmon must go on when the agent dies while it creates. So the pipe is a FIFO that conmon has
 * open for reading, too (a write never becomes SIGPIPE), and is locked through the same descriptor:
 * a later agent finds it locked until that conmon has ended or answered.
 */
#include "agent/ct/conmon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/ct/paths.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/strv.h"

#define CREATE_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define REPLY_MAX 65536
#define PERSIST_DIR "persist"
#define SYNC_FILE "sync"

char *conmon_log_path(const struct runtime *rt, const char *id, char path[512])
{
    snprintf(path, 512, "%s/log/%s", rt->dirs.state, id);
    return path;
}

char *conmon_exit_path(const struct runtime *rt, const char *id, char path[512])
{
    snprintf(path, 512, "%s/exit/%s", rt->dirs.run, id);
    return path;
}

static void add(char ***argv, const char *option, const char *value)
{
    strv_push(argv, option);
    strv_push(argv, value);
}

static void add_path(
    char ***argv, const char *option, const struct runtime *rt, const char *id, const char *rest)
{
    char path[CT_PATH_MAX];

    add(argv, option, ct_run_path(&rt->dirs, id, rest, path));
}

/* Heap. */
static char **command(const struct runtime *rt, const char *id, const char *name)
{
    _cleanup_free_ char *log = NULL, *exits = xasprintf("%s/exit", rt->dirs.run);
    char path[512], **argv = NULL;

    log = xasprintf("k8s-file:%s", conmon_log_path(rt, id, path));
    strv_push(&argv, rt->conmon);
    add(&argv, "--api-version", "1");
    add(&argv, "--cid", id);
    add(&argv, "--cuuid", id);
    add(&argv, "--name", name);
    add(&argv, "--runtime", rt->shim);
    add_path(&argv, "--bundle", rt, id, "bundle");
    add_path(&argv, "--container-pidfile", rt, id, "pid");
    add_path(&argv, "--conmon-pidfile", rt, id, "conmon.pid");
    add_path(&argv, "--persist-dir", rt, id, PERSIST_DIR);
    add_path(&argv, "--socket-dir-path", rt, id, PERSIST_DIR);
    add(&argv, "--exit-dir", exits);
    add(&argv, "--log-path", log);
    add(&argv, "--log-level", "error");
    strv_push(&argv, "--full-attach");
    strv_push(&argv, "--no-sync-log");
    add(&argv, "--runtime-arg", rt->crun);
    add(&argv, "--runtime-arg", "--root");
    add(&argv, "--runtime-arg", rt->root);
    add(&argv, "--runtime-arg", "--cgroup-manager=cgroupfs");
    return argv;
}

static int make_folders(const struct runtime *rt, const char *id, struct err *err)
{
    char path[CT_PATH_MAX];
    int r;

    r = fs_mkdir_p(ct_run_path(&rt->dirs, id, PERSIST_DIR, path), 0700, err);
    if (r == 0)
        r = fs_mkdir_p(ct_path(rt->dirs.run, "exit", path), 0700, err);
    if (r == 0)
        r = fs_mkdir_p(ct_path(rt->dirs.state, "log", path), 0700, err);
    if (r == 0)
        r = fs_mkdir_p(rt->root, 0700, err);
    return r;
}

/* Both ends of the FIFO: *ret_fd for conmon, *ret_reader for us. */
static int open_sync(
    const struct runtime *rt, const char *id, int *ret_fd, int *ret_reader, struct err *err)
{
    char path[CT_PATH_MAX];
    _cleanup_close_ int fd = -1, reader = -1;

    if (mkfifo(ct_run_path(&rt->dirs, id, SYNC_FILE, path), 0600) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "cannot make '%s'", path);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || reader < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_sys(err, -errno, "another conmon is at work for the container");
    *ret_fd = TAKE_FD(fd);
    *ret_reader = TAKE_FD(reader);
    return 0;
}

bool conmon_is_creating(const struct runtime *rt, const char *id)
{
    char path[CT_PATH_MAX];
    _cleanup_close_ int fd = -1;

    /* The runtime writes the pid file when all is made. */
    if (conmon_pid(rt, id) > 0 && fs_exists(ct_run_path(&rt->dirs, id, "pid", path)))
        return false;
    fd = open(ct_run_path(&rt->dirs, id, SYNC_FILE, path), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static int spawn(char **argv, int sync_fd, pid_t *ret_pid, struct err *err)
{
    _cleanup_(strv_freep) char **env = strv_copy((char *const *)PROC_ENV_FIXED);
    struct proc p = {.argv = (const char *const *)argv, .keep_fd = sync_fd};

    strv_push(&env, "_OCI_SYNCPIPE=3");
    p.env = (const char *const *)env;
    return proc_spawn(&p, 0, 0, true, ret_pid, err);
}

/* Read until the line ends, conmon closes the pipe, or the deadline. */
static int read_reply(int fd, struct buf *b)
{
    uint64_t deadline = clock_mono_usec() + CREATE_TIMEOUT_USEC;

    while (!b->data || !strchr(b->data, '\n')) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = clock_mono_usec();
        char chunk[4096];
        ssize_t n;

        if (now >= deadline)
            return -ETIMEDOUT;
        if (poll(&p, 1, (int)((deadline - now) / USEC_PER_MSEC) + 1) <= 0)
            continue;
        n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        if (buf_append(b, chunk, (size_t)n) < 0)
            return -EMSGSIZE;
    }
    return 0;
}

static int parse_reply(const struct buf *b, pid_t *ret_pid, struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    size_t len = b->data ? strcspn(b->data, "\n") : 0;
    int64_t pid;

    if (len == 0 || json_parse(b->data, len, REPLY_MAX, &doc, NULL) < 0 ||
        json_get_i64(doc, "data", &pid, NULL) < 0)
        return err_set(err, -EPROTO, "conmon ended without an answer");
    if (pid <= 0) {
        const char *message = json_str_or(doc, "message", "no reason given");
        _cleanup_free_ char *text = str_escape(message, strcspn(message, "\n"), 200);

        return err_set(err, -EPROTO, "cannot create the container: %s", text);
    }
    *ret_pid = (pid_t)pid;
    return 0;
}

static int await_reply(int fd, pid_t *ret_pid, struct err *err)
{
    _cleanup_(buf_done) struct buf reply = BUF_INIT(REPLY_MAX);
    int r = read_reply(fd, &reply);

    return r < 0 ? err_sys(err, r, "cannot hear from conmon") : parse_reply(&reply, ret_pid, err);
}

int conmon_create(
    const struct runtime *rt, const char *id, const char *name, pid_t *ret_pid, struct err *err)
{
    _cleanup_(strv_freep) char **argv = command(rt, id, name);
    int fd = -1, reader = -1, r = make_folders(rt, id, err);
    pid_t pid = 0;

    if (r == 0)
        r = open_sync(rt, id, &fd, &reader, err);
    if (r < 0)
        return r;
    r = spawn(argv, fd, &pid, err);
    close(fd);
    if (r == 0)
        r = await_reply(reader, ret_pid, err);
    close(reader);
    /* The first conmon ends as soon as it has forked the one that stays. */
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/* The pid file outlives conmon, and its number may be somebody else's by now. */
static bool is_conmon_of(pid_t pid, const char *id)
{
    _cleanup_free_ char *text = NULL;
    char path[64];
    size_t len, n = strlen(id);

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    if (fs_read(path, 65536, &text, &len, NULL) < 0)
        return false;
    return memmem(text, len, "conmon", 6) && memmem(text, len, id, n);
}

pid_t conmon_pid(const struct runtime *rt, const char *id)
{
    _cleanup_free_ char *text = NULL;
    char path[CT_PATH_MAX];
    uint64_t pid;

    if (fs_read(ct_run_path(&rt->dirs, id, "conmon.pid", path), 32, &text, NULL, NULL) < 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    if (str_to_u64(text, INT32_MAX, &pid) < 0 || pid == 0 || !is_conmon_of((pid_t)pid, id))
        return 0;
    return (pid_t)pid;
}

void conmon_wait(const struct runtime *rt, const char *id, uint64_t timeout_usec)
{
    pid_t pid = conmon_pid(rt, id);
    _cleanup_close_ int fd = pid ? pidfd_open(pid, 0) : -1;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd < 0 || conmon_pid(rt, id) != pid)
        return;
    if (poll(&p, 1, (int)(timeout_usec / USEC_PER_MSEC)) > 0)
        return;
    pidfd_send_signal(fd, SIGKILL, NULL, 0);
    (void)poll(&p, 1, 1000);
}
