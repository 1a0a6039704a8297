/*
 * How a WebSocket of ours comes to be: the name is resolved (on libuv's workers), each address is
 * tried, the handshake is written and its answer checked. Then the frames are ws_conn.c's. Owns
 * what is sent before that.
 */
#include "base/str.h"
#include "net/conn.h"
#include "net/http1.h"
#include "net/tls.h"
#include "net/uri.h"
#include "net/ws_internal.h"
#include "net/ws_key.h"

#define CONNECT_MSEC 10000
#define REQUEST_MAX ((size_t)64 << 10)

/* A message that waits for the connection. */
struct early {
    struct list link;
    enum frame_op op;
    size_t len;
    uint8_t data[];
};

struct ws_client {
    struct ws *ws;
    struct conn *conn;
    struct tls_config *tls;
    struct uri uri;
    char *path, *token;
    union sock_address addresses[SOCK_ADDRESSES_MAX];
    unsigned address_count, address_at;
    struct resolving *resolving;
    struct list queue; /* of early */
    size_t queued;
    char key[WS_KEY_LEN + 1];
    struct buf answer;
    size_t scanned;
    struct net_timer timer; /* of this attempt, or of its failure */
    uint64_t deadline_msec; /* of all, uv_now */
    bool failed;            /* this attempt */
    char error[256];
};

struct resolving {
    uv_getaddrinfo_t request;
    struct ws_client *client; /* NULL: it did not wait */
};

static void early_free(struct early *e)
{
    list_remove(&e->link);
    free(e);
}

static void side_send(struct ws *ws, enum frame_op op, const void *data, size_t len)
{
    struct ws_client *k = ws->impl;
    struct early *e = xcalloc(1, sizeof(*e) + len);

    e->op = op;
    e->len = len;
    if (len)
        memcpy(e->data, data, len);
    list_init(&e->link);
    list_append(&k->queue, &e->link);
    k->queued += len;
}

static size_t side_queued(const struct ws *ws)
{
    return ((const struct ws_client *)ws->impl)->queued;
}

/* Pausing and closing need a connection: ws.c does both without us before that. */
static void side_pause(struct ws *ws, bool pause)
{
}

static void side_close(struct ws *ws, unsigned code, const char *text)
{
}

static void client_free(struct ws_client *k)
{
    net_timer_stop(&k->timer);
    list_for_each_safe (it, &k->queue)
        early_free(LIST_ENTRY(it, struct early, link));
    buf_done(&k->answer);
    free(k->path);
    free(k->token);
    free(k);
}

static void drop_conn(struct ws_client *k)
{
    if (k->conn)
        conn_kill(TAKE_PTR(k->conn));
    k->answer.len = k->scanned = 0;
}

static void side_drop(struct ws *ws)
{
    struct ws_client *k = ws->impl;

    drop_conn(k);
    if (k->resolving) {
        k->resolving->client = NULL;
        uv_cancel((uv_req_t *)&k->resolving->request);
    }
    client_free(k);
}

static const struct ws_side SIDE = {side_send, side_queued, side_pause, side_close, side_drop};

/* This attempt came to nothing: go on in the next turn, outside of the caller's call. */
static void attempt_failed(struct ws_client *k, const char *why)
{
    snprintf(k->error, sizeof(k->error), "cannot connect to %.60s port %u: %s", k->uri.host,
        k->uri.port, why);
    k->failed = true;
    net_timer_set(k->ws->net, &k->timer, 0);
}

static void send_handshake(struct ws_client *k)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(REQUEST_MAX);
    char authority[URI_AUTHORITY_MAX];

    ws_key_make(k->key);
    uri_format_authority(&k->uri, authority);
    buf_printf(&text,
        "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
        k->path, authority, k->key);
    if (k->token)
        buf_printf(&text, "Authorization: Bearer %s\r\n", k->token);
    buf_puts(&text, "\r\n");
    conn_send(k->conn, text.data, text.len);
}

/* The time that is left, shared with the addresses that are still to be tried. */
static void set_deadline(struct ws_client *k)
{
    uint64_t now = uv_now(k->ws->net->loop);
    uint64_t left = k->deadline_msec > now ? k->deadline_msec - now : 1;
    unsigned more = k->address_count - k->address_at;

    net_timer_set(k->ws->net, &k->timer, MAX_OF(left / (more + 1), UINT64_C(1)));
}

static const struct conn_events EVENTS;

static void try_next(struct ws_client *k)
{
    int r = conn_connect(k->ws->net, k->tls, &k->addresses[k->address_at++], &k->conn);

    if (r < 0) {
        attempt_failed(k, strerrordesc_np(-r));
        return;
    }
    conn_set_owner(k->conn, &EVENTS, k);
    set_deadline(k);
    send_handshake(k);
}

static bool is_late(const struct ws_client *k)
{
    return uv_now(k->ws->net->loop) >= k->deadline_msec;
}

static void timer_rang(struct net_timer *timer)
{
    struct ws_client *k = CONTAINER_OF(timer, struct ws_client, timer);
    bool failed = k->failed, more = k->address_at < k->address_count;

    k->failed = false;
    drop_conn(k);
    if (more && !is_late(k))
        try_next(k);
    else
        ws_done(k->ws, 1006, 0, failed ? k->error : "no connection and handshake in time");
}

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct resolving *resolving = CONTAINER_OF(request, struct resolving, request);
    struct ws_client *k = resolving->client;
    char text[128];

    free(resolving);
    if (k) {
        k->resolving = NULL;
        k->address_count = sock_take(list, k->uri.port, k->addresses);
        if (k->address_count) {
            try_next(k);
        } else {
            snprintf(text, sizeof(text), "cannot resolve '%.60s': %s", k->uri.host,
                status < 0 ? uv_strerror(status) : "it has no address");
            ws_done(k->ws, 1006, 0, text);
        }
    }
    uv_freeaddrinfo(list);
}

static void resolve(struct ws_client *k)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int r;

    if (sock_parse(k->uri.host, k->uri.port, &k->addresses[0]) == 0) {
        k->address_count = 1;
        try_next(k);
        return;
    }
    k->resolving = xnew(struct resolving);
    k->resolving->client = k;
    r = uv_getaddrinfo(
        k->ws->net->loop, &k->resolving->request, resolved, k->uri.host, NULL, &hints);
    if (r < 0) {
        free(TAKE_PTR(k->resolving));
        attempt_failed(k, uv_strerror(r));
    }
}

/* The answer is no WebSocket, or none to us: no other address would say something else. */
static void refused(struct ws_client *k, unsigned status, const char *why)
{
    char text[256];

    if (status && status != 101)
        snprintf(text, sizeof(text), "the server refused the handshake with status %u", status);
    else
        snprintf(text, sizeof(text), "the server's answer to the handshake is not proper: %s", why);
    ws_done(k->ws, 1006, status != 101 ? status : 0, text);
}

/* k is gone afterwards. */
static void upgraded(struct ws_client *k, const char *early, size_t early_len)
{
    struct ws *ws = k->ws;

    ws_attach(ws, TAKE_PTR(k->conn), true, early, early_len);
    list_for_each (it, &k->queue) {
        struct early *e = LIST_ENTRY(it, struct early, link);

        ws->side->send(ws, e->op, e->data, e->len);
    }
    client_free(k);
    ws_open(ws);
    if (ws->events->opened)
        ws->events->opened(ws, ws->arg);
}

/* The head of the answer is len bytes. */
static void answered(struct ws_client *k, size_t len)
{
    _cleanup_free_ char *text = xstrndup(k->answer.data, len);
    char accept[WS_ACCEPT_LEN + 1];
    struct http1_head head;
    struct err err = ERR_INIT;

    if (strlen(text) != len)
        refused(k, 0, "the head has a NUL");
    else if (http1_parse_answer(text, len, &head, &err) < 0)
        refused(k, 0, err_text(&err));
    else if (head.status != 101)
        refused(k, head.status, "");
    else if (ws_key_accept(k->key, accept), !http1_is_handshake_answer(&head, accept))
        refused(k, 101, "it does not fit the question");
    else
        upgraded(k, k->answer.data + len, k->answer.len - len);
}

static void conn_data(struct conn *c, const char *data, size_t len, void *owner)
{
    struct ws_client *k = owner;
    ssize_t n;

    if (k->ws->state != WS_CONNECTING || buf_append(&k->answer, data, len) < 0)
        return; /* it cannot be more than a head and one read: the head ends the collecting */
    n = http1_head_length(k->answer.data, k->answer.len, &k->scanned);
    if (n < 0)
        refused(k, 0,
            n == -EMSGSIZE     ? "it is too long"
                : n == -EPROTO ? "it is no HTTP"
                               : "a line does not end with CR LF");
    else if (n > 0)
        answered(k, (size_t)n);
}

static void conn_closed(struct conn *c, void *owner)
{
    struct ws_client *k = owner;
    const char *why = conn_error(c);

    k->conn = NULL;
    if (k->ws->state == WS_CONNECTING)
        attempt_failed(k, why ? why : "the connection was closed without an answer");
}

static const struct conn_events EVENTS = {conn_data, NULL, conn_closed};

static struct ws_client *client_new(struct net *net, const struct ws_connect_opts *opts,
    const struct uri *uri, struct tls_config *tls)
{
    struct ws_client *k = xnew(struct ws_client);

    k->ws = xnew(struct ws);
    k->tls = tls;
    k->uri = *uri;
    k->path = xstrdup(uri->path);
    k->uri.path = NULL;
    k->token = xstrdup(opts->token);
    k->answer = BUF_INIT(HTTP1_HEAD_MAX + NET_READ_MAX);
    list_init(&k->queue);
    net_timer_init(&k->timer, timer_rang);
    k->deadline_msec = uv_now(net->loop) +
        (opts->timeout_usec ? MAX_OF(opts->timeout_usec / 1000, UINT64_C(1)) : CONNECT_MSEC);
    return k;
}

int ws_connect(struct net *net, const struct ws_connect_opts *opts, const struct ws_events *events,
    void *arg, struct ws **ret, struct err *err)
{
    struct tls_files files = {opts->cert_path, opts->key_path, opts->ca_path};
    struct tls_config *tls = NULL;
    struct ws_client *k;
    struct uri uri;
    int r;

    if (net->closing)
        return err_set(err, -ESHUTDOWN, "this side is shutting down");
    r = uri_parse_ws(opts->url, &uri, err);
    if (r < 0)
        return r;
    if (opts->token && !str_is_clean(opts->token, strlen(opts->token)))
        return err_set(err, -EINVAL, "the token has characters that no header can carry");
    if (strlen(uri.path) + strlen(opts->token ? opts->token : "") > REQUEST_MAX / 2)
        return err_set(err, -EINVAL, "the WebSocket URL or the token is too long");
    r = uri.tls
        ? tls_client(net, opts->server_name ? opts->server_name : uri.host, &files, &tls, err)
        : 0;
    if (r < 0)
        return r;
    k = client_new(net, opts, &uri, tls);
    ws_init(k->ws, net, &SIDE, k, events, arg);
    set_deadline(k);
    *ret = k->ws;
    resolve(k);
    return 0;
}
