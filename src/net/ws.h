/*
 * A WebSocket (RFC 6455), server or client side. Messages arrive whole. Sending copies and queues;
 * the queue is bounded by net_limits.ws_queue_max.
 *
 * Ownership: a struct ws belongs to the library; it is valid until closed was called, which happens
 * exactly once for each (also for a client that never connected, and from net_free).
 */
#ifndef NET_WS_H
#define NET_WS_H

#include "net/net.h"

struct ws;

struct ws_events {
    /* client side: the handshake is done. May be NULL. */
    void (*opened)(struct ws *ws, void *arg);
    /* data is valid during the call only; len may be 0. */
    void (*message)(struct ws *ws, const void *data, size_t len, bool binary, void *arg);
    /* the queue fell below 64 KiB after having been above. May be NULL. */
    void (*drained)(struct ws *ws, void *arg);
    /* code: RFC 6455 section 7.4.1; 1006 without a close frame; status: the HTTP status of a
     * refused client handshake, or 0. text: reason, never NULL. */
    void (*closed)(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg);
};

/* Bytes that wait to be sent, this message included; 0 when it is already closing. */
size_t ws_send(struct ws *ws, const void *data, size_t len, bool binary);
size_t ws_send_text(struct ws *ws, const char *text);
size_t ws_queued(const struct ws *ws);
/* Stop or go on reading (back pressure on the peer). */
void ws_pause(struct ws *ws, bool pause);
/* What is queued is sent first (for 5 s at most), then the close frame; closed is called later,
 * from the loop, never from inside this call. */
void ws_close(struct ws *ws, unsigned code, const char *text);
void *ws_arg(const struct ws *ws);
void ws_set_arg(struct ws *ws, void *arg);

struct ws_connect_opts {
    const char *url;   /* "ws://host:port/path?query" or "wss://..." */
    const char *token; /* sent as "Authorization: Bearer ..."; may be NULL */
    /* wss: CA file to trust (NULL: the system's), and the client's certificate. */
    const char *ca_path, *cert_path, *key_path;
    const char *server_name; /* what its certificate must be for, instead of the URL's host */
    uint64_t timeout_usec;   /* to connect and shake hands; 0: 10 s */
};

/* Never fails at once but for a malformed URL (-EINVAL): what goes wrong later comes as closed. */
int ws_connect(struct net *net, const struct ws_connect_opts *opts, const struct ws_events *events,
    void *arg, struct ws **ret, struct err *err);

#endif
