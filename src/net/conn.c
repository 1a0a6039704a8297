/*
 * The life of a connection: connecting, the TLS handshake, reading, pausing and closing. The queue
 * is conn_out.c's. Knows no protocol above. Owns struct conn with its socket and its TLS.
 *
 * Rules it keeps:
 * - Reading and writing never wait for each other: two peers that both send both go on.
 * - Nothing is closed from inside a call of the owner: what fails there dies in the next turn. The
 *   memory lives until libuv has let go of the handle, so that no callback returns into nothing.
 */
#include "net/conn.h"

#include "net/conn_internal.h"

/* How long a peer may take nothing of what is left to send after conn_close, and how long we wait
 * for its own close after that. */
#define FLUSH_MSEC 5000
#define LINGER_MSEC 1000
#define READS_PER_TURN 4

static void forget(uv_handle_t *handle)
{
    struct conn *c = handle->data;

    free(c->out);
    free(c->error);
    free(c);
}

static void conn_die(struct conn *c)
{
    const struct conn_events *events = c->events;

    if (c->phase == CONN_DEAD)
        return;
    c->phase = CONN_DEAD;
    c->broken = true;
    c->events = NULL;
    net_timer_stop(&c->timer);
    net_timer_stop(&c->again);
    list_remove(&c->link);
    c->net->conn_count -= c->accepted;
    uv_close((uv_handle_t *)&c->poll, forget);
    if (c->tls)
        c->tls->ops->free(TAKE_PTR(c->tls));
    cleanup_close(&c->fd);
    cleanup_close(&c->file_fd);
    if (events)
        events->closed(c, c->owner);
}

static void timer_rang(struct net_timer *timer)
{
    conn_die(CONTAINER_OF(timer, struct conn, timer));
}

static void ready(uv_poll_t *poll, int status, int events);
static void again_rang(struct net_timer *timer);

static int conn_new(struct net *net, struct tls_config *tls, int fd, struct conn **ret)
{
    struct conn *c = xnew(struct conn);
    int r = uv_poll_init(net->loop, &c->poll, fd);

    if (r < 0) {
        free(c);
        close(fd);
        return r;
    }
    c->poll.data = c;
    c->net = net;
    c->fd = fd;
    c->file_fd = -1;
    c->tls = tls ? tls->ops->open(tls, fd) : NULL;
    net_timer_init(&c->timer, timer_rang);
    net_timer_init(&c->again, again_rang);
    list_init(&c->link);
    list_append(&net->conns, &c->link);
    *ret = c;
    return 0;
}

int conn_adopt(struct net *net, struct tls_config *tls, int fd, const struct conn_peer *peer,
    struct conn **ret)
{
    int r = conn_new(net, tls, fd, ret);

    if (r < 0)
        return r;
    (*ret)->peer = *peer;
    (*ret)->accepted = true;
    (*ret)->phase = tls ? CONN_SHAKING : CONN_OPEN;
    net->conn_count++;
    conn_watch(*ret);
    return 0;
}

int conn_connect(
    struct net *net, struct tls_config *tls, const union sock_address *to, struct conn **ret)
{
    int fd, r = sock_connect(to, &fd);

    if (r == 0)
        r = conn_new(net, tls, fd, ret);
    if (r < 0)
        return r;
    (*ret)->phase = CONN_CONNECTING;
    conn_watch(*ret);
    return 0;
}

void conn_set_owner(struct conn *c, const struct conn_events *events, void *owner)
{
    c->events = events;
    c->owner = owner;
}

const struct conn_peer *conn_peer(const struct conn *c)
{
    return &c->peer;
}

struct net *conn_net(const struct conn *c)
{
    return c->net;
}

const char *conn_error(const struct conn *c)
{
    return c->error;
}

void conn_note(struct conn *c, const struct err *err)
{
    if (!c->error)
        c->error = xstrdup(err_text(err));
}

static int wanted(const struct conn *c)
{
    bool reads = c->shut || c->phase == CONN_SHAKING || !c->paused;
    bool writes = !c->shut &&
        ((c->phase == CONN_OPEN && conn_queued(c)) || (c->tls && c->tls->ops->wants_write(c->tls)));

    if (c->broken)
        return 0;
    if (c->phase == CONN_CONNECTING)
        return UV_WRITABLE;
    return (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);
}

void conn_watch(struct conn *c)
{
    int events;

    if (c->phase == CONN_DEAD)
        return;
    events = wanted(c);
    if (events == c->watched)
        return;
    c->watched = events;
    if (events)
        uv_poll_start(&c->poll, events, ready);
    else
        uv_poll_stop(&c->poll);
}

void conn_abort(struct conn *c)
{
    if (c->broken)
        return;
    c->broken = true;
    net_timer_set(c->net, &c->timer, 0);
    conn_watch(c);
}

void conn_pause(struct conn *c, bool pause)
{
    if (c->broken || c->closing)
        return;
    c->paused = pause;
    /* Bytes that the TLS has read already make no socket readable. */
    if (!pause && c->tls && c->tls->ops->has_pending(c->tls))
        net_timer_set(c->net, &c->again, 0);
    conn_watch(c);
}

/* politely: say the end of TLS, too. */
static void shut_our_side(struct conn *c, bool politely)
{
    c->shut = true;
    if (c->tls && politely)
        c->tls->ops->say_end(c->tls);
    shutdown(c->fd, SHUT_WR);
    net_timer_set(c->net, &c->timer, LINGER_MSEC);
    conn_watch(c);
}

void conn_close(struct conn *c)
{
    c->events = NULL;
    c->closing = true;
    if (c->broken || c->shut)
        return;
    if (c->phase == CONN_CONNECTING) {
        conn_abort(c);
    } else if (!conn_queued(c)) {
        shut_our_side(c, true);
    } else {
        c->paused = true; /* nobody listens any more */
        net_timer_set(c->net, &c->timer, FLUSH_MSEC);
        conn_watch(c);
    }
}

void conn_kill(struct conn *c)
{
    c->events = NULL;
    conn_abort(c);
}

/* False while, or because, there is no connection. */
static bool finish_connect(struct conn *c)
{
    int r = sock_error(c->fd);

    if (r == 0) {
        c->phase = c->tls ? CONN_SHAKING : CONN_OPEN;
        return true;
    }
    conn_note(c, &(struct err){.code = r});
    conn_die(c);
    return false;
}

/* In the client's own language: what it asked for is in our TLS, where nobody can answer it. */
static void say_use_tls(int fd)
{
    static const char answer[] =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
        "Content-Length: 84\r\n\r\n"
        "{\"error\":{\"code\":\"tls_needed\",\"message\":\"this address speaks TLS only: use "
        "https\"}}\n";

    (void)!send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool shake_hands(struct conn *c)
{
    struct err err = ERR_INIT;
    int r = c->shut ? -EAGAIN : c->tls->ops->handshake(c->tls, &err);

    if (r == 0) {
        c->phase = CONN_OPEN;
        return true;
    }
    if (r == -EAGAIN)
        return false;
    conn_note(c, &err);
    if (c->accepted && r == -EPROTONOSUPPORT)
        say_use_tls(c->fd);
    if (c->accepted) /* what is wrong may be on its way to the client: let it arrive */
        shut_our_side(c, false);
    else
        conn_die(c);
    return false;
}

static bool may_read(const struct conn *c)
{
    return c->phase == CONN_OPEN && !c->broken && !c->paused && !c->shut;
}

static ssize_t read_some(struct conn *c, char *to, size_t room, struct err *err)
{
    ssize_t n;

    if (c->tls)
        return c->tls->ops->read(c->tls, to, room, err);
    n = recv(c->fd, to, room, MSG_DONTWAIT);
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? -EAGAIN
                                             : err_sys(err, -errno, "the connection was lost");
}

/* Some of what is there; the rest, if any, in the next turn. */
static void read_more(struct conn *c)
{
    char data[NET_READ_MAX];

    for (int i = 0; i < READS_PER_TURN && may_read(c); i++) {
        struct err err = ERR_INIT;
        ssize_t n = read_some(c, data, sizeof(data), &err);

        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            if (n < 0)
                conn_note(c, &err);
            conn_die(c);
            return;
        }
        if (c->events)
            c->events->data(c, data, (size_t)n, c->owner);
        if (!c->tls && (size_t)n < sizeof(data))
            return;
    }
    if (may_read(c) && c->tls && c->tls->ops->has_pending(c->tls))
        net_timer_set(c->net, &c->again, 0);
}

static void again_rang(struct net_timer *timer)
{
    struct conn *c = CONTAINER_OF(timer, struct conn, again);

    read_more(c);
    conn_watch(c);
}

static void throw_away(struct conn *c)
{
    char data[NET_READ_MAX];

    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            conn_die(c);
            return;
        }
    }
}

static void write_more(struct conn *c)
{
    uint64_t before = conn_queued(c);

    if (!before)
        return;
    if (!conn_pump(c))
        conn_abort(c);
    else if (c->closing && !conn_queued(c))
        shut_our_side(c, true);
    else if (c->closing && conn_queued(c) < before)
        net_timer_set(c->net, &c->timer, FLUSH_MSEC);
    else if (c->events && c->events->written && conn_queued(c) < before)
        c->events->written(c, c->owner);
}

static void ready(uv_poll_t *poll, int status, int events)
{
    struct conn *c = poll->data;

    if (status < 0) { /* libuv has stopped to look; reading and writing say why */
        c->watched = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (c->phase == CONN_CONNECTING && !finish_connect(c))
        return;
    if (c->phase == CONN_SHAKING)
        shake_hands(c);
    if (c->shut) {
        throw_away(c);
    } else if (c->phase == CONN_OPEN) {
        if ((events & UV_WRITABLE) || c->tls)
            write_more(c);
        if ((events & UV_READABLE) || c->tls)
            read_more(c);
    }
    conn_watch(c);
}

bool conn_cert(const struct conn *c, struct cert_info *ret)
{
    return c->tls && !c->broken && c->tls->ops->peer(c->tls, ret);
}

void conns_close(struct net *net)
{
    while (!list_is_empty(&net->conns))
        conn_die(LIST_ENTRY(net->conns.next, struct conn, link));
}
