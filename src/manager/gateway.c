/*
 * The gateway joins two ends that both dial in: the person's WebSocket (exec, tcp) or streamed
 * reply (logs), and the WebSocket of the agent that was told to open the stream. Messages pass
 * through unchanged but for logs, which are frames on the agent's side and bytes or frames on the
 * other. Back pressure: an end whose peer has more than QUEUE_HIGH bytes waiting is not read.
 *
 * A stream ends when either end closes; the other is closed with the same word.
 */
#include "manager/gateway.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/joins.h"
#include "manager/links.h"
#include "manager/state.h"
#include "model/path.h"
#include "wire/logframe.h"

#define AGENT_WAIT_USEC (10 * USEC_PER_SEC)
#define QUEUE_HIGH (1024 * 1024)

struct stream {
    struct manager *m;
    char id[UUID_TEXT_LEN + 1];
    char container[16];
    struct ws *person;  /* exec, tcp */
    struct request *rq; /* logs */
    struct ws *agent;
    bool asked;                      /* the agent was told */
    bool replying;                   /* logs: the head of the reply is out */
    bool raw, timestamps, line_open; /* logs as bytes */
    uint64_t deadline_usec;          /* monotonic; for the agent to come */
    struct link_stream order;
    char node[NAME_MAX_LEN + 1];
    struct buf early; /* exec, tcp: what the person sent before the agent came, each message
                         with its struct early_head in front */
};

struct early_head {
    size_t len;
    bool binary;
};

#define EARLY_MAX (4 * 1024 * 1024)

static void stream_free(struct stream *st)
{
    map_remove(&st->m->streams, st->id);
    buf_done(&st->early);
    strv_free(st->order.command);
    strv_free(st->order.env);
    free(st);
}

/* Both ends are gone: nothing refers to it any more. */
static void stream_release(struct stream *st)
{
    if (!st->person && !st->rq && !st->agent)
        stream_free(st);
}

static void drop_request(struct stream *st)
{
    struct request *rq = st->rq;

    st->rq = NULL;
    if (rq)
        request_on_gone(rq, NULL, NULL);
}

/* End the person's side with an error. */
static void stream_fail(struct stream *st, const char *code, const char *message)
{
    json_t *body = api_error_json(code, message);
    _cleanup_free_ char *text = json_text(body);

    json_decref(body);
    if (st->person) {
        ws_send_text(st->person, text);
        ws_close(st->person, 1011, code);
    } else if (st->rq && !st->replying) {
        struct request *rq = st->rq;
        drop_request(st);
        request_reply(rq, 503, "application/json", text, strlen(text));
    } else if (st->rq) {
        struct request *rq = st->rq;
        drop_request(st);
        request_end(rq); /* no end frame: the reader knows it was cut */
    }
    stream_release(st);
}

/* --- the order ---------------------------------------------------------------------------- */

static void stream_order(struct stream *st)
{
    struct mnode *n = map_get(&st->m->nodes, st->node);

    st->asked = true;
    st->deadline_usec = clock_mono_usec() + AGENT_WAIT_USEC;
    if (!n || !n->link) {
        char text[200];
        snprintf(text, sizeof(text), "node %s, where %s is, is not connected now", st->node,
            st->container);
        stream_fail(st, "node_unreachable", text);
        return;
    }
    link_send(n, &(struct link_message){.type = LINK_OPEN_STREAM, .stream = st->order});
}

static struct stream *stream_new(struct manager *m, const struct container *c)
{
    struct stream *st = xnew(struct stream);

    st->m = m;
    uuid_make(st->id);
    STR_SET(st->container, c->name);
    STR_SET(st->node, c->node);
    st->early = BUF_INIT(EARLY_MAX);
    STR_SET(st->order.id, st->id);
    STR_SET(st->order.container, c->id);
    st->deadline_usec = clock_mono_usec() + AGENT_WAIT_USEC;
    map_set(&m->streams, st->id, st);
    return st;
}

/* The session's container that the query names (main1 if none); answers when there is none. */
static struct container *call_container(
    struct call *c, struct session **ret_session, struct session **ret_loaded)
{
    const char *name = request_query(c->rq, "container");
    struct container *ct;
    struct err err = ERR_INIT;

    if (session_find(c->m, c->user, c->params[0], ret_session, ret_loaded, &err) < 0) {
        reply_err(c, &err);
        return NULL;
    }
    ct = session_container(*ret_session, name ? name : "main1");
    if (!ct) {
        reply_error(c, 404, "not_found",
            "the session has %u container%s: main1%s; there is no '%.20s'", (*ret_session)->size,
            (*ret_session)->size == 1 ? "" : "s", (*ret_session)->size == 1 ? "" : " and subs",
            name);
        session_free(TAKE_PTR(*ret_loaded));
    }
    return ct;
}

static bool check_running(
    struct call *c, struct session *s, struct session *loaded, const struct container *ct)
{
    if (!loaded && ct->state == CONTAINER_RUNNING)
        return true;
    reply_error(c, 409, "wrong_state",
        "%s is not running (the session is %s%s%s); see 'muster why %s'", ct->name,
        session_state_name(s->state), s->reason[0] ? ": " : "", s->reason, c->params[0]);
    session_free(loaded);
    return false;
}

/* --- the person's side: exec and tcp ------------------------------------------------------ */

static void keep_early(struct stream *st, const void *data, size_t len, bool binary)
{
    struct early_head head = {.len = len, .binary = binary};

    ws_pause(st->person, true);
    if (st->early.len + sizeof(head) + len > EARLY_MAX) {
        stream_fail(st, "too_large", "too much was sent before the container was reached");
        return;
    }
    buf_append(&st->early, &head, sizeof(head));
    buf_append(&st->early, data, len);
}

static void send_early(struct stream *st)
{
    for (size_t at = 0; at < st->early.len;) {
        struct early_head head;
        memcpy(&head, st->early.data + at, sizeof(head));
        at += sizeof(head);
        ws_send(st->agent, st->early.data + at, head.len, head.binary);
        at += head.len;
    }
    buf_done(&st->early);
    st->early = BUF_INIT(EARLY_MAX);
    ws_pause(st->person, false);
}

static int exec_words(const json_t *list, char ***ret, struct err *err)
{
    const json_t *w;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > SESSION_COMMAND_MAX)
        return err_set(err, -EINVAL, "'command' must be a list of words");
    json_array_foreach (list, i, w) {
        if (!json_is_string(w))
            return err_set(err, -EINVAL, "'command' must be a list of words");
        strv_push(ret, json_string_value(w));
    }
    return 0;
}

static int exec_env(json_t *env, char ***ret, struct err *err)
{
    const char *key;
    json_t *v;

    if (!json_is_object(env) || json_object_size(env) > SESSION_ENV_MAX)
        return err_set(err, -EINVAL, "'env' must be an object of texts");
    json_object_foreach (env, key, v) {
        if (!json_is_string(v) || !key[0] || strchr(key, '='))
            return err_set(err, -EINVAL, "'env' must be an object of texts");
        strv_env_set(ret, key, json_string_value(v));
    }
    return 0;
}

/* The client's first message (docs/openapi.yaml, ExecStart). */
static int exec_head_from_json(const json_t *head, struct link_stream *ret, struct err *err)
{
    const json_t *command = json_object_get(head, "command");
    json_t *env = json_object_get(head, "env");
    const char *term = json_str_or(head, "term", "");
    const char *workdir = json_str_or(head, "workdir", "");
    int r = workdir[0] ? path_check("'workdir'", workdir, err) : 0;

    ret->root = json_bool_or(head, "root", false);
    ret->tty = json_bool_or(head, "tty", false);
    ret->rows = (uint16_t)MIN_OF(json_u64_or(head, "rows", 24), 1000);
    ret->cols = (uint16_t)MIN_OF(json_u64_or(head, "cols", 80), 1000);
    if (r == 0 && strlen(workdir) > PATH_TEXT_MAX)
        r = err_set(err, -EINVAL, "'workdir' is longer than %d bytes", PATH_TEXT_MAX);
    if (r < 0)
        return r;
    STR_SET(ret->workdir, workdir);
    if (command && !json_is_null(command))
        r = exec_words(command, &ret->command, err);
    if (r == 0 && env && !json_is_null(env))
        r = exec_env(env, &ret->env, err);
    if (r == 0 && term[0] && strlen(term) < 64 && str_is_clean(term, strlen(term)))
        strv_env_set(&ret->env, "TERM", term);
    return r;
}

static void person_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct stream *st = arg;

    if (!st->asked) { /* exec: the first message says what to run */
        struct err err = ERR_INIT;
        json_t *head = NULL;
        int r = binary ? err_set(&err, -EINVAL, "the first message must be text")
                       : json_parse(data, len, 1024 * 1024, &head, &err);
        if (r == 0)
            r = exec_head_from_json(head, &st->order, &err);
        json_decref(head);
        if (r < 0)
            stream_fail(st, "invalid", err_text(&err));
        else
            stream_order(st);
        return;
    }
    if (!st->agent) {
        keep_early(st, data, len, binary);
        return;
    }
    if (ws_send(st->agent, data, len, binary) > QUEUE_HIGH)
        ws_pause(ws, true);
}

static void person_drained(struct ws *ws, void *arg)
{
    struct stream *st = arg;

    if (st->agent)
        ws_pause(st->agent, false);
}

static void person_closed(
    struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct stream *st = arg;

    st->person = NULL;
    if (st->agent)
        ws_close(st->agent, 1000, "the client has gone");
    stream_release(st);
}

static const struct ws_events person_events = {
    .message = person_message,
    .drained = person_drained,
    .closed = person_closed,
};

static void open_person(struct call *c, struct stream *st, bool order_now)
{
    struct request *rq = call_take_request(c);

    if (!rq) {
        stream_free(st);
        return;
    }
    st->person = request_upgrade(rq, &person_events, st);
    if (!st->person)
        stream_free(st);
    else if (order_now)
        stream_order(st);
}

void api_session_exec(struct call *c)
{
    struct session *s, *loaded = NULL;
    struct container *ct = call_container(c, &s, &loaded);
    struct stream *st;

    if (!ct || !check_running(c, s, loaded, ct))
        return;
    st = stream_new(c->m, ct);
    st->order.kind = STREAM_EXEC;
    open_person(c, st, false);
}

void api_session_tcp(struct call *c)
{
    struct session *s, *loaded = NULL;
    struct container *ct;
    struct stream *st;
    uint64_t port;

    if (!call_query_u64(c, "port", 0, 65535, &port))
        return;
    if (port == 0) {
        reply_error(c, 400, "bad_query", "'port' must be a number from 1 to 65535");
        return;
    }
    ct = call_container(c, &s, &loaded);
    if (!ct || !check_running(c, s, loaded, ct))
        return;
    st = stream_new(c->m, ct);
    st->order.kind = STREAM_TCP;
    st->order.port = (uint16_t)port;
    open_person(c, st, true);
}

/* --- logs --------------------------------------------------------------------------------- */

static void request_gone(struct request *rq, void *arg)
{
    struct stream *st = arg;

    st->rq = NULL;
    if (st->agent)
        ws_close(st->agent, 1000, "the client has gone");
    stream_release(st);
}

static void log_drained(struct request *rq, void *arg)
{
    struct stream *st = arg;

    if (st->agent)
        ws_pause(st->agent, false);
}

/* Words of ours in place of a log, and its end. */
static void put_own_log(struct buf *b, const char *text, bool raw)
{
    struct logframe f = {.channel = 2, .len = (uint32_t)strlen(text), .usec = clock_real_usec()};
    struct logframe last = {0};

    if (raw) {
        buf_puts(b, text);
        return;
    }
    logframe_append(b, &f, text);
    logframe_append(b, &last, NULL);
}

/* A session that never came so far as to have a log: say why, as its log. */
static void reply_no_log(struct call *c, const struct session *s, const struct container *ct)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    char text[600], end[320];
    struct request *rq;

    if (ct->end != END_NONE)
        snprintf(text, sizeof(text), "muster: %s never started: it %s\n", ct->name,
            container_end_describe(ct, end, sizeof(end)));
    else
        snprintf(text, sizeof(text), "muster: %s has not started: the session is %s%s%s\n",
            ct->name, session_state_name(s->state), s->reason[0] ? ": " : "", s->reason);
    put_own_log(&b, text, !str_eq(request_query(c->rq, "format"), "frames"));
    rq = call_take_request(c);
    if (rq)
        request_reply(rq, 200, "application/octet-stream", b.data, b.len);
}

void api_session_logs(struct call *c)
{
    struct session *s, *loaded = NULL;
    struct container *ct;
    struct stream *st;
    uint64_t offset;

    if (!call_query_u64(c, "offset", 0, INT64_MAX, &offset))
        return;
    ct = call_container(c, &s, &loaded);
    if (!ct)
        return;
    if (!ct->node[0] || ct->state < CONTAINER_PREPARING || ct->end == END_START_FAILED) {
        reply_no_log(c, s, ct);
        session_free(loaded);
        return;
    }
    st = stream_new(c->m, ct);
    st->order.kind = STREAM_LOG;
    st->order.offset = offset;
    st->order.follow = call_query_flag(c, "follow");
    st->raw = !str_eq(request_query(c->rq, "format"), "frames");
    st->timestamps = call_query_flag(c, "timestamps");
    session_free(loaded);
    request_add_header(c->rq, "x-muster-container", st->container);
    st->rq = call_take_request(c);
    request_on_gone(st->rq, request_gone, st);
    stream_order(st);
}

static void write_stamped(
    struct stream *st, struct buf *out, const struct logframe *f, const char *data)
{
    char time[CLOCK_TEXT_MAX];

    for (uint32_t at = 0; at < f->len;) {
        const char *nl = memchr(data + at, '\n', f->len - at);
        size_t n = nl ? (size_t)(nl - data) + 1 - at : f->len - at;
        if (!st->line_open)
            buf_printf(out, "%s ", clock_format(f->usec, time));
        buf_append(out, data + at, n);
        st->line_open = !nl;
        at += (uint32_t)n;
    }
}

/* A message of the agent holds whole frames. */
static void log_message(struct stream *st, const char *data, size_t len)
{
    struct buf out = BUF_INIT(SIZE_MAX);
    bool over = false;
    size_t queued = 0;

    if (!st->rq)
        return;
    for (size_t at = 0; at < len && !over;) {
        struct logframe f;
        int n = logframe_parse(data + at, len - at, &f);
        if (n < 0 || f.len > len - at - (size_t)n) {
            stream_fail(st, "internal", "the agent sent a malformed log frame");
            buf_done(&out);
            return;
        }
        if (!st->raw)
            buf_append(&out, data + at, (size_t)n + f.len);
        else if (st->timestamps)
            write_stamped(st, &out, &f, data + at + n);
        else
            buf_append(&out, data + at + n, f.len);
        over = f.channel == 0;
        at += (size_t)n + f.len;
    }
    if (out.len > 0)
        queued = request_write(st->rq, out.data, out.len);
    buf_done(&out);
    if (over) {
        struct request *rq = st->rq;
        drop_request(st);
        request_end(rq);
        ws_close(st->agent, 1000, "");
    } else if (queued > QUEUE_HIGH) {
        ws_pause(st->agent, true);
    }
}

/* The agent has no log, and says why. */
static void log_refused(struct stream *st, const char *data, size_t len)
{
    _cleanup_(json_decrefp) json_t *o = NULL;
    _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
    char text[400];
    struct request *rq = st->rq;

    if (!rq || json_parse(data, len, 4096, &o, NULL) < 0)
        return;
    snprintf(text, sizeof(text), "muster: %s\n",
        json_str_or(json_object_get(o, "error"), "message", "there is no log"));
    put_own_log(&out, text, st->raw);
    drop_request(st);
    request_write(rq, out.data, out.len);
    request_end(rq);
}

/* --- the agent's side --------------------------------------------------------------------- */

static void agent_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct stream *st = arg;

    if (st->order.kind == STREAM_LOG) {
        if (binary)
            log_message(st, data, len);
        else
            log_refused(st, data, len);
    } else if (st->person && ws_send(st->person, data, len, binary) > QUEUE_HIGH) {
        ws_pause(ws, true);
    }
}

static void agent_drained(struct ws *ws, void *arg)
{
    struct stream *st = arg;

    if (st->person)
        ws_pause(st->person, false);
}

static void agent_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct stream *st = arg;

    st->agent = NULL;
    if (st->person) {
        ws_close(st->person, code == 1006 ? 1011 : code,
            code == 1006 ? "the node's agent has gone" : text);
    } else if (st->rq) {
        struct request *rq = st->rq;
        drop_request(st);
        request_end(rq); /* without an end frame: cut */
    }
    stream_release(st);
}

static const struct ws_events agent_events = {
    .message = agent_message,
    .drained = agent_drained,
    .closed = agent_closed,
};

void api_agent_stream(struct call *c)
{
    struct stream *st = map_get(&c->m->streams, c->params[0]);
    struct request *rq;

    if (!st || st->agent || !st->asked || !joins_speaks_for(c->m, c->node, st->node)) {
        reply_error(c, 404, "not_found", "no such stream is awaited");
        return;
    }
    rq = call_take_request(c);
    if (!rq)
        return;
    st->agent = request_upgrade(rq, &agent_events, st);
    if (!st->agent)
        return;
    if (st->person)
        send_early(st);
    if (st->rq) {
        st->replying = true;
        request_reply_start(st->rq, 200, "application/octet-stream", log_drained, st);
    }
}

void gateway_drop_node(struct manager *m, const char *node, const char *why)
{
    map_for_each (e, &m->streams) {
        struct stream *st = e->value;
        if (st->agent && str_eq(st->node, node)) {
            ws_pause(st->agent, true);
            ws_close(st->agent, 1008, why);
        }
    }
}

void gateway_tick(struct manager *m, uint64_t now_usec)
{
    map_for_each (e, &m->streams) {
        struct stream *st = e->value;
        if (!st->agent && st->asked && now_usec > st->deadline_usec)
            stream_fail(st, "node_unreachable", "the node's agent did not answer in time");
    }
}
