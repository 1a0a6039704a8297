/*
 * Listening sockets and accepting. Owns its sockets; hands each accepted one to conn.c and the
 * connection to server.c. Stops accepting while there are as many connections as allowed: the rest
 * waits in the kernel's queue.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/str.h"
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
    struct lws_vhost *vhost;
    bool tls;
    int fd;
    uint16_t port;
    uv_poll_t poll;
    struct net_timer timer;
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int parse_address(
    const char *host, uint16_t port, union address *ret, socklen_t *ret_len, struct err *err)
{
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        *ret_len = sizeof(ret->v4);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons(port);
        *ret_len = sizeof(ret->v6);
        return 0;
    }
    return err_set(err, -EINVAL, "cannot listen on '%s': not an IPv4 or IPv6 address", host);
}

static uint16_t port_of(const union address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
}

static int bind_and_listen(int fd, const union address *address, socklen_t len)
{
    int on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (address->any.sa_family == AF_INET6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, &address->any, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return 0;
}

static int open_socket(
    const struct listen_opts *opts, int *ret_fd, uint16_t *ret_port, struct err *err)
{
    _cleanup_close_ int fd = -1;
    union address address = {0};
    socklen_t len = 0;
    int r;

    r = parse_address(opts->host, opts->port, &address, &len, err);
    if (r < 0)
        return r;
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = fd < 0 ? -errno : bind_and_listen(fd, &address, len);
    if (r < 0)
        return err_sys(err, r, "cannot listen on %s port %u", opts->host, opts->port);
    len = sizeof(address);
    if (getsockname(fd, &address.any, &len) < 0)
        return err_sys(err, -errno, "cannot ask for the port of %s", opts->host);
    *ret_port = port_of(&address);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static void name_peer(const union address *address, uint16_t local_port, struct conn_peer *peer)
{
    if (address->any.sa_family == AF_INET)
        inet_ntop(AF_INET, &address->v4.sin_addr, peer->address, sizeof(peer->address));
    else
        inet_ntop(AF_INET6, &address->v6.sin6_addr, peer->address, sizeof(peer->address));
    peer->local_port = local_port;
}

/* Small answers leave at once, and a peer whose machine vanished is noticed in about a minute even
 * when we have nothing to say. */
static void tune(int fd)
{
    int on = 1, idle = 30, interval = 10, count = 3;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
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
    union address address = {0};
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
    tune(fd);
    name_peer(&address, l->port, &peer);
    if (conn_adopt(l->net, l->vhost, l->tls, fd, &peer, &c) == 0)
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

    close(l->fd);
    free(l);
}

void listeners_close(struct net *net)
{
    list_for_each_safe (it, &net->listeners) {
        struct listener *l = LIST_ENTRY(it, struct listener, link);

        list_remove(&l->link);
        net_timer_stop(&l->timer);
        uv_close((uv_handle_t *)&l->poll, closed);
    }
}

int server_listen(
    struct net *net, const struct listen_opts *opts, uint16_t *ret_port, struct err *err)
{
    _cleanup_close_ int fd = -1;
    struct lws_vhost *vhost;
    struct listener *l;
    uint16_t port = 0;
    int r;

    r = opts->cert_path
        ? tls_server_vhost(net, opts->cert_path, opts->key_path, opts->ca_path, &vhost, err)
        : net_plain_vhost(net, &vhost, err);
    if (r < 0)
        return r;
    r = open_socket(opts, &fd, &port, err);
    if (r < 0)
        return r;
    l = xnew(struct listener);
    l->net = net;
    l->handler = (struct server_handler){opts->fn, opts->arg};
    l->vhost = vhost;
    l->tls = opts->cert_path;
    l->port = port;
    net_timer_init(&l->timer, go_on_accepting);
    r = uv_poll_init(net->loop, &l->poll, fd);
    if (r < 0) {
        free(l);
        return err_sys(err, r, "cannot watch the socket of %s port %u", opts->host, port);
    }
    l->poll.data = l;
    l->fd = TAKE_FD(fd);
    list_append(&net->listeners, &l->link);
    uv_poll_start(&l->poll, UV_READABLE, readable);
    if (ret_port)
        *ret_port = port;
    return 0;
}
