/*
 * Requests on accepted connections: one at a time, in order, each with its life. Owns struct
 * server_conn and struct request.
 *
 * server_pump() is the only place where things move: bytes become a head, a head a call of the
 * handler, a finished answer the end of the request and room for the next. The calls of server.h
 * only note what is wanted and have it run again, in the next turn when they come from outside, so
 * that no callback ever runs inside a call of its owner.
 */
#include "net/server.h"

#include "base/str.h"
#include "net/server_internal.h"
#include "net/uri.h"

/* Bytes kept that nobody asked for yet, before reading stops. */
#define IN_HIGH ((size_t)32 << 10)
/* A body that comes slower than this many bytes in limits.idle_usec is given up. */
#define BODY_STEP 4096

static void server_pump(struct server_conn *sc);

static void request_free(struct request *rq)
{
    map_done(&rq->params, free);
    buf_done(&rq->memory);
    buf_done(&rq->extra);
    free(rq->text);
    free(rq);
}

static void server_conn_free(struct server_conn *sc)
{
    if (sc->rq)
        request_free(sc->rq);
    net_timer_stop(&sc->deadline);
    net_timer_stop(&sc->soon);
    buf_done(&sc->in);
    free(sc);
}

static void set_deadline(struct server_conn *sc)
{
    net_timer_set(sc->net, &sc->deadline, sc->net->limits.idle_usec / 1000);
}

void server_later(struct server_conn *sc)
{
    if (!sc->pumping)
        net_timer_set(sc->net, &sc->soon, 0);
}

static void soon_rang(struct net_timer *timer)
{
    server_pump(CONTAINER_OF(timer, struct server_conn, soon));
}

/* A request that was only half there, or none at all. */
static struct request *request_new(struct server_conn *sc)
{
    struct request *rq = xnew(struct request);

    rq->sc = sc;
    rq->memory = BUF_INIT(0);
    rq->extra = BUF_INIT(SERVER_EXTRA_MAX);
    map_init(&rq->params);
    rq->body.state = CHUNK_DONE;
    sc->rq = rq;
    return rq;
}

/* The codes of docs/openapi.yaml for what is refused here. */
static const char *code_of(unsigned status)
{
    /* clang-format off */
    static const struct {
        unsigned status;
        const char *code;
    } table[] = {
        { 400, "bad_request" },
        { 408, "timeout" },
        { 413, "too_large" },
        { 431, "head_too_large" },
        { 501, "not_implemented" },
        { 505, "http_version" },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return table[i].code;
    return "internal";
}

void server_refuse(struct request *rq, unsigned status, const char *message)
{
    const char *code = code_of(status);
    _cleanup_free_ char *body = NULL;

    /* The messages are ours: nothing of the request stands in them that JSON would mind. */
    body = xasprintf("{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}\n", code, message);
    rq->head.keep_alive = false;
    request_reply(rq, status, "application/json", body, strlen(body));
}

static int read_head(
    struct request *rq, const char *text, size_t len, unsigned *ret_status, struct err *err)
{
    char *path, *query;
    int r;

    rq->text = xcalloc(1, len + 1);
    memcpy(rq->text, text, len);
    r = http1_parse_head(rq->text, len, &rq->head, ret_status, err);
    if (r < 0)
        return r;
    r = uri_split(rq->head.target, &path, &query, err);
    if (r < 0) {
        *ret_status = 400;
        return r;
    }
    rq->path = path;
    rq->query = query;
    http1_body_init(&rq->body, &rq->head);
    return 0;
}

void server_in_drop(struct server_conn *sc, size_t len)
{
    sc->in_used += len;
    if (sc->in_used == sc->in.len)
        sc->in_used = sc->in.len = 0;
}

static void start_request(struct server_conn *sc, size_t len)
{
    struct request *rq = request_new(sc);
    struct err err = ERR_INIT;
    unsigned status;

    if (read_head(rq, sc->in.data + sc->in_used, len, &status, &err) < 0) {
        server_refuse(rq, status, err_text(&err));
        return;
    }
    server_in_drop(sc, len);
    sc->scanned = 0;
    sc->body_mark = 0;
    rq->has_cert = conn_cert(sc->conn, &rq->cert);
    net_timer_stop(&sc->deadline);
    sc->handler.fn(rq, sc->handler.arg);
}

static void refuse_head(struct server_conn *sc, int r)
{
    if (r == -EMSGSIZE)
        server_refuse(request_new(sc), 431, "the request head is too long");
    else if (r == -EPROTO)
        server_refuse(request_new(sc), 400, "this is no HTTP request; this port has no TLS");
    else
        server_refuse(request_new(sc), 400, "a line of the request head does not end with CR LF");
}

/* False when there is no whole head. */
static bool take_head(struct server_conn *sc)
{
    size_t left = sc->in.len - sc->in_used;
    ssize_t len;

    /* A slow reader of answers gets no further ones made. */
    if (!left || conn_queued(sc->conn) > NET_QUEUE_LOW)
        return false;
    if (!sc->scanned) /* of a request, the head must come in one time span */
        set_deadline(sc);
    len = http1_head_length(sc->in.data + sc->in_used, left, &sc->scanned);
    if (len == 0)
        return false;
    if (len < 0)
        refuse_head(sc, (int)len);
    else
        start_request(sc, (size_t)len);
    return true;
}

/* The answer is whole and out of our hands. */
static bool is_finished(const struct request *rq)
{
    return rq->reply == REPLY_DONE;
}

static void finish_request(struct server_conn *sc)
{
    struct request *rq = TAKE_PTR(sc->rq);
    bool keep = rq->keep && body_drop_rest(rq);

    request_free(rq);
    if (keep) {
        if (!sc->in.len && sc->in.cap > NET_READ_MAX) /* an idle connection keeps no large buffer */
            buf_done(&sc->in);
        set_deadline(sc);
        return;
    }
    conn_close(TAKE_PTR(sc->conn));
}

static bool step(struct server_conn *sc)
{
    if (!sc->conn)
        return false;
    if (!sc->rq)
        return take_head(sc);
    if (is_finished(sc->rq)) {
        finish_request(sc);
        return true;
    }
    return body_pump(sc->rq);
}

static void set_pause(struct server_conn *sc)
{
    bool pause = sc->in.len - sc->in_used > IN_HIGH;

    if (pause != sc->paused)
        conn_pause(sc->conn, pause);
    sc->paused = pause;
}

static bool waits_for_body(const struct request *rq)
{
    return rq->mode != BODY_UNASKED && !rq->body_given && rq->reply == REPLY_NONE;
}

static void watch_body(struct server_conn *sc)
{
    struct request *rq = sc->rq;

    if (!waits_for_body(rq)) {
        net_timer_stop(&sc->deadline);
    } else if (!sc->body_mark || rq->body_seen >= sc->body_mark + BODY_STEP) {
        sc->body_mark = rq->body_seen + 1;
        set_deadline(sc);
    }
}

static void server_pump(struct server_conn *sc)
{
    if (sc->pumping)
        return;
    sc->pumping = true;
    while (step(sc))
        ;
    sc->pumping = false;
    if (!sc->conn) {
        server_conn_free(sc);
        return;
    }
    set_pause(sc);
    if (sc->rq)
        watch_body(sc);
}

static void deadline_rang(struct net_timer *timer)
{
    struct server_conn *sc = CONTAINER_OF(timer, struct server_conn, deadline);

    if (!sc->rq && sc->in.len == sc->in_used) {
        conn_close(TAKE_PTR(sc->conn));
    } else {
        if (!sc->rq)
            request_new(sc);
        else if (!waits_for_body(sc->rq))
            return;
        server_refuse(sc->rq, 408, "the request did not come in time");
    }
    server_pump(sc);
}

static void conn_data(struct conn *c, const char *data, size_t len, void *owner)
{
    struct server_conn *sc = owner;

    if (sc->in_used) {
        buf_consume(&sc->in, sc->in_used);
        sc->in_used = 0;
    }
    if (buf_append(&sc->in, data, len) < 0) { /* cannot be: reading stops long before */
        conn_kill(c);
        return;
    }
    server_pump(sc);
}

static void conn_written(struct conn *c, void *owner)
{
    struct server_conn *sc = owner;
    struct request *rq = sc->rq;

    if (rq && rq->above_low && conn_queued(c) < NET_QUEUE_LOW) {
        rq->above_low = false;
        if (rq->reply == REPLY_STARTED && rq->drained)
            rq->drained(rq, rq->drained_arg);
    }
    if (!rq) /* an answer of before makes progress */
        set_deadline(sc);
    server_pump(sc);
}

static void conn_closed(struct conn *c, void *owner)
{
    struct server_conn *sc = owner;
    struct request *rq = sc->rq;

    sc->conn = NULL;
    sc->pumping = true; /* a call from the callback moves nothing any more */
    if (rq && rq->reply != REPLY_DONE && rq->gone) {
        rq->reply = REPLY_DONE;
        rq->gone(rq, rq->gone_arg);
    }
    server_conn_free(sc);
}

static const struct conn_events EVENTS = {conn_data, conn_written, conn_closed};

void server_accept(struct conn *c, const struct server_handler *handler)
{
    struct server_conn *sc = xnew(struct server_conn);

    sc->net = conn_net(c);
    sc->conn = c;
    sc->handler = *handler;
    sc->in = BUF_INIT(4 * IN_HIGH);
    net_timer_init(&sc->deadline, deadline_rang);
    net_timer_init(&sc->soon, soon_rang);
    conn_set_owner(c, &EVENTS, sc);
    set_deadline(sc);
}

const char *request_method(const struct request *rq)
{
    return rq->head.method;
}

const char *request_path(const struct request *rq)
{
    return rq->path;
}

const char *request_query(const struct request *rq, const char *key)
{
    struct map *params = &((struct request *)rq)->params; /* remembers, changes nothing */
    char *value = map_get(params, key);

    if (!value) {
        value = uri_query_get(rq->query, key);
        if (value)
            map_set(params, key, value);
    }
    return value;
}

const char *request_header(const struct request *rq, const char *name)
{
    return http1_header(&rq->head, name);
}

const char *request_peer(const struct request *rq)
{
    return conn_peer(rq->sc->conn)->address;
}

uint16_t request_local_port(const struct request *rq)
{
    return conn_peer(rq->sc->conn)->local_port;
}

const struct cert_info *request_cert(const struct request *rq)
{
    return rq->has_cert ? &rq->cert : NULL;
}

bool request_wants_upgrade(const struct request *rq)
{
    return rq->head.ws_key;
}

void request_set_data(struct request *rq, void *data)
{
    rq->data = data;
}

void *request_data(const struct request *rq)
{
    return rq->data;
}

void request_on_gone(struct request *rq, void (*fn)(struct request *rq, void *arg), void *arg)
{
    rq->gone = fn;
    rq->gone_arg = arg;
}
