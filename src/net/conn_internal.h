/* What conn.c (life, reading, closing) and conn_out.c (the send queue) share. */
#ifndef NET_CONN_INTERNAL_H
#define NET_CONN_INTERNAL_H

#include "net/conn.h"
#include "net/tls_ops.h"

/*
 *  CONNECTING -> SHAKING -> OPEN -> DEAD      SHAKING: TLS only
 *       \___________\_________________^
 */
enum conn_phase { CONN_CONNECTING, CONN_SHAKING, CONN_OPEN, CONN_DEAD };

struct conn {
    struct net *net;
    struct list link;
    uv_poll_t poll;
    int watched; /* events that poll looks for */
    int fd;
    struct tls *tls; /* NULL: plain */
    enum conn_phase phase;
    const struct conn_events *events; /* NULL: let go */
    void *owner;
    struct conn_peer peer;
    struct net_timer timer; /* death, flush and linger */
    struct net_timer again; /* read what no socket tells of */
    char *error;
    char *out; /* the queue: out_len bytes from out_pos on */
    size_t out_pos, out_len, out_cap;
    int file_fd;
    uint64_t file_offset, file_len;
    bool accepted;
    bool paused;
    bool broken;  /* dies in the next turn */
    bool closing; /* conn_close was called */
    bool shut;    /* our side of the stream is closed; what still comes is thrown away */
};

/* Why it is going to break; the first reason is kept. */
void conn_note(struct conn *c, const struct err *err);
/* Have poll look for what is needed now. */
void conn_watch(struct conn *c);
/* Send of the queue what the socket takes. False when the connection broke. */
bool conn_pump(struct conn *c);

#endif
