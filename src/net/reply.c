/* Answers: whole, streamed, from a file, or the change to a WebSocket. */
#include <inttypes.h>

#include "base/str.h"
#include "net/server_internal.h"
#include "net/ws_internal.h"
#include "net/ws_key.h"

#define REPLY_HEAD_MAX (SERVER_EXTRA_MAX + 1024)
/* Bodies up to this go out in one write with their head. */
#define REPLY_JOIN_MAX ((size_t)8 << 10)

void request_add_header(struct request *rq, const char *name, const char *value)
{
    if (!value || strpbrk(value, "\r\n"))
        return;
    if (strcasecmp(name, "Cache-Control") == 0)
        rq->cached = true;
    buf_printf(&rq->extra, "%s: %s\r\n", name, value);
}

/* Can the connection take another request after this one? What of the body is not here yet would
 * have to be read and thrown away: closing is cheaper, and says so. */
static bool can_keep(struct request *rq)
{
    return rq->head.keep_alive && body_drop_rest(rq) && !rq->sc->net->closing;
}

static void begin_reply(
    struct request *rq, unsigned status, const char *content_type, struct buf *head)
{
    assert(rq->reply == REPLY_NONE);
    rq->keep = can_keep(rq);
    rq->no_body = status == 204 || status == 304 || str_eq(rq->head.method, "HEAD");
    buf_printf(head, "HTTP/1.1 %u %s\r\n", status, http1_reason(status));
    if (content_type && status != 204)
        buf_printf(head, "Content-Type: %s\r\n", content_type);
    buf_puts(head, "X-Content-Type-Options: nosniff\r\n");
    if (!rq->cached)
        buf_puts(head, "Cache-Control: no-store\r\n");
    if (rq->extra.len)
        buf_append(head, rq->extra.data, rq->extra.len);
}

static void end_head(struct request *rq, struct buf *head)
{
    if (!rq->keep)
        buf_puts(head, "Connection: close\r\n");
    else if (rq->head.minor == 0)
        buf_puts(head, "Connection: keep-alive\r\n");
    buf_puts(head, "\r\n");
}

static void reply_done(struct request *rq)
{
    rq->reply = REPLY_DONE;
    server_later(rq->sc);
}

void request_reply(
    struct request *rq, unsigned status, const char *content_type, const void *body, size_t len)
{
    _cleanup_(buf_done) struct buf head = BUF_INIT(REPLY_HEAD_MAX + REPLY_JOIN_MAX);

    begin_reply(rq, status, content_type, &head);
    if (status != 204)
        buf_printf(&head, "Content-Length: %zu\r\n", len);
    end_head(rq, &head);
    if (rq->no_body)
        len = 0;
    if (len <= REPLY_JOIN_MAX) {
        buf_append(&head, body, len);
        len = 0;
    }
    conn_send(rq->sc->conn, head.data, head.len);
    if (len)
        conn_send(rq->sc->conn, body, len);
    reply_done(rq);
}

void request_reply_start(struct request *rq, unsigned status, const char *content_type,
    void (*drained)(struct request *rq, void *arg), void *arg)
{
    _cleanup_(buf_done) struct buf head = BUF_INIT(REPLY_HEAD_MAX);

    begin_reply(rq, status, content_type, &head);
    rq->chunked = rq->head.minor == 1;
    if (!rq->chunked) /* the end of the connection is the end of the answer */
        rq->keep = false;
    else if (!rq->no_body)
        buf_puts(&head, "Transfer-Encoding: chunked\r\n");
    end_head(rq, &head);
    rq->drained = drained;
    rq->drained_arg = arg;
    rq->reply = REPLY_STARTED;
    conn_send(rq->sc->conn, head.data, head.len);
    server_later(rq->sc);
}

/* A reader that is this slow is cut; gone is called for it in the next turn. */
static size_t check_queue(struct request *rq, size_t queued)
{
    struct server_conn *sc = rq->sc;

    if (queued > NET_QUEUE_LOW)
        rq->above_low = true;
    if (queued > sc->net->limits.ws_queue_max)
        conn_abort(sc->conn);
    return queued;
}

size_t request_write(struct request *rq, const void *data, size_t len)
{
    struct conn *c = rq->sc->conn;
    char size[24];
    size_t queued;

    assert(rq->reply == REPLY_STARTED);
    if (!c)
        return 0;
    if (!len || rq->no_body)
        return (size_t)conn_queued(c);
    if (!rq->chunked)
        return check_queue(rq, conn_send(c, data, len));
    snprintf(size, sizeof(size), "%zx\r\n", len);
    if (len <= REPLY_JOIN_MAX) {
        _cleanup_(buf_done) struct buf chunk = BUF_INIT(REPLY_JOIN_MAX + sizeof(size) + 2);

        buf_puts(&chunk, size);
        buf_append(&chunk, data, len);
        buf_puts(&chunk, "\r\n");
        queued = conn_send(c, chunk.data, chunk.len);
    } else {
        conn_send(c, size, strlen(size));
        conn_send(c, data, len);
        queued = conn_send(c, "\r\n", 2);
    }
    return check_queue(rq, queued);
}

void request_end(struct request *rq)
{
    assert(rq->reply == REPLY_STARTED);
    if (!rq->sc->conn)
        return;
    if (rq->chunked && !rq->no_body)
        conn_send(rq->sc->conn, "0\r\n\r\n", 5);
    reply_done(rq);
}

void request_reply_file(struct request *rq, const char *content_type, int fd, uint64_t offset,
    uint64_t len, uint64_t total)
{
    _cleanup_(buf_done) struct buf head = BUF_INIT(REPLY_HEAD_MAX);
    bool part = offset || len != total;

    begin_reply(rq, part ? 206 : 200, content_type, &head);
    buf_printf(&head, "Content-Length: %" PRIu64 "\r\n", len);
    if (part)
        buf_printf(&head, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", offset,
            offset + len - 1, total);
    end_head(rq, &head);
    conn_send(rq->sc->conn, head.data, head.len);
    conn_send_file(rq->sc->conn, fd, offset, rq->no_body ? 0 : len);
    reply_done(rq);
}

struct ws *request_upgrade(struct request *rq, const struct ws_events *events, void *arg)
{
    _cleanup_(buf_done) struct buf head = BUF_INIT(REPLY_HEAD_MAX);
    struct server_conn *sc = rq->sc;
    char accept[WS_ACCEPT_LEN + 1];
    struct ws *ws;

    assert(rq->head.ws_key && rq->reply == REPLY_NONE);
    ws_key_accept(rq->head.ws_key, accept); /* RFC 6455 section 4.2.2 */
    buf_printf(&head,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\n",
        accept);
    if (rq->extra.len)
        buf_append(&head, rq->extra.data, rq->extra.len);
    buf_puts(&head, "\r\n");
    conn_send(sc->conn, head.data, head.len);
    if (sc->paused)
        conn_pause(sc->conn, false);
    ws = ws_accept(
        TAKE_PTR(sc->conn), sc->in.data + sc->in_used, sc->in.len - sc->in_used, events, arg);
    rq->reply = REPLY_DONE;
    server_later(sc);
    return ws;
}
