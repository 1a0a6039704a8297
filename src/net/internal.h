/*
 * What the files of src/net share: the struct net and its coarse timers. Nothing outside this
 * folder includes it.
 */
#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

#include "base/list.h"
#include "net/net.h"

/* Owners of a queue are told to go on when it falls below this. */
#define NET_QUEUE_LOW ((size_t)64 << 10)
/* Bytes that one read hands up at most. */
#define NET_READ_MAX ((size_t)16 << 10)

/*
 * Coarse timers: a list under one uv_timer_t. Setting one costs nothing most of the time, which is
 * what deadlines that are nearly always moved before they come need. delay 0: in the next turn.
 */
struct net_timer {
    struct list link;
    uint64_t at_msec; /* of uv_now */
    void (*fn)(struct net_timer *timer);
};

struct net {
    uv_loop_t *loop;
    struct net_limits limits;
    uv_timer_t timer;
    uint64_t timer_at;  /* when it rings; UINT64_MAX: not set */
    struct list timers; /* of net_timer, in no order */
    struct list soon;   /* of net_timer, for the next turn */
    struct list listeners;
    struct list conns;   /* of conn */
    struct list sockets; /* of ws */
    struct list tls;     /* of tls_client: settings that were used */
    unsigned conn_count; /* accepted ones */
    bool closing;
};

void net_timer_init(struct net_timer *timer, void (*fn)(struct net_timer *timer));
void net_timer_set(struct net *net, struct net_timer *timer, uint64_t delay_msec);
void net_timer_stop(struct net_timer *timer);

/* Close all that is open of each sort, with its callbacks (net_free). */
void listeners_close(struct net *net);
void conns_close(struct net *net);
void sockets_close(struct net *net);
void tls_clients_free(struct net *net);

#endif
