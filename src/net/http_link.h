/*
 * A connection that its user waits for, with a deadline: a socket, plain or TLS. Under the blocking
 * HTTP client only. Deadlines are monotonic time in usec; UINT64_MAX is none.
 */
#ifndef NET_HTTP_LINK_H
#define NET_HTTP_LINK_H

#include "net/tls_ops.h"
#include "net/uri.h"

struct http_link {
    int fd; /* -1: not connected */
    struct tls *tls;
};

#define HTTP_LINK_INIT ((struct http_link){.fd = -1})

/* config: of TLS, or NULL. -ETIMEDOUT, -ECONNREFUSED, -EPERM and others with text. */
int http_link_open(struct http_link *l, const struct uri *to, struct tls_config *config,
    uint64_t deadline, struct err *err);
void http_link_close(struct http_link *l);
/* Is a connection that was kept still there, with nothing said on it? */
bool http_link_is_idle(struct http_link *l);

/* What can be done without waiting: bytes, 0 at the end (read), -EAGAIN, or an error. */
ssize_t http_link_try_read(struct http_link *l, void *data, size_t len, struct err *err);
ssize_t http_link_try_write(struct http_link *l, const void *data, size_t len, struct err *err);
/* After -EAGAIN of a read: wait for more. -ETIMEDOUT. */
int http_link_wait(struct http_link *l, uint64_t deadline, struct err *err);
/* After -EAGAIN of a write: wait for room, or for the peer to say something. */
int http_link_wait_room(struct http_link *l, uint64_t deadline, struct err *err);
/* Wait for a descriptor of the caller, or for the peer to say something. 1: the descriptor has
 * something. */
int http_link_wait_for(struct http_link *l, int fd, uint64_t deadline, struct err *err);

#endif
