/*
 * What is the same for both sides of a WebSocket: its states, the bound of its queue, the closing
 * that must end, the pings. Owns struct ws.
 */
#include "net/ws_internal.h"

/* For what is queued to be sent and the peer's close frame to come. */
#define CLOSE_MSEC 5000

static void alive_rang(struct net_timer *timer);
static void close_rang(struct net_timer *timer);

static uint64_t ping_msec(const struct ws *ws)
{
    return MAX_OF(ws->net->limits.ping_usec / 1000, UINT64_C(1));
}

void ws_init(struct ws *ws, struct net *net, const struct ws_side *side, void *impl,
    const struct ws_events *events, void *arg)
{
    ws->net = net;
    ws->side = side;
    ws->impl = impl;
    ws->events = events;
    ws->arg = arg;
    net_timer_init(&ws->alive, alive_rang);
    net_timer_init(&ws->close, close_rang);
    list_append(&net->sockets, &ws->link);
}

void ws_open(struct ws *ws)
{
    ws->state = WS_OPEN;
    ws_heard(ws);
    net_timer_set(ws->net, &ws->alive, ping_msec(ws));
}

void ws_heard(struct ws *ws)
{
    ws->heard_at = uv_now(ws->net->loop);
    ws->doubt = WS_HEARD;
}

void ws_done(struct ws *ws, unsigned code, unsigned status, const char *text)
{
    char kept[256];

    snprintf(kept, sizeof(kept), "%s", text); /* it may be the side's */
    list_remove(&ws->link);
    net_timer_stop(&ws->alive);
    net_timer_stop(&ws->close);
    ws->side->drop(ws);
    ws->state = WS_CLOSING; /* sends from inside the callback go nowhere */
    ws->side = NULL;
    ws->events->closed(ws, code, status, kept, ws->arg);
    free(ws);
}

/*
 * Silence leads to a ping, more of it to the end. When this process itself stood still (it was
 * stopped, or the machine was), timers ring before what came meanwhile is read: so the end is
 * decided one turn of the loop later.
 */
static void alive_rang(struct net_timer *timer)
{
    struct ws *ws = CONTAINER_OF(timer, struct ws, alive);
    uint64_t ping = ping_msec(ws), silent = uv_now(ws->net->loop) - ws->heard_at;

    if (ws->state != WS_OPEN)
        return;
    if (ws->paused) { /* we can hear nothing: say instead that we are here */
        ws->side->send(ws, FRAME_PONG, NULL, 0);
        net_timer_set(ws->net, &ws->alive, ping);
    } else if (silent < ping) {
        net_timer_set(ws->net, &ws->alive, ping - silent);
    } else if (ws->doubt == WS_HEARD) {
        ws->side->send(ws, FRAME_PING, NULL, 0);
        ws->doubt = WS_PINGED;
        net_timer_set(ws->net, &ws->alive, ping);
    } else if (ws->doubt == WS_PINGED) {
        ws->doubt = WS_SILENT;
        net_timer_set(ws->net, &ws->alive, 0);
    } else {
        ws_done(ws, 1006, 0, "the peer does not answer pings");
    }
}

static void close_rang(struct net_timer *timer)
{
    struct ws *ws = CONTAINER_OF(timer, struct ws, close);

    if (ws->too_slow)
        ws_done(ws, 1013, 0, "the peer reads too slowly");
    else
        ws_done(ws, 1006, 0, "the peer did not answer the close frame in time");
}

static size_t check_queue(struct ws *ws)
{
    size_t queued = ws->side->queued(ws);

    if (queued > NET_QUEUE_LOW)
        ws->above_low = true;
    if (queued > ws->net->limits.ws_queue_max) {
        ws->too_slow = true;
        ws->state = WS_CLOSING;
        net_timer_set(ws->net, &ws->close, 0);
    }
    return queued;
}

size_t ws_send(struct ws *ws, const void *data, size_t len, bool binary)
{
    if (ws->state == WS_CLOSING)
        return 0;
    ws->side->send(ws, binary ? FRAME_BINARY : FRAME_TEXT, data, len);
    return check_queue(ws);
}

size_t ws_send_text(struct ws *ws, const char *text)
{
    return ws_send(ws, text, strlen(text), false);
}

size_t ws_queued(const struct ws *ws)
{
    return ws->state != WS_CLOSING ? ws->side->queued(ws) : 0;
}

void ws_written(struct ws *ws)
{
    if (!ws->above_low || ws->state != WS_OPEN || ws->side->queued(ws) >= NET_QUEUE_LOW)
        return;
    ws->above_low = false;
    if (ws->events->drained)
        ws->events->drained(ws, ws->arg);
}

void ws_pause(struct ws *ws, bool pause)
{
    if (ws->state == WS_CLOSING || ws->paused == pause)
        return;
    ws->paused = pause;
    ws_heard(ws);
    if (ws->state == WS_OPEN)
        ws->side->pause(ws, pause);
}

void ws_close(struct ws *ws, unsigned code, const char *text)
{
    bool open = ws->state == WS_OPEN;

    if (ws->state == WS_CLOSING)
        return;
    ws->state = WS_CLOSING;
    ws->close_code = code;
    if (open) {
        if (ws->paused) /* the peer's close frame has to be read */
            ws->side->pause(ws, false);
        ws->side->close(ws, code, text ? text : "");
    }
    net_timer_set(ws->net, &ws->close, open ? CLOSE_MSEC : 0);
}

void *ws_arg(const struct ws *ws)
{
    return ws->arg;
}

void ws_set_arg(struct ws *ws, void *arg)
{
    ws->arg = arg;
}

void sockets_close(struct net *net)
{
    while (!list_is_empty(&net->sockets)) {
        struct ws *ws = LIST_ENTRY(net->sockets.next, struct ws, link);

        /* ws_done takes it off the list: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        ws_done(ws, 1006, 0, "this side is shutting down");
    }
}
