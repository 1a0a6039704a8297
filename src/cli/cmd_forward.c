/*
 * forward: a port of this machine's loopback leads to a port of a container. Each connection has a
 * WebSocket of its own; back pressure both ways.
 */
#include <arpa/inet.h>
#include <signal.h>

#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/exec.h"
#include "cli/ref.h"
#include "net/ws.h"

#define SEND_HIGH ((size_t)1 << 20)
#define PIECE 65536

/* clang-format off */
const struct opt forward_options[] = {
    CLI_TALK_OPTIONS(struct cli_plain)
};
/* clang-format on */

struct forward {
    struct cli *cli;
    struct net *net;
    uv_loop_t loop;
    uv_tcp_t listener;
    struct ref ref;
    uint64_t local, port;
};

struct pair { /* a connection; freed when both ends are closed */
    struct forward *fw;
    uv_tcp_t tcp;
    struct ws *ws;
    bool tcp_closed;
    bool ws_paused, tcp_paused;
    size_t writing; /* bytes towards the local peer */
    char piece[PIECE];
};

static void pair_release(struct pair *p)
{
    if (p->tcp_closed && !p->ws)
        free(p);
}

static void tcp_closed(uv_handle_t *h)
{
    struct pair *p = h->data;

    p->tcp_closed = true;
    pair_release(p);
}

static void pair_close(struct pair *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->tcp))
        uv_close((uv_handle_t *)&p->tcp, tcp_closed);
    if (p->ws)
        ws_close(p->ws, 1000, "");
}

/* --- from the local peer ------------------------------------------------------------------ */

static void give_piece(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct pair *p = h->data;

    *buf = uv_buf_init(p->piece, PIECE);
}

static void local_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct pair *p = s->data;

    if (n < 0 || !p->ws) {
        pair_close(p);
        return;
    }
    if (n > 0 && ws_send(p->ws, buf->base, (size_t)n, true) > SEND_HIGH) {
        p->tcp_paused = true;
        uv_read_stop(s);
    }
}

/* --- from the container ------------------------------------------------------------------- */

struct local_write {
    uv_write_t req;
    struct pair *p;
    size_t len;
    char data[];
};

static void written(uv_write_t *req, int status)
{
    struct local_write *w = CONTAINER_OF(req, struct local_write, req);
    struct pair *p = w->p;

    p->writing -= w->len;
    if (p->ws && p->ws_paused && p->writing < SEND_HIGH / 4) {
        p->ws_paused = false;
        ws_pause(p->ws, false);
    }
    free(w);
}

static void ws_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct pair *p = arg;
    struct local_write *w;
    uv_buf_t buf;

    if (!binary || len == 0 || uv_is_closing((uv_handle_t *)&p->tcp))
        return;
    w = xcalloc(1, sizeof(*w) + len);
    w->p = p;
    w->len = len;
    memcpy(w->data, data, len);
    buf = uv_buf_init(w->data, (unsigned)len);
    p->writing += len;
    if (uv_write(&w->req, (uv_stream_t *)&p->tcp, &buf, 1, written) < 0) {
        p->writing -= len;
        free(w);
        pair_close(p);
        return;
    }
    if (p->writing > SEND_HIGH && !p->ws_paused) {
        p->ws_paused = true;
        ws_pause(ws, true);
    }
}

static void ws_opened(struct ws *ws, void *arg)
{
    struct pair *p = arg;

    uv_read_start((uv_stream_t *)&p->tcp, give_piece, local_read);
}

static void ws_drained(struct ws *ws, void *arg)
{
    struct pair *p = arg;

    if (!p->tcp_paused || uv_is_closing((uv_handle_t *)&p->tcp))
        return;
    p->tcp_paused = false;
    uv_read_start((uv_stream_t *)&p->tcp, give_piece, local_read);
}

static void close_after_writes(uv_shutdown_t *req, int status)
{
    struct pair *p = req->data;

    free(req);
    pair_close(p);
}

static void ws_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct pair *p = arg;
    uv_shutdown_t *end;

    p->ws = NULL;
    if (code != 1000)
        cli_say("a connection to port %llu ended: %s", (unsigned long long)p->fw->port, text);
    if (uv_is_closing((uv_handle_t *)&p->tcp)) {
        pair_release(p);
        return;
    }
    end = xnew(uv_shutdown_t);
    end->data = p;
    if (uv_shutdown(end, (uv_stream_t *)&p->tcp, close_after_writes) < 0) {
        free(end);
        pair_close(p);
    }
}

static const struct ws_events events = {ws_opened, ws_message, ws_drained, ws_closed};

/* --- connections -------------------------------------------------------------------------- */

static int connect_ws(struct pair *p, struct err *err)
{
    struct forward *fw = p->fw;
    _cleanup_free_ char *suffix = xasprintf(
        "/tcp?container=%s&port=%llu", fw->ref.container, (unsigned long long)fw->port);
    _cleanup_free_ char *path = api_session_path(fw->ref.session, suffix);
    _cleanup_free_ char *url = api_ws_url(fw->cli, path);
    struct ws_connect_opts opts = {.url = url, .token = fw->cli->token, .ca_path = fw->cli->ca};

    return ws_connect(fw->net, &opts, &events, p, &p->ws, err);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct forward *fw = listener->data;
    struct pair *p = xnew(struct pair);
    struct err err = ERR_INIT;

    p->fw = fw;
    uv_tcp_init(&fw->loop, &p->tcp);
    p->tcp.data = p;
    if (status < 0 || uv_accept(listener, (uv_stream_t *)&p->tcp) < 0) {
        pair_close(p);
        return;
    }
    if (connect_ws(p, &err) < 0) {
        cli_say("%s", err_text(&err));
        pair_close(p);
    }
}

static int listen_local(struct forward *fw, struct err *err)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    int len = sizeof(addr), r;

    addr.sin_port = htons((uint16_t)fw->local);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    uv_tcp_init(&fw->loop, &fw->listener);
    fw->listener.data = fw;
    r = uv_tcp_bind(&fw->listener, (struct sockaddr *)&addr, 0);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&fw->listener, 128, on_connection);
    if (r < 0)
        return err_sys(err, r, "cannot listen on 127.0.0.1:%llu", (unsigned long long)fw->local);
    uv_tcp_getsockname(&fw->listener, (struct sockaddr *)&addr, &len);
    fw->local = ntohs(addr.sin_port);
    return 0;
}

/* "8888" or "LOCAL:PORT"; LOCAL 0 is any free one. */
static int parse_ports(const char *text, struct forward *fw, struct err *err)
{
    const char *colon = strchr(text, ':');
    _cleanup_free_ char *local = colon ? xstrndup(text, (size_t)(colon - text)) : xstrdup(text);

    if (str_to_u64(local, 65535, &fw->local) < 0 ||
        str_to_u64(colon ? colon + 1 : text, 65535, &fw->port) < 0 || fw->port == 0)
        return err_set(err, -EINVAL, "'%.40s' must be [LOCALPORT:]PORT", text);
    return 0;
}

/* It is there and runs: better said now than at the first connection. */
static int check_session(struct cli *cli, const struct ref *ref)
{
    _cleanup_free_ char *path = api_session_path(ref->session, "");
    _cleanup_(json_decrefp) json_t *s = NULL;
    struct err err = ERR_INIT;

    if (api_get(cli, path, &s, &err) < 0)
        return cli_fail(cli, &err);
    if (!str_eq(json_str_or(s, "state", ""), "running"))
        return exec_say_refused(cli, ref->session, ref->container, 409, "it is not running");
    return CLI_GO_ON;
}

int cmd_forward(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    static struct forward fw;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    fw.cli = cli;
    if (ref_parse(argv[rest], &fw.ref, &err) < 0 || parse_ports(argv[rest + 1], &fw, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    code = check_session(cli, &fw.ref);
    if (code != CLI_GO_ON)
        return code;
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&fw.loop);
    if (net_new(&fw.loop, NULL, &fw.net, &err) < 0 || listen_local(&fw, &err) < 0)
        return cli_fail(cli, &err);
    printf("127.0.0.1:%llu\n", (unsigned long long)fw.local);
    fflush(stdout);
    cli_say(
        "leads to port %llu of %s; end with Ctrl-C", (unsigned long long)fw.port, fw.ref.container);
    uv_run(&fw.loop, UV_RUN_DEFAULT);
    return EXIT_OK;
}
