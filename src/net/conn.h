/*
 * A connection as a stream of bytes, plain or TLS, accepted or dialled, with a bounded-by-its-owner
 * send queue. Below it are libuv, a socket and struct tls; above it HTTP and WebSocket.
 *
 * Ownership: a struct conn belongs to the library from conn_adopt or conn_connect on. The owner
 * hears closed exactly once, unless it let go before with conn_close or conn_kill. closed never
 * comes from inside one of the calls below.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "net/cert.h"
#include "net/internal.h"
#include "net/sock.h"

struct conn;
struct tls_config;

struct conn_events {
    void (*data)(struct conn *c, const char *data, size_t len, void *owner);
    /* Something of the queue went out. */
    void (*written)(struct conn *c, void *owner);
    void (*closed)(struct conn *c, void *owner);
};

struct conn_peer {
    char address[SOCK_TEXT_MAX];
    uint16_t local_port;
};

/* What was accepted. tls NULL: plain. fd is owned by the call. */
int conn_adopt(struct net *net, struct tls_config *tls, int fd, const struct conn_peer *peer,
    struct conn **ret);
/* Dial. What is sent before the connection and its TLS are there waits for them; that they come to
 * nothing is told by closed. */
int conn_connect(
    struct net *net, struct tls_config *tls, const union sock_address *to, struct conn **ret);
void conn_set_owner(struct conn *c, const struct conn_events *events, void *owner);

/* Returns the bytes that wait to be sent; 0 when the connection is already broken. */
size_t conn_send(struct conn *c, const void *data, size_t len);
/* len bytes of a regular file behind what is queued; fd is owned by the call. Nothing else may be
 * sent before conn_queued is 0. */
void conn_send_file(struct conn *c, int fd, uint64_t offset, uint64_t len);
/* Bytes that wait, those of a file included. */
uint64_t conn_queued(const struct conn *c);
void conn_pause(struct conn *c, bool pause);

/* Let go: what is queued is sent, then the peer is given a moment to close first, so that what we
 * said is not lost to a reset. */
void conn_close(struct conn *c);
/* Let go: closed in the next turn without sending more. */
void conn_kill(struct conn *c);
/* Broken from now on: the owner hears closed in the next turn. */
void conn_abort(struct conn *c);

const struct conn_peer *conn_peer(const struct conn *c);
struct net *conn_net(const struct conn *c);
/* Why it broke, for the owner's closed; NULL when the peer just closed. */
const char *conn_error(const struct conn *c);
/* The client's certificate, which was checked; false without one. */
bool conn_cert(const struct conn *c, struct cert_info *ret);

#endif
