/*
 * What server.c (requests), body.c (their bodies) and reply.c (the answers) share.
 */
#ifndef NET_SERVER_INTERNAL_H
#define NET_SERVER_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "net/conn.h"
#include "net/http1.h"
#include "net/server.h"

struct server_handler {
    request_fn fn;
    void *arg;
};

/* One accepted connection and the request that is on it now. */
struct server_conn {
    struct net *net;
    struct conn *conn; /* NULL: gone, or handed on */
    struct server_handler handler;
    struct request *rq;
    struct buf in; /* received and not yet used */
    size_t in_used;
    size_t scanned; /* of the head */
    bool paused;
    bool pumping;       /* server_pump is on the stack */
    uint64_t body_mark; /* bytes of the body when the deadline was last moved */
    struct net_timer deadline;
    struct net_timer soon;
};

enum body_mode { BODY_UNASKED, BODY_MEMORY, BODY_PIECES };

/*
 *  HEAD -> ASKED -> STARTED -> ANSWERED
 *            \________________/
 */
enum reply_state { REPLY_NONE, REPLY_STARTED, REPLY_DONE };

struct request {
    struct server_conn *sc;
    char *text; /* the head, cut up */
    struct http1_head head;
    const char *path, *query;
    struct map params;     /* decoded values of the query that were asked for */
    struct cert_info cert; /* of the client */
    bool has_cert;
    void *data;
    void (*gone)(struct request *rq, void *arg);
    void *gone_arg;

    struct http1_body body;
    enum body_mode mode;
    bool body_given; /* the end was told */
    uint64_t body_max, body_seen;
    struct buf memory;
    void (*whole)(struct request *rq, const char *body, size_t len, void *arg);
    int (*piece)(struct request *rq, const char *data, size_t len, void *arg);
    void *body_arg;

    enum reply_state reply;
    bool keep; /* the connection, after the answer */
    bool chunked;
    bool no_body;   /* HEAD, 204, 304 */
    bool cached;    /* a Cache-Control was added */
    bool above_low; /* the queue was, so drained is due */
    struct buf extra;
    void (*drained)(struct request *rq, void *arg);
    void *drained_arg;
};

#define SERVER_EXTRA_MAX ((size_t)16 << 10)

void server_accept(struct conn *c, const struct server_handler *handler);
/* Look at everything again in the next turn. */
void server_later(struct server_conn *sc);
/* These bytes of in were used. A piece that points at them is still good until the next ones. */
void server_in_drop(struct server_conn *sc, size_t len);
/* Answer for the library: {"code": ..., "message": ...}, and close afterwards. */
void server_refuse(struct request *rq, unsigned status, const char *message);

/* body.c: give what there is to who asked. False when nothing moved. */
bool body_pump(struct request *rq);
/* All of the body is here: the connection can take another request. */
bool body_drop_rest(struct request *rq);

#endif
