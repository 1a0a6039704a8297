/* Dials streams and tells their kinds apart. */
#include "agent/stream.h"

#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"

static void on_open(struct ws *ws, void *arg)
{
    struct stream *st = arg;
    struct err err = ERR_INIT;

    if (st->ops->start(st, &err) < 0)
        stream_error(st, "failed", err_text(&err));
}

static void on_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct stream *st = arg;

    if (st->ops->message)
        st->ops->message(st, data, len, binary);
}

static void on_drained(struct ws *ws, void *arg)
{
    struct stream *st = arg;

    if (st->ops->drained)
        st->ops->drained(st);
}

static void on_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct stream *st = arg;

    st->ws = NULL;
    if (st->ops->closed)
        st->ops->closed(st);
    else
        stream_done(st);
}

static const struct ws_events stream_events = {
    .opened = on_open,
    .message = on_message,
    .drained = on_drained,
    .closed = on_closed,
};

void stream_done(struct stream *st)
{
    assert(!st->ws);
    strv_free(st->order.command);
    strv_free(st->order.env);
    free(st);
}

void stream_error(struct stream *st, const char *code, const char *text)
{
    json_t *error = json_object(), *o = json_object();
    _cleanup_free_ char *body = NULL;

    json_set_str(error, "code", code);
    json_set_str(error, "message", text);
    json_object_set_new(o, "error", error);
    body = json_text(o);
    json_decref(o);
    if (!st->ws)
        return;
    ws_send_text(st->ws, body);
    ws_close(st->ws, 1011, code);
}

void stream_open(struct agent *ag, const struct link_stream *order)
{
    static const struct stream_kind_ops *const kinds[] = {
        [STREAM_EXEC] = &exec_ops, [STREAM_LOG] = &log_ops, [STREAM_TCP] = &tcp_ops};
    struct stream *st = xnew(struct stream);
    char path[80];
    struct err err = ERR_INIT;

    st->agent = ag;
    st->ops = kinds[order->kind];
    st->order = *order;
    st->order.command = strv_copy(order->command);
    st->order.env = strv_copy(order->env);
    snprintf(path, sizeof(path), "/v1/agent/streams/%s", order->id);
    if (link_connect(ag, path, &stream_events, st, &st->ws, &err) < 0) {
        log_warning("stream %s: %s", order->id, err_text(&err));
        st->ws = NULL;
        stream_done(st);
    }
}
