/*
 * Sockets with deadlines, by poll(2). Owns the socket and its TLS. Every address of a name is
 * tried, each with a fair share of the time that is left.
 */
#include "net/http_link.h"

#include <poll.h>

#include "base/clock.h"
#include "net/lookup.h"

/* poll's timeout until then; -1 for ever. */
static int msec_until(uint64_t deadline)
{
    uint64_t now = clock_mono_usec();

    if (deadline == UINT64_MAX)
        return -1;
    if (deadline <= now)
        return 0;
    return (int)MIN_OF((deadline - now + 999) / 1000, UINT64_C(2000000000));
}

static int wait_fds(struct pollfd *fds, nfds_t count, uint64_t deadline, struct err *err)
{
    for (;;) {
        int msec = msec_until(deadline);
        int n = poll(fds, count, msec);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_sys(err, -errno, "cannot wait for a socket");
        if (msec == 0)
            return err_set(err, -ETIMEDOUT, "no answer in time");
    }
}

static int wait_one(int fd, short events, uint64_t deadline, struct err *err)
{
    struct pollfd one = {.fd = fd, .events = events};

    return wait_fds(&one, 1, deadline, err);
}

static bool wants_write(const struct http_link *l)
{
    return l->tls && l->tls->ops->wants_write(l->tls);
}

int http_link_wait(struct http_link *l, uint64_t deadline, struct err *err)
{
    return wait_one(l->fd, wants_write(l) ? POLLIN | POLLOUT : POLLIN, deadline, err);
}

int http_link_wait_room(struct http_link *l, uint64_t deadline, struct err *err)
{
    return wait_one(l->fd, POLLIN | POLLOUT, deadline, err);
}

int http_link_wait_for(struct http_link *l, int fd, uint64_t deadline, struct err *err)
{
    struct pollfd two[] = {{.fd = l->fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int r = wait_fds(two, 2, deadline, err);

    return r < 0 ? r : two[1].revents != 0;
}

void http_link_close(struct http_link *l)
{
    if (l->tls) {
        l->tls->ops->say_end(l->tls);
        l->tls->ops->free(l->tls);
    }
    cleanup_close(&l->fd);
    *l = HTTP_LINK_INIT;
}

static int connect_one(
    struct http_link *l, const union sock_address *to, uint64_t deadline, struct err *err)
{
    char text[SOCK_TEXT_MAX];
    int r = sock_connect(to, &l->fd);

    if (r == 0)
        r = wait_one(l->fd, POLLOUT, deadline, NULL);
    if (r == 0)
        r = sock_error(l->fd);
    if (r < 0) {
        http_link_close(l);
        return err_sys(err, r, "cannot connect to %s port %u", sock_text(to, text), sock_port(to));
    }
    return 0;
}

static int connect_any(
    struct http_link *l, const struct uri *to, uint64_t deadline, struct err *err)
{
    union sock_address addresses[SOCK_ADDRESSES_MAX];
    unsigned count;
    int r = lookup(to->host, to->port, deadline, addresses, &count, err);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < count; i++) {
        uint64_t now = clock_mono_usec();
        uint64_t share = (deadline - MIN_OF(now, deadline)) / (count - i);

        r = connect_one(l, &addresses[i], now + share, err);
        if (r == 0)
            break;
    }
    return r;
}

static int start_tls(
    struct http_link *l, struct tls_config *config, uint64_t deadline, struct err *err)
{
    int r;

    l->tls = config->ops->open(config, l->fd);
    for (;;) {
        r = l->tls->ops->handshake(l->tls, err);
        if (r != -EAGAIN)
            return r;
        r = http_link_wait(l, deadline, NULL);
        if (r == -ETIMEDOUT)
            return err_set(err, r, "no TLS handshake in time");
        if (r < 0)
            return err_sys(err, r, "cannot wait for a socket");
    }
}

int http_link_open(struct http_link *l, const struct uri *to, struct tls_config *config,
    uint64_t deadline, struct err *err)
{
    int r;

    *l = HTTP_LINK_INIT;
    r = connect_any(l, to, deadline, err);
    if (r == 0 && config)
        r = start_tls(l, config, deadline, err);
    if (r < 0)
        http_link_close(l);
    return r;
}

ssize_t http_link_try_read(struct http_link *l, void *data, size_t len, struct err *err)
{
    ssize_t n;

    if (l->tls)
        return l->tls->ops->read(l->tls, data, len, err);
    do
        n = recv(l->fd, data, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    return errno == EAGAIN ? -EAGAIN : err_sys(err, -errno, "the connection was lost");
}

ssize_t http_link_try_write(struct http_link *l, const void *data, size_t len, struct err *err)
{
    ssize_t n;

    if (l->tls)
        return l->tls->ops->write(l->tls, data, len, err);
    do
        n = send(l->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    return errno == EAGAIN ? -EAGAIN : err_sys(err, -errno, "the connection was lost");
}

bool http_link_is_idle(struct http_link *l)
{
    char byte;

    return l->fd >= 0 && http_link_try_read(l, &byte, 1, NULL) == -EAGAIN;
}
