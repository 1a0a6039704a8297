/*
 * The network side of one event loop: HTTP/1.1 and WebSocket, server and client, behind a small
 * interface, on sockets that libuv polls. All calls and callbacks happen on the loop's thread.
 * HTTP/2 is never offered (docs/decisions/http11-only.md).
 *
 * Bounds: every size that a peer can choose has a maximum in struct net_limits.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <uv.h>

#include "base/err.h"

struct net;

struct net_limits {
    size_t body_max;          /* bytes of a request body that is kept in memory; default 1 MiB */
    size_t ws_message_max;    /* bytes of one received WebSocket message; default 4 MiB */
    size_t ws_queue_max;      /* bytes queued towards one slow WebSocket or streamed reply before it
                                 is closed (1013, or the connection cut); default 16 MiB */
    unsigned connections_max; /* at one time; default 4096 */
    uint64_t idle_usec;       /* a connection with no request, or a request that does not come
                                 forward; default 30 s */
    uint64_t ping_usec; /* WebSocket ping after so much silence, dead after twice; default 15 s */
};

/* limits may be NULL, and zero members mean their default. A program that answers with files
 * ignores SIGPIPE: sendfile(2) raises it. */
int net_new(uv_loop_t *loop, const struct net_limits *limits, struct net **ret, struct err *err);
/* Close everything; callbacks of what is open are called before it returns. The loop has to run
 * once more for libuv to let go of the handles. */
void net_free(struct net *net);

#endif
