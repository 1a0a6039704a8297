/*
 * Listening sockets and accepting. Owns its sockets; hands each accepted one to conn.c and the
 * connection to server.c. Stops accepting while there are as many connections as allowed: the rest
 * waits in the kernel's queue.
 */
#include "net/conn.h"
#include "net/server_internal.h"
#include "net/tls.h"

#define BACKLOG 512
#define ACCEPTS_PER_TURN 64
/* Pause after an accept that failed for want of descriptors or memory, or at the limit. */
#define PAUSE_MSEC 50

struct listener {
    struct list link;
    struct net *net;
    struct server_handler handler;
    struct tls_config *tls; /* NULL: plain */
    int fd;
    uint16_t port;
    uv_poll_t poll;
    struct net_timer timer;
};

static int bind_and_listen(int fd, const union sock_address *address)
{
    int on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (address->any.sa_family == AF_INET6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, &address->any, sock_len(address)) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return 0;
}

static int open_socket(
    const struct listen_opts *opts, int *ret_fd, uint16_t *ret_port, struct err *err)
{
    _cleanup_close_ int fd = -1;
    union sock_address address = {0};
    socklen_t len = sizeof(address);
    int r;

    if (sock_parse(opts->host, opts->port, &address) < 0)
        return err_set(
            err, -EINVAL, "cannot listen on '%s': not an IPv4 or IPv6 address", opts->host);
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = fd < 0 ? -errno : bind_and_listen(fd, &address);
    if (r < 0)
        return err_sys(err, r, "cannot listen on %s port %u", opts->host, opts->port);
    if (getsockname(fd, &address.any, &len) < 0)
        return err_sys(err, -errno, "cannot ask for the port of %s", opts->host);
    *ret_port = sock_port(&address);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static void readable(uv_poll_t *poll, int status, int events);

static void pause_accepting(struct listener *l)
{
    uv_poll_stop(&l->poll);
    net_timer_set(l->net, &l->timer, PAUSE_MSEC);
}

static void go_on_accepting(struct net_timer *timer)
{
    struct listener *l = CONTAINER_OF(timer, struct listener, timer);

    uv_poll_start(&l->poll, UV_READABLE, readable);
}

/* False when there is nothing more to accept now. */
static bool accept_one(struct listener *l)
{
    union sock_address address = {0};
    socklen_t len = sizeof(address);
    struct conn_peer peer;
    struct conn *c;
    int fd;

    if (l->net->conn_count >= l->net->limits.connections_max) {
        pause_accepting(l);
        return false;
    }
    fd = accept4(l->fd, &address.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(l);
        return errno == ECONNABORTED || errno == EINTR;
    }
    sock_tune(fd);
    sock_text(&address, peer.address);
    peer.local_port = l->port;
    if (conn_adopt(l->net, l->tls, fd, &peer, &c) == 0)
        server_accept(c, &l->handler);
    return true;
}

static void readable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;

    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        if (!accept_one(l))
            return;
    }
}

static void closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;

    tls_config_free(l->tls);
    free(l);
}

void listeners_close(struct net *net)
{
    list_for_each_safe (it, &net->listeners) {
        struct listener *l = LIST_ENTRY(it, struct listener, link);

        list_remove(&l->link);
        net_timer_stop(&l->timer);
        uv_close((uv_handle_t *)&l->poll, closed);
        close(l->fd);
    }
}

static int listener_new(
    struct net *net, const struct listen_opts *opts, struct listener **ret, struct err *err)
{
    _cleanup_close_ int fd = -1;
    struct listener *l;
    uint16_t port = 0;
    int r = open_socket(opts, &fd, &port, err);

    if (r < 0)
        return r;
    l = xnew(struct listener);
    r = uv_poll_init(net->loop, &l->poll, fd);
    if (r < 0) {
        free(l);
        err_sys(err, r, "cannot watch the socket of %s port %u", opts->host, port);
        return r;
    }
    l->poll.data = l;
    l->net = net;
    l->handler = (struct server_handler){opts->fn, opts->arg};
    l->port = port;
    l->fd = TAKE_FD(fd);
    net_timer_init(&l->timer, go_on_accepting);
    list_append(&net->listeners, &l->link);
    *ret = l;
    return 0;
}

static int listener_tls(const struct listen_opts *opts, struct tls_config **ret, struct err *err)
{
    struct tls_files files = {opts->cert_path, opts->key_path, opts->ca_path};
    struct tls_named named = {
        opts->named.name, {opts->named.cert_path, opts->named.key_path, opts->named.ca_path}};

    return tls_server(&files, &named, ret, err);
}

int server_renew_tls(struct net *net, const struct listen_opts *opts, struct err *err)
{
    list_for_each (it, &net->listeners) {
        struct listener *l = LIST_ENTRY(it, struct listener, link);
        struct tls_config *tls;
        int r = l->tls ? listener_tls(opts, &tls, err) : 0;

        if (r < 0)
            return r;
        if (!l->tls)
            continue;
        tls_config_free(l->tls);
        l->tls = tls;
    }
    return 0;
}

int server_listen(
    struct net *net, const struct listen_opts *opts, uint16_t *ret_port, struct err *err)
{
    struct tls_config *tls = NULL;
    struct listener *l;
    int r = opts->cert_path ? listener_tls(opts, &tls, err) : 0;

    if (r < 0)
        return r;
    r = listener_new(net, opts, &l, err);
    if (r < 0) {
        tls_config_free(tls);
        return r;
    }
    l->tls = tls;
    uv_poll_start(&l->poll, UV_READABLE, readable);
    if (ret_port)
        *ret_port = l->port;
    return 0;
}
