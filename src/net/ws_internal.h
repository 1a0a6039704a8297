/*
 * What is common to a WebSocket all its life (ws.c), and what is below it: at first, for a client,
 * somebody who dials and shakes hands (ws_client.c), then frames on a struct conn (ws_conn.c).
 */
#ifndef NET_WS_INTERNAL_H
#define NET_WS_INTERNAL_H

#include "base/buf.h"
#include "net/frame.h"
#include "net/internal.h"
#include "net/ws.h"

struct conn;
struct ws;

#define WS_REASON_MAX 123

/* What is below. None of these may end the struct ws from inside the call. */
struct ws_side {
    void (*send)(struct ws *ws, enum frame_op op, const void *data, size_t len);
    size_t (*queued)(const struct ws *ws);
    void (*pause)(struct ws *ws, bool pause);
    /* Queue a close frame behind what is there. */
    void (*close)(struct ws *ws, unsigned code, const char *text);
    /* Drop the connection and free what the side holds; nothing is called back. */
    void (*drop)(struct ws *ws);
};

/*
 *  CONNECTING -> OPEN -> CLOSING -> (gone)
 *       \___________________________^
 */
enum ws_state { WS_CONNECTING, WS_OPEN, WS_CLOSING };

struct ws {
    struct list link;
    struct net *net;
    const struct ws_side *side;
    void *impl;
    const struct ws_events *events;
    void *arg;
    enum ws_state state;
    bool paused;
    bool above_low;    /* the queue was, so drained is due */
    bool too_slow;     /* the queue went over its maximum */
    uint64_t heard_at; /* when the peer last sent something, uv_now */
    enum { WS_HEARD, WS_PINGED, WS_SILENT } doubt;
    struct net_timer alive;
    struct net_timer close;
    unsigned close_code; /* of the frame that we sent */
};

void ws_init(struct ws *ws, struct net *net, const struct ws_side *side, void *impl,
    const struct ws_events *events, void *arg);
/* The handshake is done: from now on the frames of c are ws's. early: what was received behind the
 * handshake. The caller has taken its own side away. */
void ws_attach(struct ws *ws, struct conn *c, bool is_client, const void *early, size_t early_len);
void ws_open(struct ws *ws);
/* Something came from the peer. */
void ws_heard(struct ws *ws);
/* Part of the queue went out. */
void ws_written(struct ws *ws);
/* The end: drops the side, calls closed, frees. From the loop only. */
void ws_done(struct ws *ws, unsigned code, unsigned status, const char *text);

/* Server side: a new WebSocket on a connection whose handshake was answered. */
struct ws *ws_accept(
    struct conn *c, const void *early, size_t early_len, const struct ws_events *events, void *arg);

#endif
