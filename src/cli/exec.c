/*
 * The client's side of an exec: one WebSocket, stdin to it, stdout and stderr from it, the
 * terminal's size and signals on the way. Everything runs on one loop.
 */
#include "cli/exec.h"

#include <signal.h>

#include "base/str.h"
#include "cli/api.h"
#include "cli/ends.h"
#include "cli/terminal.h"
#include "cli/text.h"

#define MESSAGE_MAX (64 * 1024)
#define LEAVE_AFTER 3

struct exec {
    struct ends io;
    char *head; /* the first message */
    bool tty, raw, no_stdin, opened, closed;
    bool exit_known;
    int exit_code;
    char error[512]; /* "" none */
    unsigned status; /* HTTP, of a refused handshake */
    unsigned interrupts;
    uv_signal_t winch, intr, quit, term;
};

static void leave_when_done(struct exec *x)
{
    if (x->closed && ends_is_drained(&x->io))
        uv_stop(x->io.loop);
}

static void out_drained(struct ends *io)
{
    leave_when_done(io->arg);
}

static void stdin_ended(struct ends *io)
{
    ws_send_text(io->ws, "{\"eof\":true}");
}

__attribute__((noreturn)) static void leave(int code)
{
    terminal_restore();
    fflush(NULL);
    _exit(code); /* a worker may still be reading stdin */
}

/* Whoever read what the command says has gone, and with us the command's own terminal or pipe. */
static void out_broken(struct ends *io)
{
    terminal_restore();
    if (io->failed != -EPIPE && io->failed != -EIO)
        cli_say("cannot write what the command says: %s", strerror(-io->failed));
    leave(EXIT_MUSTER);
}

static void send_json(struct exec *x, json_t *j)
{
    _cleanup_free_ char *text = json_text(j);

    if (x->io.ws)
        ws_send_text(x->io.ws, text);
    json_decref(j);
}

static void send_size(struct exec *x)
{
    json_t *size, *message;
    unsigned rows, cols;

    if (!terminal_size(STDOUT_FILENO, &rows, &cols))
        return;
    size = json_object();
    message = json_object();
    json_set_u64(size, "rows", rows);
    json_set_u64(size, "cols", cols);
    json_object_set_new(message, "resize", size);
    send_json(x, message);
}

/* --- from the manager --------------------------------------------------------------------- */

static void exec_opened(struct ws *ws, void *arg)
{
    struct exec *x = arg;
    struct err err = ERR_INIT;

    x->opened = true;
    ws_send_text(ws, x->head);
    /* Only now, so that a refusal is read on an ordinary terminal and typing ahead is not lost. */
    if (x->tty && isatty(STDIN_FILENO) && !x->no_stdin)
        x->raw = terminal_raw(&err) == 0;
    if (x->no_stdin)
        ws_send_text(ws, "{\"eof\":true}");
    else
        ends_read(&x->io);
}

static void control_message(struct exec *x, const char *text, size_t len)
{
    _cleanup_(json_decrefp) json_t *j = NULL;
    const json_t *ended, *error;

    if (json_parse(text, len, MESSAGE_MAX, &j, NULL) < 0)
        return;
    ended = json_object_get(j, "exit");
    error = json_object_get(j, "error");
    if (json_is_object(ended)) {
        x->exit_known = true;
        x->exit_code = (int)(json_u64_or(ended, "code", EXIT_MUSTER) & 0xff);
    } else if (json_is_object(error)) {
        snprintf(x->error, sizeof(x->error), "%s", json_str_or(error, "message", "failed"));
    }
}

static void exec_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct exec *x = arg;
    const unsigned char *bytes = data;

    if (!binary)
        control_message(x, data, len);
    else if (len > 0 && (bytes[0] == 1 || bytes[0] == 2))
        ends_write(&x->io, bytes[0] == 1 ? STDOUT_FILENO : STDERR_FILENO, bytes + 1, len - 1);
}

static void exec_drained(struct ws *ws, void *arg)
{
    struct exec *x = arg;

    if (!x->no_stdin)
        ends_read(&x->io);
}

static void exec_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct exec *x = arg;

    x->closed = true;
    x->io.ws = NULL;
    x->status = status;
    if (!x->exit_known && !x->error[0])
        snprintf(x->error, sizeof(x->error), "the connection to the container ended: %s",
            text[0] ? text : "no reason given");
    leave_when_done(x);
}

static const struct ws_events events = {exec_opened, exec_message, exec_drained, exec_closed};

/* --- signals ------------------------------------------------------------------------------ */

static void on_winch(uv_signal_t *h, int signo)
{
    struct exec *x = h->data;

    if (x->opened)
        send_size(x);
}

static void on_signal(uv_signal_t *h, int signo)
{
    struct exec *x = h->data;
    json_t *message;

    if (!x->opened || ++x->interrupts >= LEAVE_AFTER) {
        terminal_restore();
        _exit(128 + signo);
    }
    message = json_object();
    json_set_u64(message, "signal", (uint64_t)signo);
    send_json(x, message);
}

static void watch(struct exec *x, uv_signal_t *h, uv_signal_cb fn, int signo)
{
    uv_signal_init(x->io.loop, h);
    h->data = x;
    uv_signal_start(h, fn, signo);
}

/* --- all together ------------------------------------------------------------------------- */

int exec_say_refused(
    struct cli *cli, const char *session, const char *container, unsigned status, const char *text)
{
    _cleanup_free_ char *path = api_session_path(session, "");
    _cleanup_(json_decrefp) json_t *s = NULL;
    struct err err = ERR_INIT;
    const json_t *c;
    size_t i;

    if (status == 0) {
        err_set(&err, -ECONNREFUSED, API_UNREACHABLE ": %s: %s", cli->url, text);
        return cli_fail(cli, &err);
    }
    if (api_get(cli, path, &s, &err) < 0)
        return cli_fail(cli, &err);
    _cleanup_free_ char *reason = text_reason(s), *state = text_state(s);
    json_array_foreach (json_object_get(s, "containers"), i, c) {
        if (!str_eq(json_str_or(c, "name", ""), container))
            continue;
        if (str_eq(json_str_or(c, "state", ""), "running"))
            err_set(&err, -EREMOTEIO, "%s", text);
        else
            err_set(&err, -EREMOTEIO,
                "%s is not running: the session is %s%s%s; see 'muster why %s'", container, state,
                reason[0] ? ": " : "", reason, session);
        return cli_fail(cli, &err);
    }
    err_set(&err, -EREMOTEIO, "the session has %llu container%s; there is no '%s'",
        (unsigned long long)json_u64_or(s, "size", 1), json_u64_or(s, "size", 1) == 1 ? "" : "s",
        container);
    return cli_fail(cli, &err);
}

static char *head_text(json_t *head, bool tty)
{
    const char *term = getenv("TERM");
    unsigned rows = 24, cols = 80;

    if (tty) {
        (void)terminal_size(STDOUT_FILENO, &rows, &cols);
        json_set_u64(head, "rows", rows);
        json_set_u64(head, "cols", cols);
        json_set_str(head, "term", term && term[0] ? term : "xterm");
    }
    return json_text(head);
}

static int open_ws(struct cli *cli, struct exec *x, const char *session, const char *container,
    struct net **ret_net, struct err *err)
{
    _cleanup_free_ char *suffix = xasprintf("/exec?container=%s", container);
    _cleanup_free_ char *path = api_session_path(session, suffix);
    _cleanup_free_ char *url = api_ws_url(cli, path);
    struct ws_connect_opts opts = {.url = url, .token = cli->token, .ca_path = cli->ca};
    int r = net_new(x->io.loop, NULL, ret_net, err);

    return r < 0 ? r : ws_connect(*ret_net, &opts, &events, x, &x->io.ws, err);
}

int exec_run(
    struct cli *cli, const char *session, const char *container, json_t *head, bool no_stdin)
{
    struct exec *x = xnew(struct exec);
    bool tty = json_bool_or(head, "tty", false);
    struct net *net = NULL;
    struct err err = ERR_INIT;
    static uv_loop_t loop;

    uv_loop_init(&loop);
    ends_init(&x->io, &loop, STDIN_FILENO, 0);
    x->io.eof = stdin_ended;
    x->io.drained = out_drained;
    x->io.broken = out_broken;
    x->io.arg = x;
    x->tty = tty;
    x->no_stdin = no_stdin;
    x->head = head_text(head, tty);
    signal(SIGPIPE, SIG_IGN);
    if (open_ws(cli, x, session, container, &net, &err) < 0)
        leave(cli_fail(cli, &err));
    if (tty)
        watch(x, &x->winch, on_winch, SIGWINCH);
    watch(x, &x->intr, on_signal, SIGINT);
    watch(x, &x->quit, on_signal, SIGQUIT);
    watch(x, &x->term, on_signal, SIGTERM);
    uv_run(&loop, UV_RUN_DEFAULT);
    terminal_restore();
    if (x->exit_known)
        leave(x->exit_code);
    if (!x->opened)
        leave(exec_say_refused(cli, session, container, x->status, x->error));
    cli_say("%s", x->error);
    leave(EXIT_MUSTER);
}
