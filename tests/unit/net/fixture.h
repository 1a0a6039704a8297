/*
 * One loop with a net on it, a server that answers a handful of paths, and raw sockets that say
 * whatever a test wants. Everything runs in one thread: wait_for() turns the loop.
 */
#ifndef TEST_NET_FIXTURE_H
#define TEST_NET_FIXTURE_H

#include "base/buf.h"
#include "base/str.h"
#include "net/net.h"
#include "net/server.h"
#include "net/ws.h"
#include "unit.h"

struct fixture {
    uv_loop_t loop;
    struct net *net;
    uint16_t port;
};

/* The small limits of a test; NULL: the defaults. */
void fixture_begin(struct fixture *f, const struct net_limits *limits, request_fn fn, void *arg);
/* net_free, one run of the loop, nothing may be left. */
void fixture_end(struct fixture *f);

/* Turn the loop until *done, or fail after the time. */
void wait_for(struct fixture *f, const bool *done, unsigned msec);
void turn_for(struct fixture *f, unsigned msec);

/* A client made of a socket. */
int raw_connect(struct fixture *f);
void raw_send(struct fixture *f, int fd, const void *data, size_t len);
void raw_say(struct fixture *f, int fd, const char *text);
/* What came until the server closed, or until the wanted text is there. */
void raw_read_all(struct fixture *f, int fd, struct buf *to, unsigned msec);
void raw_read_until(struct fixture *f, int fd, struct buf *to, const char *text, unsigned msec);
bool raw_is_closed(struct fixture *f, int fd, unsigned msec);
/* Ask and read all of the answer until the server closes. Heap. */
char *raw_ask(struct fixture *f, const char *request);

/* Self-signed authority, a server's and a client's certificate in a new folder. */
struct certs {
    char dir[64];
    char ca[96], cert[96], key[96], client_cert[96], client_key[96], other_cert[96], other_key[96];
};

void certs_make(struct certs *c);
void certs_remove(struct certs *c);

#endif
