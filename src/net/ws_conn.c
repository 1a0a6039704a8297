/*
 * An open WebSocket, of either side: frames on a struct conn. Strict where RFC 6455 is: a client's
 * frames must be masked, a server's must not, text must be UTF-8, messages have a maximum.
 */
#include "net/conn.h"
#include "net/ws_internal.h"
#include "net/ws_key.h"

struct ws_conn {
    struct ws *ws;
    struct conn *conn;
    bool is_client;
    struct buf stash; /* received while paused */
    uint8_t head[FRAME_HEAD_MAX];
    unsigned head_len;
    bool in_frame; /* frame is known, at bytes of its payload were taken */
    struct frame frame;
    uint64_t at;
    uint8_t control[FRAME_CONTROL_MAX];
    struct buf message;
    enum frame_op message_op; /* FRAME_CONTINUE: none has begun */
    struct net_timer resume;
};

/* The head and the first bytes in one piece, and the rest in pieces where it has to be masked. */
static void send_masked(struct conn *c, enum frame_op op, const uint8_t *data, size_t len)
{
    uint8_t piece[NET_READ_MAX], mask[4];
    size_t head, at = 0;

    ws_random(mask, sizeof(mask)); /* RFC 6455 section 5.3: a new one for each frame */
    head = frame_format(op, true, len, mask, piece);
    do {
        size_t n = MIN_OF(len - at, sizeof(piece) - head);

        if (n)
            memcpy(piece + head, data + at, n);
        frame_mask(piece + head, n, mask, at);
        conn_send(c, piece, head + n);
        at += n;
        head = 0;
    } while (at < len);
}

static void send_plain(struct conn *c, enum frame_op op, const void *data, size_t len)
{
    uint8_t joined[512];
    size_t n = frame_format(op, true, len, NULL, joined);

    if (n + len <= sizeof(joined)) {
        if (len)
            memcpy(joined + n, data, len);
        conn_send(c, joined, n + len);
        return;
    }
    conn_send(c, joined, n);
    conn_send(c, data, len);
}

static void send_frame(struct ws *ws, enum frame_op op, const void *data, size_t len)
{
    struct ws_conn *s = ws->impl;

    if (s->is_client)
        send_masked(s->conn, op, data, len);
    else
        send_plain(s->conn, op, data, len);
}

static size_t side_queued(const struct ws *ws)
{
    return (size_t)conn_queued(((const struct ws_conn *)ws->impl)->conn);
}

static void side_pause(struct ws *ws, bool pause)
{
    struct ws_conn *s = ws->impl;

    conn_pause(s->conn, pause);
    if (!pause && s->stash.len)
        net_timer_set(ws->net, &s->resume, 0);
}

static void send_close(struct ws *ws, unsigned code, const char *text)
{
    uint8_t payload[FRAME_CONTROL_MAX];

    send_frame(ws, FRAME_CLOSE, payload, frame_format_close(code, text, payload));
}

static void side_drop(struct ws *ws)
{
    struct ws_conn *s = ws->impl;

    /* Whoever said good-bye is let go gently, so that the last frame is not lost. */
    if (s->conn && ws->close_code && !ws->too_slow)
        conn_close(s->conn);
    else if (s->conn)
        conn_kill(s->conn);
    net_timer_stop(&s->resume);
    buf_done(&s->stash);
    buf_done(&s->message);
    free(s);
}

static const struct ws_side SIDE = {send_frame, side_queued, side_pause, send_close, side_drop};

/* The peer broke a rule: tell it, and end. ws is gone afterwards. */
static void fail(struct ws_conn *s, unsigned code, const char *text)
{
    struct ws *ws = s->ws;

    if (!ws->close_code)
        send_close(ws, code, text);
    ws->close_code = code;
    ws_done(ws, code, 0, text);
}

static void got_close(struct ws_conn *s)
{
    struct ws *ws = s->ws;
    char text[WS_REASON_MAX + 1] = "";
    unsigned code = 1005; /* a close frame without a code */

    if (s->frame.len == 1) {
        fail(s, 1002, "a close frame with half a code");
        return;
    }
    if (s->frame.len >= 2) {
        code = (unsigned)s->control[0] << 8 | s->control[1];
        memcpy(text, s->control + 2, s->frame.len - 2);
        if (!frame_close_code_is_valid(code) || !frame_is_utf8(text, s->frame.len - 2)) {
            fail(s, 1002, "a close frame that is not proper");
            return;
        }
    }
    if (!ws->close_code)
        send_close(ws, code, "");
    ws->close_code = code;
    ws_done(ws, code, 0, text);
}

/* True when ws lives on. */
static bool got_control(struct ws_conn *s)
{
    if (s->frame.op == FRAME_CLOSE) {
        got_close(s);
        return false;
    }
    /* A peer that pings and does not read is cut by the bound of the queue. */
    if (s->frame.op == FRAME_PING && s->ws->state == WS_OPEN) {
        if (side_queued(s->ws) <= s->ws->net->limits.ws_queue_max)
            send_frame(s->ws, FRAME_PONG, s->control, s->frame.len);
    }
    return true;
}

static void give_message(struct ws_conn *s)
{
    struct ws *ws = s->ws;
    struct buf message = s->message;
    bool binary = s->message_op == FRAME_BINARY;

    s->message = BUF_INIT(s->message.max);
    s->message_op = FRAME_CONTINUE;
    if (ws->state == WS_OPEN)
        ws->events->message(ws, message.data ? message.data : "", message.len, binary, ws->arg);
    if (message.cap <= NET_QUEUE_LOW) { /* used again; large ones are not kept */
        s->message = message;
        s->message.len = 0;
    } else {
        buf_done(&message);
    }
}

static bool end_frame(struct ws_conn *s)
{
    s->in_frame = false;
    if (s->frame.op >= FRAME_CLOSE)
        return got_control(s);
    if (!s->frame.fin)
        return true;
    if (s->message_op == FRAME_TEXT && !frame_is_utf8(s->message.data, s->message.len)) {
        fail(s, 1007, "a text message that is not UTF-8");
        return false;
    }
    give_message(s);
    return true;
}

static bool begin_frame(struct ws_conn *s)
{
    const struct frame *f = &s->frame;

    if (f->masked == s->is_client) {
        fail(s, 1002, f->masked ? "a frame with a mask" : "a frame without a mask");
        return false;
    }
    if (f->op < FRAME_CLOSE) {
        if ((f->op == FRAME_CONTINUE) != (s->message_op != FRAME_CONTINUE)) {
            fail(s, 1002, "a message inside of another, or one that never began");
            return false;
        }
        if (f->len > s->message.max - s->message.len) {
            fail(s, 1009, "a message that is too long");
            return false;
        }
        if (f->op != FRAME_CONTINUE)
            s->message_op = f->op;
    }
    s->in_frame = true;
    s->at = 0;
    return f->len ? true : end_frame(s);
}

/* Returns the bytes used, or -1 when ws is gone. */
static ssize_t take_head(struct ws_conn *s, const uint8_t *data, size_t len)
{
    size_t n = MIN_OF(len, FRAME_HEAD_MAX - s->head_len);
    int r;

    memcpy(s->head + s->head_len, data, n);
    r = frame_parse(s->head, s->head_len + n, &s->frame);
    if (r < 0) {
        fail(s, 1002, "a frame that is not proper");
        return -1;
    }
    if (r == 0) {
        s->head_len += (unsigned)n;
        return (ssize_t)n;
    }
    n = (size_t)r - s->head_len;
    s->head_len = 0;
    return begin_frame(s) ? (ssize_t)n : -1;
}

static ssize_t take_payload(struct ws_conn *s, const uint8_t *data, size_t len)
{
    size_t n = (size_t)MIN_OF((uint64_t)len, s->frame.len - s->at);
    uint8_t *to;

    if (s->frame.op >= FRAME_CLOSE) {
        to = s->control + s->at;
        memcpy(to, data, n);
    } else {
        buf_append(&s->message, data, n); /* fits: begin_frame looked */
        to = (uint8_t *)s->message.data + s->message.len - n;
    }
    if (s->frame.masked)
        frame_mask(to, n, s->frame.mask, s->at);
    s->at += n;
    if (s->at == s->frame.len && !end_frame(s))
        return -1;
    return (ssize_t)n;
}

/* Returns the bytes used: fewer than len when a callback paused; -1 when ws is gone. */
static ssize_t take(struct ws_conn *s, const uint8_t *data, size_t len)
{
    size_t used = 0;

    while (used < len && !(s->ws->paused && s->ws->state == WS_OPEN)) {
        ssize_t n = s->in_frame ? take_payload(s, data + used, len - used)
                                : take_head(s, data + used, len - used);

        if (n < 0)
            return -1;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static void conn_data(struct conn *c, const char *data, size_t len, void *owner)
{
    struct ws_conn *s = owner;
    ssize_t used = 0;

    ws_heard(s->ws);
    if (!s->stash.len)
        used = take(s, (const uint8_t *)data, len);
    if (used >= 0 && (size_t)used < len) {
        if (buf_append(&s->stash, data + used, len - (size_t)used) < 0)
            fail(s, 1011, "more was received than a paused connection holds");
        else if (!s->ws->paused)
            net_timer_set(s->ws->net, &s->resume, 0);
    }
}

static void resume_rang(struct net_timer *timer)
{
    struct ws_conn *s = CONTAINER_OF(timer, struct ws_conn, resume);
    struct buf stash = s->stash;
    ssize_t used;

    s->stash = BUF_INIT(stash.max);
    used = take(s, (const uint8_t *)stash.data, stash.len);
    if (used < 0) {
        buf_done(&stash);
        return;
    }
    buf_consume(&stash, (size_t)used);
    s->stash = stash;
    ws_written(s->ws);
}

static void conn_written(struct conn *c, void *owner)
{
    ws_written(((struct ws_conn *)owner)->ws);
}

static void conn_closed(struct conn *c, void *owner)
{
    struct ws_conn *s = owner;

    s->conn = NULL;
    ws_done(s->ws, 1006, 0, "the connection was lost");
}

static const struct conn_events EVENTS = {conn_data, conn_written, conn_closed};

void ws_attach(struct ws *ws, struct conn *c, bool is_client, const void *early, size_t early_len)
{
    struct ws_conn *s = xnew(struct ws_conn);

    s->ws = ws;
    s->conn = c;
    s->is_client = is_client;
    s->message = BUF_INIT(ws->net->limits.ws_message_max);
    s->stash = BUF_INIT(16 * NET_READ_MAX);
    net_timer_init(&s->resume, resume_rang);
    ws->side = &SIDE;
    ws->impl = s;
    conn_set_owner(c, &EVENTS, s);
    if (ws->paused)
        conn_pause(c, true);
    if (early_len)
        buf_append(&s->stash, early, early_len); /* fits: it came with one head */
    /* What was sent too early may go out at once: whoever waits for that is told then. */
    if (early_len || ws->above_low)
        net_timer_set(ws->net, &s->resume, 0);
}

struct ws *ws_accept(
    struct conn *c, const void *early, size_t early_len, const struct ws_events *events, void *arg)
{
    struct ws *ws = xnew(struct ws);

    ws_init(ws, conn_net(c), NULL, NULL, events, arg);
    ws_attach(ws, c, false, early, early_len);
    ws_open(ws);
    return ws;
}
