/* Names to addresses, for who may block, but not for ever. */
#ifndef NET_LOOKUP_H
#define NET_LOOKUP_H

#include "base/err.h"
#include "net/sock.h"

/* At most SOCK_ADDRESSES_MAX into to. -EHOSTUNREACH, or -ETIMEDOUT at the deadline (monotonic
 * time). */
int lookup(const char *host, uint16_t port, uint64_t deadline_usec, union sock_address *to,
    unsigned *ret_count, struct err *err);

#endif
