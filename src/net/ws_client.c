/*
 * The client side of a WebSocket, on libwebsockets' own client: resolving, connecting, TLS, the
 * handshake and the frames are its; the queue, the bounds and the life are ours.
 *
 * Traps it steps around: lws_write masks its buffer in place and writes in front of it (each
 * message is a copy with room); WRITEABLE comes although a part of the last write still waits;
 * names would be resolved on the loop (libuv's workers do it); redirects and http_proxy would be
 * followed.
 */
#include <arpa/inet.h>

#include "base/str.h"
#include "net/lws_protocols.h"
#include "net/tls.h"
#include "net/uri.h"
#include "net/ws_internal.h"

#define CONNECT_MSEC 10000
#define ADDRESSES_MAX 8
/* Larger messages go out in several frames, so that libwebsockets never keeps more than one. */
#define PIECE_MAX ((size_t)64 << 10)
/* LWS_WRITE_CLOSE stands in a private header of libwebsockets, with the same value since 3.0. */
#define WRITE_CLOSE ((enum lws_write_protocol)4)

struct out {
    struct list link;
    enum frame_op op;
    size_t len, at;
    uint8_t room[LWS_PRE];
    uint8_t data[];
};

struct ws_client {
    struct ws *ws;
    struct lws *wsi;
    struct lws_vhost *vhost;
    struct uri uri;
    char *path, *token;
    char addresses[ADDRESSES_MAX][46];
    unsigned address_count, address_at;
    struct resolving *resolving;
    struct list queue; /* of out */
    size_t queued;
    struct buf message;
    bool closing;  /* our close frame is queued or out */
    bool dropping; /* callbacks say nothing new */
    unsigned got_code;
    char got_text[WS_REASON_MAX + 1];
    struct net_timer timer; /* until the handshake is done, then for what a callback may not end */
    uint64_t deadline_msec; /* of the handshake, uv_now */
    bool failed;            /* this attempt */
    unsigned status;        /* with which the handshake was refused */
    char error[160];
};

struct resolving {
    uv_getaddrinfo_t request;
    struct ws_client *client; /* NULL: it did not wait */
};

static void out_free(struct out *o)
{
    list_remove(&o->link);
    free(o);
}

static void side_send(struct ws *ws, enum frame_op op, const void *data, size_t len)
{
    struct ws_client *k = ws->impl;
    struct out *o = xcalloc(1, sizeof(*o) + len);

    o->op = op;
    o->len = len;
    if (len)
        memcpy(o->data, data, len);
    list_init(&o->link);
    list_append(&k->queue, &o->link);
    k->queued += len;
    if (k->wsi)
        lws_callback_on_writable(k->wsi);
}

static size_t side_queued(const struct ws *ws)
{
    return ((const struct ws_client *)ws->impl)->queued;
}

static void side_pause(struct ws *ws, bool pause)
{
    struct ws_client *k = ws->impl;

    if (!k->wsi)
        return;
    lws_rx_flow_control(k->wsi, !pause);
    /* What was read already makes no socket readable: have the loop look for it. */
    if (!pause)
        lws_cancel_service(lws_get_context(k->wsi));
}

/* The close frame is a message of the queue. Asked in its own way (lws_close_reason), Debian's
 * libwebsockets 4.1.6 drops a connection on libuv before that frame is out. */
static void side_close(struct ws *ws, unsigned code, const char *text)
{
    struct ws_client *k = ws->impl;
    uint8_t payload[2 + WS_REASON_MAX];

    if (k->closing)
        return;
    k->closing = true;
    side_send(ws, FRAME_CLOSE, payload, frame_format_close(code, text, payload));
}

/* libwebsockets first tries to say good-bye, and gives up at once when asked again. */
static void kill_wsi(struct ws_client *k)
{
    k->dropping = true;
    for (int i = 0; i < 2 && k->wsi; i++)
        lws_set_timeout(k->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
    if (k->wsi)
        lws_set_opaque_user_data(k->wsi, NULL);
    k->wsi = NULL;
}

static void side_drop(struct ws *ws)
{
    struct ws_client *k = ws->impl;

    kill_wsi(k);
    net_timer_stop(&k->timer);
    if (k->resolving) {
        k->resolving->client = NULL;
        uv_cancel((uv_req_t *)&k->resolving->request);
    }
    list_for_each_safe (it, &k->queue)
        out_free(LIST_ENTRY(it, struct out, link));
    buf_done(&k->message);
    free(k->path);
    free(k->token);
    free(k);
}

static const struct ws_side SIDE = {side_send, side_queued, side_pause, side_close, side_drop};

/* This attempt came to nothing: go on in the next turn, outside of libwebsockets. */
static void attempt_failed(struct ws_client *k)
{
    k->failed = true;
    net_timer_set(k->ws->net, &k->timer, 0);
}

static bool connect_next(struct ws_client *k)
{
    struct lws_client_connect_info info = {0};
    char host[sizeof(k->uri.host) + 10];
    struct lws *wsi;

    snprintf(host, sizeof(host), strchr(k->uri.host, ':') ? "[%s]:%u" : "%s:%u", k->uri.host,
        k->uri.port);
    info.context = k->ws->net->contexts[k->uri.tls ? NET_TLS : NET_PLAIN];
    info.vhost = k->vhost;
    info.address = k->addresses[k->address_at++];
    info.port = k->uri.port;
    info.path = k->path;
    info.host = host;
    info.alpn = "http/1.1";
    info.local_protocol_name = NET_PROTOCOL_WS;
    info.opaque_user_data = k;
    info.ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT;
    if (k->uri.tls) /* the names are checked by the vhost's OpenSSL context */
        info.ssl_connection |= LCCSCF_USE_SSL | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK;
    info.pwsi = &k->wsi;
    wsi = lws_client_connect_via_info(&info);
    if (!wsi)
        k->wsi = NULL;
    return wsi;
}

static void set_deadline(struct ws_client *k)
{
    uint64_t now = uv_now(k->ws->net->loop);

    net_timer_set(k->ws->net, &k->timer, k->deadline_msec > now ? k->deadline_msec - now : 1);
}

static void try_addresses(struct ws_client *k)
{
    while (k->address_at < k->address_count) {
        if (connect_next(k))
            return;
    }
    if (!k->error[0])
        snprintf(k->error, sizeof(k->error), "cannot connect to %.60s port %u", k->uri.host,
            k->uri.port);
    attempt_failed(k);
}

static void timer_rang(struct net_timer *timer)
{
    struct ws_client *k = CONTAINER_OF(timer, struct ws_client, timer);

    if (!k->failed) {
        ws_done(k->ws, 1006, 0, "no connection and handshake in time");
    } else if (k->status || k->address_at == k->address_count) {
        ws_done(k->ws, 1006, k->status, k->error);
    } else {
        k->failed = false;
        set_deadline(k);
        try_addresses(k);
    }
}

static void add_addresses(struct ws_client *k, const struct addrinfo *list)
{
    for (; list && k->address_count < ADDRESSES_MAX; list = list->ai_next) {
        char *to = k->addresses[k->address_count];
        int r = list->ai_family == AF_INET
            ? uv_ip4_name((const struct sockaddr_in *)list->ai_addr, to, 46)
            : uv_ip6_name((const struct sockaddr_in6 *)list->ai_addr, to, 46);

        k->address_count += r == 0;
    }
}

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct resolving *resolving = CONTAINER_OF(request, struct resolving, request);
    struct ws_client *k = resolving->client;

    free(resolving);
    if (k) {
        k->resolving = NULL;
        if (status < 0) {
            snprintf(k->error, sizeof(k->error), "cannot resolve '%.60s': %s", k->uri.host,
                uv_strerror(status));
            attempt_failed(k);
        } else {
            add_addresses(k, list);
            try_addresses(k);
        }
    }
    uv_freeaddrinfo(list);
}

static void resolve(struct ws_client *k)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct in6_addr binary;

    if (inet_pton(AF_INET, k->uri.host, &binary) == 1 ||
        inet_pton(AF_INET6, k->uri.host, &binary) == 1) {
        STR_SET(k->addresses[0], k->uri.host);
        k->address_count = 1;
        try_addresses(k);
        return;
    }
    k->resolving = xnew(struct resolving);
    k->resolving->client = k;
    if (uv_getaddrinfo(
            k->ws->net->loop, &k->resolving->request, resolved, k->uri.host, NULL, &hints) < 0) {
        free(TAKE_PTR(k->resolving));
        snprintf(k->error, sizeof(k->error), "cannot resolve '%.60s'", k->uri.host);
        attempt_failed(k);
    }
}

int ws_connect(struct net *net, const struct ws_connect_opts *opts, const struct ws_events *events,
    void *arg, struct ws **ret, struct err *err)
{
    uint64_t msec = opts->timeout_usec ? MAX_OF(opts->timeout_usec / 1000, UINT64_C(1))
                                       : CONNECT_MSEC;
    struct lws_vhost *vhost;
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
    r = uri.tls ? tls_client_vhost(
                      net, uri.host, opts->ca_path, opts->cert_path, opts->key_path, &vhost, err)
                : net_plain_vhost(net, &vhost, err);
    if (r < 0)
        return r;
    k = xnew(struct ws_client);
    k->ws = xnew(struct ws);
    k->vhost = vhost;
    k->uri = uri;
    k->path = xstrdup(uri.path);
    k->uri.path = NULL;
    k->token = xstrdup(opts->token);
    k->message = BUF_INIT(net->limits.ws_message_max);
    list_init(&k->queue);
    net_timer_init(&k->timer, timer_rang);
    ws_init(k->ws, net, &SIDE, k, events, arg);
    k->deadline_msec = uv_now(net->loop) + msec;
    set_deadline(k);
    *ret = k->ws;
    resolve(k);
    return 0;
}

static int add_token(struct ws_client *k, unsigned char **at, unsigned char *end)
{
    _cleanup_free_ char *value = NULL;

    if (!k->token)
        return 0;
    value = xasprintf("Bearer %s", k->token);
    return lws_add_http_header_by_name(k->wsi,
        (const unsigned char *)"authorization:", (const unsigned char *)value, (int)strlen(value),
        at, end);
}

static void established(struct ws_client *k)
{
    net_timer_stop(&k->timer);
    if (k->ws->state != WS_CONNECTING)
        return;
    ws_open(k->ws);
    if (k->ws->paused)
        lws_rx_flow_control(k->wsi, 0);
    if (!list_is_empty(&k->queue))
        lws_callback_on_writable(k->wsi);
    if (k->ws->events->opened)
        k->ws->events->opened(k->ws, k->ws->arg);
}

/* The peer broke a rule: tell it, and end with that. */
static int fail(struct ws_client *k, unsigned code, const char *text)
{
    k->got_code = code;
    snprintf(k->got_text, sizeof(k->got_text), "%s", text);
    ws_close(k->ws, code, text);
    return 0;
}

static int received(struct ws_client *k, const void *data, size_t len)
{
    struct ws *ws = k->ws;
    bool binary = lws_frame_is_binary(k->wsi);

    ws_heard(ws);
    if (ws->state != WS_OPEN)
        return 0;
    if (buf_append(&k->message, data, len) < 0 ||
        lws_remaining_packet_payload(k->wsi) > k->message.max - k->message.len)
        return fail(k, 1009, "a message that is too long");
    if (lws_remaining_packet_payload(k->wsi) || !lws_is_final_fragment(k->wsi))
        return 0;
    if (!binary && !frame_is_utf8(k->message.data, k->message.len))
        return fail(k, 1007, "a text message that is not UTF-8");
    ws->events->message(ws, k->message.data, k->message.len, binary, ws->arg);
    k->message.len = 0;
    if (k->message.cap > NET_QUEUE_LOW)
        buf_done(&k->message);
    return 0;
}

static enum lws_write_protocol write_kind(const struct out *o, size_t len)
{
    int kind;

    if (o->op == FRAME_CLOSE)
        return WRITE_CLOSE;
    if (o->op == FRAME_PING)
        return LWS_WRITE_PING;
    if (o->op == FRAME_PONG)
        return LWS_WRITE_PONG;
    kind = o->at                ? LWS_WRITE_CONTINUATION
        : o->op == FRAME_BINARY ? LWS_WRITE_BINARY
                                : LWS_WRITE_TEXT;
    if (o->at + len < o->len)
        kind |= LWS_WRITE_NO_FIN;
    return (enum lws_write_protocol)kind;
}

/* One frame of the first message. In front of a later piece the bytes are sent already, so that
 * libwebsockets may write its head over them. */
static int write_piece(struct ws_client *k)
{
    struct out *o = LIST_ENTRY(k->queue.next, struct out, link);
    size_t len = MIN_OF(o->len - o->at, PIECE_MAX);

    if (lws_write(k->wsi, o->data + o->at, len, write_kind(o, len)) < 0)
        return -1;
    o->at += len;
    k->queued -= len;
    if (o->at == o->len)
        out_free(o);
    return 0;
}

static int writable(struct ws_client *k)
{
    if (list_is_empty(&k->queue))
        return 0;
    if (!lws_partial_buffered(k->wsi) && write_piece(k) < 0)
        return -1;
    if (!list_is_empty(&k->queue))
        lws_callback_on_writable(k->wsi);
    ws_written(k->ws);
    return 0;
}

static void peer_closes(struct ws_client *k, const uint8_t *data, size_t len)
{
    if (k->got_code)
        return;
    k->got_code = len >= 2 ? (unsigned)data[0] << 8 | data[1] : 1005;
    if (len > 2 && frame_is_utf8(data + 2, len - 2))
        snprintf(k->got_text, sizeof(k->got_text), "%.*s", (int)(len - 2), data + 2);
}

static void wsi_gone(struct ws_client *k)
{
    lws_set_opaque_user_data(k->wsi, NULL);
    k->wsi = NULL;
}

static void wsi_closed(struct ws_client *k)
{
    wsi_gone(k);
    if (k->dropping)
        return;
    if (k->got_code)
        ws_done(k->ws, k->got_code, 0, k->got_text);
    else
        ws_done(k->ws, 1006, 0, "the connection was lost");
}

static void connect_failed(struct ws_client *k, const char *text, size_t len)
{
    unsigned status = lws_http_client_http_response(k->wsi);

    wsi_gone(k);
    if (k->dropping || k->ws->state != WS_CONNECTING)
        return;
    if (status >= 200 && status <= 599) {
        k->status = status;
        snprintf(
            k->error, sizeof(k->error), "the server refused the handshake with status %u", status);
    } else {
        snprintf(k->error, sizeof(k->error), "cannot connect to %.60s port %u: %.*s", k->uri.host,
            k->uri.port, (int)MIN_OF(len, sizeof(k->error)), text ? text : "");
    }
    attempt_failed(k);
}

int ws_client_callback(
    struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    struct ws_client *k;

    switch (reason) {
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
    case LWS_CALLBACK_CLIENT_RECEIVE:
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
    case LWS_CALLBACK_CLIENT_WRITEABLE:
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
    case LWS_CALLBACK_CLIENT_CLOSED:
    case LWS_CALLBACK_CLOSED_CLIENT_HTTP:
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        k = lws_get_opaque_user_data(wsi);
        break;
    default:
        return 0;
    }
    if (!k || k->wsi != wsi)
        return 0;
    switch (reason) {
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
        return add_token(k, in, *(unsigned char **)in + len);
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        established(k);
        return 0;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        return received(k, in, len);
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
        ws_heard(k->ws);
        return 0;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return writable(k);
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        peer_closes(k, in, len);
        return 0;
    case LWS_CALLBACK_CLIENT_CLOSED:
        wsi_closed(k);
        return 0;
    default:
        connect_failed(k, reason == LWS_CALLBACK_CLIENT_CONNECTION_ERROR ? in : NULL, len);
        return 0;
    }
}
