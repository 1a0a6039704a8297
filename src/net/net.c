/*
 * Owns struct net: limits, the coarse timers, the end of all that is open. Knows no protocol.
 */
#include "net/net.h"

#include "net/internal.h"

#define BODY_MAX ((size_t)1 << 20)
#define WS_MESSAGE_MAX ((size_t)4 << 20)
#define WS_QUEUE_MAX ((size_t)16 << 20)
#define CONNECTIONS_MAX 4096
#define IDLE_USEC UINT64_C(30000000)
#define PING_USEC UINT64_C(15000000)

void net_timer_init(struct net_timer *timer, void (*fn)(struct net_timer *timer))
{
    list_init(&timer->link);
    timer->at_msec = 0;
    timer->fn = fn;
}

void net_timer_stop(struct net_timer *timer)
{
    list_remove(&timer->link);
}

static void ring(uv_timer_t *handle);

static void ring_at(struct net *net, uint64_t at)
{
    uint64_t now = uv_now(net->loop);

    if (at >= net->timer_at)
        return;
    net->timer_at = at;
    uv_timer_start(&net->timer, ring, at > now ? at - now : 0, 0);
}

void net_timer_set(struct net *net, struct net_timer *timer, uint64_t delay_msec)
{
    list_remove(&timer->link);
    if (net->closing)
        return;
    timer->at_msec = uv_now(net->loop) + delay_msec;
    list_append(delay_msec ? &net->timers : &net->soon, &timer->link);
    ring_at(net, delay_msec ? timer->at_msec : 0);
}

static void move_due(struct net *net, struct list *due)
{
    uint64_t now = uv_now(net->loop);

    list_for_each_safe (it, &net->soon) {
        list_remove(it);
        list_append(due, it);
    }
    list_for_each_safe (it, &net->timers) {
        if (LIST_ENTRY(it, struct net_timer, link)->at_msec > now)
            continue;
        list_remove(it);
        list_append(due, it);
    }
}

static void ring_next(struct net *net)
{
    uint64_t at = UINT64_MAX;

    list_for_each (it, &net->timers)
        at = MIN_OF(at, LIST_ENTRY(it, struct net_timer, link)->at_msec);
    if (!list_is_empty(&net->soon))
        at = 0;
    if (at != UINT64_MAX)
        ring_at(net, at);
}

static void ring(uv_timer_t *handle)
{
    struct net *net = handle->data;
    struct list due;

    net->timer_at = UINT64_MAX;
    list_init(&due);
    move_due(net, &due);
    /* A callback may stop any other timer: it is then taken off this list. */
    while (!list_is_empty(&due)) {
        struct net_timer *timer = LIST_ENTRY(due.next, struct net_timer, link);

        list_remove(&timer->link);
        timer->fn(timer);
    }
    ring_next(net);
}

static void set_limits(struct net_limits *to, const struct net_limits *from)
{
    if (from)
        *to = *from;
    to->body_max = to->body_max ? to->body_max : BODY_MAX;
    to->ws_message_max = to->ws_message_max ? to->ws_message_max : WS_MESSAGE_MAX;
    to->ws_queue_max = to->ws_queue_max ? to->ws_queue_max : WS_QUEUE_MAX;
    to->connections_max = to->connections_max ? to->connections_max : CONNECTIONS_MAX;
    to->idle_usec = to->idle_usec ? to->idle_usec : IDLE_USEC;
    to->ping_usec = to->ping_usec ? to->ping_usec : PING_USEC;
}

int net_new(uv_loop_t *loop, const struct net_limits *limits, struct net **ret, struct err *err)
{
    struct net *net = xnew(struct net);
    int r;

    net->loop = loop;
    net->timer_at = UINT64_MAX;
    set_limits(&net->limits, limits);
    list_init(&net->timers);
    list_init(&net->soon);
    list_init(&net->listeners);
    list_init(&net->conns);
    list_init(&net->sockets);
    list_init(&net->tls);
    r = uv_timer_init(loop, &net->timer);
    if (r < 0) {
        free(net);
        return err_sys(err, r, "cannot make a timer");
    }
    net->timer.data = net;
    uv_update_time(loop);
    *ret = net;
    return 0;
}

static void forget(uv_handle_t *handle)
{
    free(handle->data);
}

void net_free(struct net *net)
{
    if (!net)
        return;
    net->closing = true; /* who is told of an end now can open nothing new */
    listeners_close(net);
    sockets_close(net);
    conns_close(net);
    tls_clients_free(net);
    uv_close((uv_handle_t *)&net->timer, forget);
}
