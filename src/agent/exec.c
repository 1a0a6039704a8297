/*
 * A step: a command run inside a running container, on pipes or on a terminal. The runtime's exec
 * is the child; how it ended is the stream's last word.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/sess.h"
#include "agent/stream.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/strv.h"

#define STDIN 0
#define STDOUT 1
#define STDERR 2
#define EOF_WAIT_MSEC 500 /* for output after the end, when a background child keeps it open */
#define KILL_WAIT_MSEC 3000
#define LOOK_MSEC 1000
#define STUCK_LOOKS 3 /* in a row, then nobody is waited for any more */

struct exec {
    struct stream *st;
    pid_t pid; /* of the runtime's exec; 0: reaped */
    int pidfd, master;
    uv_poll_t poll;
    uv_timer_t timer, look;
    unsigned stuck;
    struct pump pumps[3]; /* by descriptor; with a terminal only STDOUT, both ways */
    unsigned handles;     /* open libuv handles, pumps' included */
    bool exited, said;
    int code;
};

static void exec_free_if_done(struct exec *x)
{
    struct stream *st = x->st;

    if (x->handles > 0 || st->ws || x->pid)
        return;
    runtime_exec_done(&st->agent->rt, st->order.id);
    if (x->pidfd >= 0)
        close(x->pidfd);
    free(x);
    st->data = NULL;
    stream_done(st);
}

static void handle_closed(uv_handle_t *h)
{
    struct exec *x = h->data;

    x->handles--;
    exec_free_if_done(x);
}

static void close_all(struct exec *x)
{
    for (int i = 0; i < 3; i++)
        pump_close(&x->pumps[i]);
    if (!uv_is_closing((uv_handle_t *)&x->poll))
        uv_close((uv_handle_t *)&x->poll, handle_closed);
    if (!uv_is_closing((uv_handle_t *)&x->timer))
        uv_close((uv_handle_t *)&x->timer, handle_closed);
    if (!uv_is_closing((uv_handle_t *)&x->look))
        uv_close((uv_handle_t *)&x->look, handle_closed);
}

static void say_exit(struct exec *x)
{
    char text[64];

    if (x->said)
        return;
    x->said = true;
    if (x->st->ws) {
        snprintf(text, sizeof(text), "{\"exit\":{\"code\":%d}}", x->code);
        ws_send_text(x->st->ws, text);
        ws_close(x->st->ws, 1000, "");
    }
    close_all(x);
}

static void say_exit_if_done(struct exec *x)
{
    bool open_out = x->pumps[STDOUT].open && !x->pumps[STDOUT].eof;
    bool open_err = x->pumps[STDERR].open && !x->pumps[STDERR].eof;

    if (x->exited && !open_out && !open_err)
        say_exit(x);
}

static void pump_ended(struct pump *p)
{
    struct exec *x = p->st->data;

    say_exit_if_done(x);
}

static void pump_closed(struct pump *p)
{
    struct exec *x = p->st->data;

    x->handles--;
    exec_free_if_done(x);
}

static void eof_too_late(uv_timer_t *t)
{
    say_exit(t->data);
}

static void child_exited(uv_poll_t *p, int status, int events)
{
    struct exec *x = p->data;
    int st = 0;

    if (waitpid(x->pid, &st, WNOHANG) != x->pid)
        return;
    uv_poll_stop(p);
    x->pid = 0;
    x->exited = true;
    x->code = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    uv_timer_stop(&x->timer);
    uv_timer_start(&x->timer, eof_too_late, EOF_WAIT_MSEC, 0);
    say_exit_if_done(x);
}

/* --- signals ------------------------------------------------------------------------------ */

/* The step's own process is the child of the runtime's exec. */
static void signal_step(struct exec *x, int signo)
{
    _cleanup_free_ char *path = xasprintf("/proc/%d/task/%d/children", x->pid, x->pid);
    _cleanup_free_ char *text = NULL;
    char *save;

    if (!x->pid || fs_read(path, 4096, &text, NULL, NULL) < 0)
        return;
    for (char *at = text; *at;) {
        long pid = strtol(at, &save, 10);
        if (save == at || pid <= 1)
            break;
        kill((pid_t)pid, signo);
        at = save;
    }
}

static void kill_late(uv_timer_t *t)
{
    struct exec *x = t->data;

    signal_step(x, SIGKILL);
    if (x->pid)
        kill(x->pid, SIGKILL);
}

/* --- the container's end ------------------------------------------------------------------ */

/* Its process 1 cannot be gone before all in it is, and who has a parent outside is only gone when
 * that has asked for its end. */
static bool container_ends(const struct exec *x)
{
    const struct ct *c = sess_container(x->st->agent, x->st->order.container);
    _cleanup_free_ char *exe = c && c->pid ? xasprintf("/proc/%d/exe", (int)c->pid) : NULL;
    char link[8];

    return !exe || (readlink(exe, link, sizeof(link)) < 0 && errno == ENOENT);
}

/* With a terminal the runtime's exec carries the bytes: it asks for nobody's end while it waits for
 * a reader. Nobody's reading, or not reading, may keep a container from ending. */
static void look_whether_stuck(uv_timer_t *t)
{
    struct exec *x = t->data;
    const struct pump *out = &x->pumps[STDOUT];

    if (!x->pid || !out->open || out->reading || !container_ends(x)) {
        x->stuck = 0;
    } else if (++x->stuck >= STUCK_LOOKS) {
        log_info("step %s: nobody reads it, and its container has ended: left", x->st->order.id);
        kill(x->pid, SIGKILL);
    }
}

/* --- start -------------------------------------------------------------------------------- */

static void open_pump(struct exec *x, int n, int fd, int channel)
{
    x->pumps[n].ended = pump_ended;
    x->pumps[n].closed = pump_closed;
    x->handles++;
    pump_open(&x->pumps[n], x->st, fd, channel);
    if (channel >= 0)
        pump_read(&x->pumps[n], true);
}

/*
 * The terminal inside: the runtime made it, passes bytes between it and ours, and knows of no later
 * size (crun 1.8 hands SIGWINCH on, no more). Its master is taken from the runtime, never from the
 * user's process, which may have put anything in its descriptors. -1: none yet.
 */
static int inner_master(const struct exec *x)
{
    _cleanup_free_ char *dir = xasprintf("/proc/%d/fd", (int)x->pid);
    char link[64];
    struct dirent *e;
    int fd = -1;
    DIR *d = x->pid ? opendir(dir) : NULL;

    while (d && fd < 0 && (e = readdir(d))) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        uint64_t number;
        link[MAX_OF(n, 0)] = '\0';
        if (n > 0 && str_ends(link, "/ptmx") && str_to_u64(e->d_name, INT32_MAX, &number) == 0)
            fd = (int)syscall(SYS_pidfd_getfd, x->pidfd, (int)number, 0);
    }
    if (d)
        closedir(d);
    return fd;
}

static void resize(struct exec *x, uint16_t rows, uint16_t cols)
{
    struct winsize ws = {.ws_row = rows, .ws_col = cols};
    _cleanup_close_ int inner = -1;

    if (x->master < 0)
        return;
    ioctl(x->master, TIOCSWINSZ, &ws); /* what the runtime starts with, if it has not yet */
    inner = inner_master(x);
    if (inner >= 0)
        ioctl(inner, TIOCSWINSZ, &ws);
}

static int spawn_tty(struct exec *x, const struct proc *base, struct err *err)
{
    struct proc p = *base;
    struct winsize size = {.ws_row = x->st->order.rows, .ws_col = x->st->order.cols};
    struct termios raw;
    int master, slave, r;

    if (openpty(&master, &slave, NULL, NULL, &size) < 0)
        return err_sys(err, -errno, "cannot make a terminal");
    /* The terminal proper is inside the container; this one only carries. */
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    p.in_fd = slave;
    r = proc_spawn(&p, slave, slave, false, &x->pid, err);
    close(slave);
    if (r < 0) {
        close(master);
        return r;
    }
    x->master = master;
    open_pump(x, STDOUT, master, STDOUT);
    return 0;
}

static int spawn_pipes(struct exec *x, const struct proc *base, struct err *err)
{
    struct proc p = *base;
    int in[2], out[2], errs[2], r;

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(errs, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make pipes");
    p.in_fd = in[0];
    r = proc_spawn(&p, out[1], errs[1], false, &x->pid, err);
    close(in[0]);
    close(out[1]);
    close(errs[1]);
    if (r < 0) {
        close(in[1]);
        close(out[0]);
        close(errs[0]);
        return r;
    }
    open_pump(x, STDIN, in[1], -1);
    open_pump(x, STDOUT, out[0], STDOUT);
    open_pump(x, STDERR, errs[0], STDERR);
    return 0;
}

static int spawn(struct exec *x, struct ct *c, struct err *err)
{
    struct stream *st = x->st;
    char **env = strv_copy(c->spec->env), **argv = NULL;
    struct exec_spec spec = {.root = st->order.root,
        .tty = st->order.tty,
        .command = st->order.command,
        .cwd = st->order.workdir[0] ? st->order.workdir : NULL};
    struct proc p = {0};
    int r;

    strv_for_each (kv, c->extra.env)
        strv_push(&env, *kv);
    strv_for_each (kv, st->order.env) {
        char *eq = strchr(*kv, '=');
        if (eq && !str_starts(*kv, "MUSTER_") && !str_starts(*kv, "BACKENDAI_")) {
            *eq = '\0';
            strv_env_set(&env, *kv, eq + 1);
            *eq = '=';
        }
    }
    spec.env = env;
    r = runtime_exec_argv(&st->agent->rt, c->spec->id, st->order.id, &spec, &argv, err);
    strv_free(env);
    if (r < 0)
        return r;
    p.argv = (const char *const *)argv;
    r = st->order.tty ? spawn_tty(x, &p, err) : spawn_pipes(x, &p, err);
    strv_free(argv);
    return r;
}

static int exec_start(struct stream *st, struct err *err)
{
    struct ct *c = sess_container(st->agent, st->order.container);
    struct exec *x;
    int r;

    if (!c || !c->pid || c->report.state == CONTAINER_EXITED)
        return err_set(err, -ENOENT, "the container is not running on this node");
    x = xnew(struct exec);
    x->st = st;
    x->pidfd = x->master = -1;
    r = spawn(x, c, err);
    if (r < 0) {
        runtime_exec_done(&st->agent->rt, st->order.id);
        free(x);
        return r;
    }
    st->data = x;
    x->pidfd = (int)syscall(SYS_pidfd_open, x->pid, 0);
    uv_poll_init(st->agent->loop, &x->poll, x->pidfd);
    uv_timer_init(st->agent->loop, &x->timer);
    uv_timer_init(st->agent->loop, &x->look);
    x->poll.data = x->timer.data = x->look.data = x;
    x->handles += 3;
    uv_poll_start(&x->poll, UV_READABLE, child_exited);
    if (st->order.tty)
        uv_timer_start(&x->look, look_whether_stuck, LOOK_MSEC, LOOK_MSEC);
    return 0;
}

/* --- messages ----------------------------------------------------------------------------- */

static void control(struct exec *x, const char *data, size_t len)
{
    _cleanup_(json_decrefp) json_t *o = NULL;
    const json_t *size;

    if (json_parse(data, len, 64 * 1024, &o, NULL) < 0)
        return;
    size = json_object_get(o, "resize");
    if (json_is_object(size))
        resize(x, (uint16_t)json_u64_or(size, "rows", 24), (uint16_t)json_u64_or(size, "cols", 80));
    if (json_bool_or(o, "eof", false))
        pump_shut(&x->pumps[STDIN]);
    if (json_object_get(o, "signal"))
        signal_step(x, (int)MIN_OF(json_u64_or(o, "signal", SIGTERM), 64));
}

static void exec_message(struct stream *st, const char *data, size_t len, bool binary)
{
    struct exec *x = st->data;

    if (!x)
        return;
    if (!binary)
        control(x, data, len);
    else if (len > 1 && data[0] == STDIN)
        pump_write(&x->pumps[st->order.tty ? STDOUT : STDIN], data + 1, len - 1);
}

static void exec_drained(struct stream *st)
{
    struct exec *x = st->data;

    if (!x)
        return;
    pump_read(&x->pumps[STDOUT], true);
    pump_read(&x->pumps[STDERR], true);
}

/* Whoever asked has gone: as when a terminal is closed. */
static void exec_closed(struct stream *st)
{
    struct exec *x = st->data;

    if (!x) {
        stream_done(st);
        return;
    }
    if (x->exited) {
        close_all(x);
        exec_free_if_done(x);
        return;
    }
    signal_step(x, SIGHUP);
    pump_close(&x->pumps[STDIN]);
    if (st->order.tty)
        pump_close(&x->pumps[STDOUT]);
    pump_read(&x->pumps[STDOUT], true); /* drain, so that it can end */
    pump_read(&x->pumps[STDERR], true);
    uv_timer_start(&x->timer, kill_late, KILL_WAIT_MSEC, 0);
}

const struct stream_kind_ops exec_ops = {
    .start = exec_start,
    .message = exec_message,
    .drained = exec_drained,
    .closed = exec_closed,
};
