/* tunnel: stdin and stdout as a TCP connection to a port of a container. ssh uses it to connect. */
#include <signal.h>

#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/ends.h"
#include "cli/exec.h"
#include "cli/ref.h"

struct tunnel {
    struct ends io;
    bool opened, closed;
    unsigned code, status;
    char text[256];
    char error[256]; /* what the other side said */
};

static void leave_when_done(struct tunnel *t)
{
    if (t->closed && ends_is_drained(&t->io))
        uv_stop(t->io.loop);
}

static void out_drained(struct ends *io)
{
    leave_when_done(io->arg);
}

static void out_broken(struct ends *io)
{
    if (io->failed != -EPIPE)
        cli_say("cannot write what the port says: %s", strerror(-io->failed));
    _exit(EXIT_FAILED);
}

/* A WebSocket has no half-closed state: what is queued goes out, then all ends. */
static void stdin_ended(struct ends *io)
{
    ws_close(io->ws, 1000, "");
}

static void tunnel_opened(struct ws *ws, void *arg)
{
    struct tunnel *t = arg;

    t->opened = true;
    ends_read(&t->io);
}

static void tunnel_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct tunnel *t = arg;
    _cleanup_(json_decrefp) json_t *j = NULL;

    if (binary) {
        ends_write(&t->io, STDOUT_FILENO, data, len);
    } else if (json_parse(data, len, 64 * 1024, &j, NULL) == 0) {
        const char *message = json_str_or(json_object_get(j, "error"), "message", NULL);
        if (message)
            snprintf(t->error, sizeof(t->error), "%s", message);
    }
}

static void tunnel_drained(struct ws *ws, void *arg)
{
    struct tunnel *t = arg;

    ends_read(&t->io);
}

static void tunnel_closed(
    struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct tunnel *t = arg;

    t->closed = true;
    t->io.ws = NULL;
    t->code = code;
    t->status = status;
    snprintf(t->text, sizeof(t->text), "%s", text);
    leave_when_done(t);
}

static const struct ws_events events = {
    tunnel_opened, tunnel_message, tunnel_drained, tunnel_closed};

static int check_port(const char *text, uint64_t *ret)
{
    return str_to_u64(text, 65535, ret) < 0 || *ret == 0 ? -EINVAL : 0;
}

static int open_ws(
    struct cli *cli, struct tunnel *t, const struct ref *ref, uint64_t port, struct err *err)
{
    _cleanup_free_ char *suffix = xasprintf(
        "/tcp?container=%s&port=%llu", ref->container, (unsigned long long)port);
    _cleanup_free_ char *path = api_session_path(ref->session, suffix);
    _cleanup_free_ char *url = api_ws_url(cli, path);
    struct ws_connect_opts opts = {.url = url, .token = cli->token, .ca_path = cli->ca};
    struct net *net;
    int r = net_new(t->io.loop, NULL, &net, err);

    return r < 0 ? r : ws_connect(net, &opts, &events, t, &t->io.ws, err);
}

int cmd_tunnel(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    static struct tunnel t;
    static uv_loop_t loop;
    _cleanup_(ref_done) struct ref ref = {0};
    struct err err = ERR_INIT;
    uint64_t port;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (ref_parse(argv[rest], &ref, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    if (check_port(argv[rest + 1], &port) < 0)
        return cli_usage(cli, "'%s' is no port: a number from 1 to 65535", argv[rest + 1]);
    uv_loop_init(&loop);
    ends_init(&t.io, &loop, STDIN_FILENO, -1);
    t.io.eof = stdin_ended;
    t.io.drained = out_drained;
    t.io.broken = out_broken;
    t.io.arg = &t;
    signal(SIGPIPE, SIG_IGN);
    if (open_ws(cli, &t, &ref, port, &err) < 0)
        return cli_fail(cli, &err);
    uv_run(&loop, UV_RUN_DEFAULT);
    code = EXIT_OK;
    if (!t.opened)
        code = exec_say_refused(cli, ref.session, ref.container, t.status, t.text);
    else if (t.error[0] || t.code != 1000) {
        cli_say("%s", t.error[0] ? t.error : t.text);
        code = EXIT_FAILED;
    }
    fflush(NULL);
    _exit(code); /* a worker may still be reading stdin */
}
