/* A TCP connection to a port of a container, made inside its network namespace: for SSH from
 * outside and forwarded ports. No port of the node is involved. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "agent/sess.h"
#include "agent/stream.h"

struct tcp {
    struct pump pump;
    uv_poll_t poll; /* while it connects */
    int fd;
    bool connecting;
};

static void tcp_free(struct stream *st)
{
    struct tcp *t = st->data;

    if (st->ws || t->connecting || t->pump.open)
        return;
    free(t);
    st->data = NULL;
    stream_done(st);
}

static void pump_ended(struct pump *p)
{
    if (p->st->ws)
        ws_close(p->st->ws, 1000, "closed by the container");
    pump_close(p);
}

static void pump_closed(struct pump *p)
{
    tcp_free(p->st);
}

static void poll_closed(uv_handle_t *h)
{
    struct stream *st = h->data;
    struct tcp *t = st->data;

    t->connecting = false;
    if (t->fd >= 0 && st->ws) {
        t->pump.ended = pump_ended;
        t->pump.closed = pump_closed;
        pump_open(&t->pump, st, TAKE_FD(t->fd), -1);
        pump_read(&t->pump, true);
        ws_pause(st->ws, false);
        return;
    }
    if (t->fd >= 0)
        close(t->fd);
    tcp_free(st);
}

static void tcp_connected(uv_poll_t *p, int status, int events)
{
    struct stream *st = p->data;
    struct tcp *t = st->data;
    int error = 0;
    socklen_t len = sizeof(error);

    uv_poll_stop(p);
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        char text[128];
        snprintf(
            text, sizeof(text), "port %u of the container: %s", st->order.port, strerror(error));
        stream_error(st, "refused", text);
        close(TAKE_FD(t->fd));
    }
    uv_close((uv_handle_t *)p, poll_closed);
}

static int tcp_start(struct stream *st, struct err *err)
{
    struct ct *c = sess_container(st->agent, st->order.container);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(st->order.port)};
    char netns[NETNS_PATH_MAX];
    struct tcp *t = xnew(struct tcp);

    st->data = t;
    t->fd = -1;
    if (!c)
        return err_set(err, -ENOENT, "the container is not on this node any more");
    edge_container_netns(&st->agent->node_net, c->sess->a->session, c->spec->name, netns);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (st->order.port == 22) /* sshd's own address, so that what it logs makes sense */
        to.sin_addr.s_addr = htonl(c->sess->a->peers[c->spec->rank].ip);
    t->fd = edge_socket_in(netns, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (t->fd < 0)
        return err_sys(err, t->fd, "cannot enter the container's network");
    if (connect(t->fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
        return err_sys(err, -errno, "port %u of the container", st->order.port);
    ws_pause(st->ws, true);
    uv_poll_init(st->agent->loop, &t->poll, t->fd);
    t->poll.data = st;
    t->connecting = true;
    uv_poll_start(&t->poll, UV_WRITABLE, tcp_connected);
    return 0;
}

static void tcp_message(struct stream *st, const char *data, size_t len, bool binary)
{
    struct tcp *t = st->data;

    if (binary)
        pump_write(&t->pump, data, len);
}

static void tcp_drained(struct stream *st)
{
    struct tcp *t = st->data;

    pump_read(&t->pump, true);
}

static void tcp_closed(struct stream *st)
{
    struct tcp *t = st->data;

    if (!t) {
        stream_done(st);
        return;
    }
    if (t->connecting) {
        if (!uv_is_closing((uv_handle_t *)&t->poll)) {
            uv_poll_stop(&t->poll);
            uv_close((uv_handle_t *)&t->poll, poll_closed);
        }
        return;
    }
    if (t->fd >= 0)
        close(TAKE_FD(t->fd));
    if (t->pump.open)
        pump_shut(&t->pump); /* what was sent still goes out */
    else
        tcp_free(st);
}

const struct stream_kind_ops tcp_ops = {
    .start = tcp_start,
    .message = tcp_message,
    .drained = tcp_drained,
    .closed = tcp_closed,
};
