/*
 * HTTP server. One function gets every request when its head is there; it answers at once or later,
 * takes the body in memory, in pieces, or upgrades to a WebSocket.
 *
 * Ownership: a struct request lives until it was answered and the answer was written, or the peer
 * is gone. Who answers later sets request_on_gone, and must not touch the request after that call.
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include "net/cert.h"
#include "net/net.h"
#include "net/ws.h"

struct request;

typedef void (*request_fn)(struct request *rq, void *arg);

struct listen_opts {
    const char *host; /* "127.0.0.1", "::1", "0.0.0.0"; no names */
    uint16_t port;    /* 0: any free one */
    /* TLS when cert_path is set; ca_path: ask for and check client certificates (optional ones). */
    const char *cert_path, *key_path, *ca_path;
    /* The same once more, for clients that ask for this name (SNI); NULL: all see the above. */
    struct {
        const char *name, *cert_path, *key_path, *ca_path;
    } named;
    request_fn fn;
    void *arg;
};

/* May be called several times. -EADDRINUSE and others with text. ret_port (may be NULL): the port.
 * SO_REUSEADDR is set, SO_REUSEPORT is not. */
int server_listen(
    struct net *net, const struct listen_opts *opts, uint16_t *ret_port, struct err *err);
/* From now on all listeners with TLS have these certificates (the files of opts, read anew);
 * connections that stand go on. On errors all is as before. */
int server_renew_tls(struct net *net, const struct listen_opts *opts, struct err *err);

/* What was asked. Borrowed; valid as long as the request. */
const char *request_method(const struct request *rq); /* "GET" */
const char *request_path(const struct request *rq);   /* percent-decoded once, starts with '/', no
                                                         query; requests whose path has NUL or
                                                         ".." parts never get here (400) */
const char *request_query(const struct request *rq, const char *key); /* decoded; NULL if absent */
const char *request_header(const struct request *rq, const char *name); /* lower case; NULL. Known:
                                                           authorization, content-type,
                                                           content-length, origin, host,
                                                           idempotency-key, last-event-id, cookie,
                                                           user-agent, range, accept */
const char *request_peer(const struct request *rq);                     /* "10.9.0.1" */
uint16_t request_local_port(const struct request *rq);
const struct cert_info *request_cert(const struct request *rq); /* the client's certificate, which
                                                                was checked; NULL without one */
bool request_wants_upgrade(const struct request *rq);           /* a WebSocket handshake */

void request_set_data(struct request *rq, void *data);
void *request_data(const struct request *rq);
/* The peer went away before the answer was complete (also called by net_free). */
void request_on_gone(struct request *rq, void (*fn)(struct request *rq, void *arg), void *arg);

/* Ask for the whole body (at most limits.body_max; a longer one is answered 413 here and fn is not
 * called). fn gets it, also when it is empty. */
void request_read_body(struct request *rq,
    void (*fn)(struct request *rq, const char *body, size_t len, void *arg), void *arg);
/* Take the body in pieces of any size up to max bytes in all: fn(.., data, len) for each, then
 * fn(.., NULL, 0) at its end. A negative return answers 500 and cuts; over max answers 413. */
void request_stream_body(struct request *rq, uint64_t max,
    int (*fn)(struct request *rq, const char *data, size_t len, void *arg), void *arg);

/* Extra header for the answer; before the reply. Values with CR, LF or NUL are dropped. */
void request_add_header(struct request *rq, const char *name, const char *value);
/* The whole answer. body is copied. Sent with Content-Length, X-Content-Type-Options: nosniff, and
 * Cache-Control: no-store unless one was added. */
void request_reply(
    struct request *rq, unsigned status, const char *content_type, const void *body, size_t len);
/* A streamed answer (chunked; text/event-stream and the like). request_write returns how many bytes
 * wait to be sent; drained is called each time that falls below 64 KiB again. After request_end no
 * further call. */
void request_reply_start(struct request *rq, unsigned status, const char *content_type,
    void (*drained)(struct request *rq, void *arg), void *arg);
size_t request_write(struct request *rq, const void *data, size_t len);
void request_end(struct request *rq);
/* A file as the answer: from offset, len bytes (with Content-Length; 206 and Content-Range when it
 * is a part). fd is owned by the call. */
void request_reply_file(struct request *rq, const char *content_type, int fd, uint64_t offset,
    uint64_t len, uint64_t total);

/* Accept the handshake (only when request_wants_upgrade). The request is gone after this call;
 * events is kept by reference. Instead of upgrading any reply may be given (401 and so on). */
struct ws *request_upgrade(struct request *rq, const struct ws_events *events, void *arg);

#endif
