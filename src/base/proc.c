/*
 * Waiting for helper programs: output read up to its bounds, the deadline kept, the exit told in a
 * sentence. Starting them is in proc_spawn.c. The end of the program counts, not the end of its
 * output: a daemon that it leaves behind may hold the pipes for ever.
 */
#include "base/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"

#define TIMEOUT_DEFAULT (60 * USEC_PER_SEC)
#define TAIL_MAX 2048 /* of stderr, for the error text */
#define CHUNK 4096
#define CHUNKS_AT_ONCE 16 /* what a pipe holds by default */

/* One output of the child: where it goes and the end of the pipe that we read. */
struct output {
    int read_fd, write_fd;
    struct buf *to;   /* may be NULL */
    struct buf *tail; /* keeps the last bytes; may be NULL */
};

struct run {
    const char *name;
    pid_t pid;
    int pidfd;
    struct output out, err_out;
    struct buf tail;
};

static void close_now(int *fd)
{
    cleanup_close(fd);
    *fd = -1;
}

static void run_done(struct run *run)
{
    close_now(&run->pidfd);
    close_now(&run->out.read_fd);
    close_now(&run->out.write_fd);
    close_now(&run->err_out.read_fd);
    close_now(&run->err_out.write_fd);
    buf_done(&run->tail);
}

static int output_open(struct output *o, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    o->read_fd = fds[0];
    o->write_fd = fds[1];
    /* The child's end stays blocking. */
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    return 0;
}

static void output_keep(struct output *o, const char *data, size_t n)
{
    size_t over;

    if (o->to)
        (void)buf_append(o->to, data, MIN_OF(n, o->to->max - o->to->len));
    if (!o->tail)
        return;
    if (n > TAIL_MAX) {
        data += n - TAIL_MAX;
        n = TAIL_MAX;
    }
    over = o->tail->len + n > TAIL_MAX ? o->tail->len + n - TAIL_MAX : 0;
    buf_consume(o->tail, over);
    (void)buf_append(o->tail, data, n);
}

/* Read what is there, but not more than a pipe holds. */
static void output_drain(struct output *o)
{
    char chunk[CHUNK];

    for (int i = 0; i < CHUNKS_AT_ONCE && o->read_fd >= 0; i++) {
        ssize_t n = read(o->read_fd, chunk, sizeof(chunk));

        if (n > 0)
            output_keep(o, chunk, (size_t)n);
        else if (n < 0 && errno == EAGAIN)
            return;
        else if (n == 0 || errno != EINTR)
            close_now(&o->read_fd);
    }
}

static int run_start(struct run *run, const struct proc *p, struct err *err)
{
    int r;

    if (p->out) {
        r = output_open(&run->out, err);
        if (r < 0)
            return r;
    }
    r = output_open(&run->err_out, err);
    if (r < 0)
        return r;
    r = proc_spawn(p, MAX_OF(run->out.write_fd, 0), run->err_out.write_fd, false, &run->pid, err);
    if (r < 0)
        return r;
    close_now(&run->out.write_fd);
    close_now(&run->err_out.write_fd);
    return 0;
}

static int reap(pid_t pid, int *ret_status)
{
    while (waitpid(pid, ret_status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

/* Its group, and itself should it have left the group. */
static void kill_and_reap(pid_t pid)
{
    int status;

    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    (void)reap(pid, &status);
}

/* 0 when the program has ended (and is not reaped yet). */
static int wait_for_end(struct run *run, uint64_t timeout_usec)
{
    uint64_t deadline = clock_mono_usec() + timeout_usec;

    for (;;) {
        struct pollfd fds[] = {
            {.fd = run->pidfd, .events = POLLIN},
            {.fd = run->out.read_fd, .events = POLLIN},
            {.fd = run->err_out.read_fd, .events = POLLIN},
        };
        uint64_t now = clock_mono_usec();
        uint64_t left = now < deadline ? (deadline - now) / USEC_PER_MSEC + 1 : 0;

        if (left == 0)
            return -ETIMEDOUT;
        if (poll(fds, ARRAY_LEN(fds), (int)MIN_OF(left, (uint64_t)INT32_MAX)) < 0 && errno != EINTR)
            return -errno;
        output_drain(&run->out);
        output_drain(&run->err_out);
        if (fds[0].revents)
            return 0;
    }
}

/* The last line of stderr that has something in it, escaped; "" if there is none. Heap. */
static char *last_line(const struct buf *tail)
{
    size_t end = tail->len, start;

    while (end > 0 && strchr(" \r\n\t", tail->data[end - 1]))
        end--;
    for (start = end; start > 0 && tail->data[start - 1] != '\n';)
        start--;
    return str_escape(tail->data ? tail->data + start : "", end - start, 160);
}

static int result(const struct run *run, int status, struct err *err)
{
    _cleanup_free_ char *line = last_line(&run->tail);
    const char *colon = *line ? ": " : "";
    const char *signal_name;

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status))
        return err_set(
            err, -EPROTO, "'%s' exited with %d%s%s", run->name, WEXITSTATUS(status), colon, line);
    signal_name = sigabbrev_np(WTERMSIG(status));
    return err_set(err, -EPROTO, "'%s' was killed by SIG%s%s%s", run->name,
        signal_name ? signal_name : "?", colon, line);
}

static int run_wait(struct run *run, uint64_t timeout_usec, int *ret_status, struct err *err)
{
    char duration[DURATION_TEXT_MAX];
    int status = 0, r;

    run->pidfd = pidfd_open(run->pid, 0);
    r = run->pidfd >= 0 ? wait_for_end(run, timeout_usec) : -errno;
    if (r < 0)
        kill_and_reap(run->pid);
    if (r == -ETIMEDOUT)
        return err_set(err, r, "'%s' did not end within %s", run->name,
            duration_format(timeout_usec, duration));
    if (r == 0)
        r = reap(run->pid, &status);
    if (r < 0)
        return err_sys(err, r, "cannot wait for '%s'", run->name);
    output_drain(&run->out);
    output_drain(&run->err_out);
    if (ret_status)
        *ret_status = status;
    return result(run, status, err);
}

int proc_run(const struct proc *p, int *ret_status, struct err *err)
{
    _cleanup_(run_done) struct run run = {
        .name = p->argv[0],
        .pidfd = -1,
        .out = {.read_fd = -1, .write_fd = -1, .to = p->out},
        .err_out = {.read_fd = -1, .write_fd = -1, .to = p->err_out, .tail = &run.tail},
        .tail = BUF_INIT(TAIL_MAX),
    };
    int r;

    r = run_start(&run, p, err);
    if (r < 0)
        return r;
    return run_wait(&run, p->timeout_usec ? p->timeout_usec : TIMEOUT_DEFAULT, ret_status, err);
}

int proc_start_time(pid_t pid, uint64_t *ret)
{
    _cleanup_free_ char *text = NULL, *number = NULL;
    char path[64];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(path, 4096, &text, NULL, NULL) < 0)
        return -ESRCH;
    /* The name in field 2 may have anything in it: count from its last bracket. */
    at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return -ESRCH;
    number = xstrndup(at + 1, strcspn(at + 1, " "));
    return str_to_u64(number, UINT64_MAX, ret) < 0 ? -ESRCH : 0;
}

char *proc_own_path(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    return xstrndup(path, (size_t)MAX_OF(n, 0));
}

char *proc_own_folder(void)
{
    char *path = proc_own_path(), *slash = strrchr(path, '/');

    *(slash ? slash : path) = '\0';
    return path;
}

char *proc_beside(const char *name)
{
    _cleanup_free_ char *folder = proc_own_folder();

    return xasprintf("%s%s%s", folder, folder[0] ? "/" : "", name);
}

int proc_boot_id(char text[37], struct err *err)
{
    _cleanup_free_ char *id = NULL;
    int r = fs_read("/proc/sys/kernel/random/boot_id", 64, &id, NULL, err);

    if (r < 0)
        return r;
    id[strcspn(id, "\n")] = '\0';
    if (!uuid_is_valid(id))
        return err_set(err, -EINVAL, "the boot id is not a UUID");
    return str_copy(text, 37, id);
}
