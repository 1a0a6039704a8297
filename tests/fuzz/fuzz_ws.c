/*
 * WebSocket frames from an attacker, through all of either side but for the connection below it,
 * which is faked here together with the timers. How the bytes are cut must not change what the user
 * hears; closed comes exactly once; nothing is sent to the user after it.
 *
 * The first byte of the input says where to cut; its highest bit, who reads: a client or a server.
 */
#include "net/conn.h"
#include "net/ws_internal.h"

#define QUEUE_MAX 4096
#define MESSAGE_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct conn {
    struct net net;
    const struct conn_events *events;
    void *owner;
    uint64_t queued;
    bool let_go;
    uv_loop_t loop;
};

void conn_set_owner(struct conn *c, const struct conn_events *events, void *owner)
{
    c->events = events;
    c->owner = owner;
}

size_t conn_send(struct conn *c, const void *data, size_t len)
{
    if (c->let_go)
        abort();
    c->queued += len;
    return (size_t)c->queued;
}

uint64_t conn_queued(const struct conn *c)
{
    return c->queued;
}

void conn_pause(struct conn *c, bool pause)
{
}

void conn_close(struct conn *c)
{
    c->let_go = true;
}

void conn_kill(struct conn *c)
{
    c->let_go = true;
}

struct net *conn_net(const struct conn *c)
{
    return (struct net *)&c->net;
}

void net_timer_init(struct net_timer *timer, void (*fn)(struct net_timer *timer))
{
    list_init(&timer->link);
    timer->fn = fn;
}

void net_timer_set(struct net *net, struct net_timer *timer, uint64_t delay_msec)
{
}

void net_timer_stop(struct net_timer *timer)
{
}

struct heard {
    unsigned messages, closed, code;
    uint64_t sum;
};

static void on_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct heard *h = arg;

    if (h->closed || len > MESSAGE_MAX || (!binary && !frame_is_utf8(data, len)))
        abort();
    h->messages++;
    for (size_t i = 0; i < len; i++)
        h->sum = h->sum * 31 + ((const uint8_t *)data)[i];
    h->sum = h->sum * 2 + binary;
}

static void on_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct heard *h = arg;

    h->closed++;
    h->code = code;
    if (!frame_is_utf8(text, strlen(text)))
        abort();
}

static const struct ws_events EVENTS = {NULL, on_message, NULL, on_closed};

static void open_ws(struct conn *c, bool is_client, struct heard *h)
{
    struct ws *ws;

    if (!is_client) {
        ws_accept(c, NULL, 0, &EVENTS, h);
        return;
    }
    ws = xnew(struct ws);
    ws_init(ws, &c->net, NULL, NULL, &EVENTS, h);
    ws_attach(ws, c, true, NULL, 0);
    ws_open(ws);
}

static struct heard listen_to(const uint8_t *data, size_t size, size_t step, bool is_client)
{
    struct heard h = {0};
    struct conn c = {0};

    uv_loop_init(&c.loop);
    c.net.loop = &c.loop;
    c.net.limits.ws_message_max = MESSAGE_MAX;
    c.net.limits.ws_queue_max = QUEUE_MAX;
    c.net.limits.ping_usec = 1000000;
    list_init(&c.net.sockets);
    open_ws(&c, is_client, &h);
    for (size_t at = 0; at < size && !c.let_go; at += step)
        c.events->data(&c, (const char *)data + at, MIN_OF(step, size - at), c.owner);
    if (c.let_go != (h.closed == 1))
        abort();
    if (!c.let_go)
        c.events->closed(&c, c.owner);
    if (h.closed != 1 || !list_is_empty(&c.net.sockets))
        abort();
    uv_loop_close(&c.loop);
    return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heard whole, cut;

    if (size < 2)
        return 0;
    whole = listen_to(data + 1, size - 1, size, data[0] & 0x80);
    cut = listen_to(data + 1, size - 1, 1 + data[0] % 16u, data[0] & 0x80);
    if (whole.messages != cut.messages || whole.sum != cut.sum || whole.code != cut.code)
        abort();
    return 0;
}
