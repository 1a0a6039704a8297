/*
 * Owns struct net: limits, the coarse timers, the life of the libwebsockets contexts. Knows no
 * protocol.
 *
 * libwebsockets gives up a context on a foreign loop in steps: lws_context_destroy() starts to
 * close, libuv calls back in later turns, a second lws_context_destroy() frees. finish_close()
 * waits for that, turn by turn, and then frees the struct net itself.
 */
#include "net/net.h"

#include <signal.h>
#include <sys/resource.h>

#include "net/internal.h"
#include "net/lws_protocols.h"

#define BODY_MAX ((size_t)1 << 20)
#define WS_MESSAGE_MAX ((size_t)4 << 20)
#define WS_QUEUE_MAX ((size_t)16 << 20)
#define CONNECTIONS_MAX 4096
#define IDLE_USEC UINT64_C(30000000)
#define PING_USEC UINT64_C(15000000)

/* Up to this limit on open files libwebsockets finds a connection by indexing a table of that size
 * (16 bytes an entry); above it searches a short one. */
#define FD_TABLE_MAX 65536
/* Turns of the loop until libuv let go of every handle. */
#define CLOSE_TURNS 5

const struct lws_protocols NET_PROTOCOLS[] = {
    {.name = NET_PROTOCOL_CONN, .callback = conn_callback},
    {.name = NET_PROTOCOL_WS,
        .callback = ws_client_callback,
        .rx_buffer_size = NET_READ_MAX,
        .tx_packet_size = 2 * NET_QUEUE_LOW},
    {0},
};

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
    list_init(&net->vhosts);
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

static unsigned fd_limit(const struct net *net)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= FD_TABLE_MAX)
        return 0; /* as many as the process may open */
    return net->limits.connections_max + 64;
}

/* libwebsockets would ignore SIGPIPE for the whole process: that is the program's to say. */
static struct lws_context *create_context(struct lws_context_creation_info *info)
{
    struct lws_context *context;
    struct sigaction before;

    lws_set_log_level(0, NULL);
    sigaction(SIGPIPE, NULL, &before);
    context = lws_create_context(info);
    sigaction(SIGPIPE, &before, NULL);
    return context;
}

int net_context(struct net *net, enum net_kind kind, struct lws_context **ret, struct err *err)
{
    struct lws_context_creation_info info = {0};
    void *loops[] = {net->loop};

    if (!net->contexts[kind]) {
        info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
        if (kind == NET_TLS)
            info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.port = CONTEXT_PORT_NO_LISTEN;
        info.foreign_loops = loops;
        info.fd_limit_per_thread = fd_limit(net);
        info.pt_serv_buf_size = (unsigned)NET_READ_MAX + LWS_PRE;
        info.max_http_header_data = 4096;
        info.max_http_header_pool = 64;
        info.alpn = "http/1.1";
        info.timeout_secs = (unsigned)(net->limits.idle_usec / 1000000 + 1);
        info.gid = (gid_t)-1;
        info.uid = (uid_t)-1;
        info.pcontext = &net->contexts[kind];
        net->contexts[kind] = create_context(&info);
    }
    if (!net->contexts[kind])
        return err_set(err, -ENOSYS,
            "libwebsockets cannot run on libuv "
            "(is the package libwebsockets-evlib-uv installed?)");
    *ret = net->contexts[kind];
    return 0;
}

int net_plain_vhost(struct net *net, struct lws_vhost **ret, struct err *err)
{
    struct lws_context_creation_info info = {0};
    struct lws_context *context = NULL;
    int r;

    if (!net->plain_vhost) {
        r = net_context(net, NET_PLAIN, &context, err);
        if (r < 0)
            return r;
        info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
        info.vhost_name = "plain";
        info.protocols = NET_PROTOCOLS;
        /* Otherwise the environment's http_proxy would be used. */
        info.http_proxy_address = "";
        net->plain_vhost = lws_create_vhost(context, &info);
        if (!net->plain_vhost)
            return err_set(err, -ENOMEM, "libwebsockets cannot make a vhost");
    }
    *ret = net->plain_vhost;
    return 0;
}

static void forget(uv_handle_t *handle)
{
    free(handle->data);
}

static void finish_close(uv_timer_t *handle)
{
    struct net *net = handle->data;

    if (++net->close_turns < CLOSE_TURNS)
        return;
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (net->contexts[kind])
            lws_context_destroy(net->contexts[kind]);
    }
    tls_vhosts_free(net);
    uv_close((uv_handle_t *)handle, forget);
}

void net_free(struct net *net)
{
    if (!net)
        return;
    net->closing = true; /* who is told of an end now can open nothing new */
    listeners_close(net);
    sockets_close(net);
    conns_close(net);
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (net->contexts[kind])
            lws_context_destroy(net->contexts[kind]);
    }
    uv_timer_start(&net->timer, finish_close, 0, 1);
}
