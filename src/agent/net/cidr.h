/*
 * Lists of IPv4 networks as sorted ranges that do not touch: what an nftables set with intervals
 * takes, and the check that text from outside is an address and nothing else.
 */
#ifndef AGENT_NET_CIDR_H
#define AGENT_NET_CIDR_H

#include "base/buf.h"
#include "base/err.h"

struct cidr_range {
    uint32_t lo, hi; /* host byte order, both inside */
};

struct cidr_list {
    struct cidr_range *ranges;
    size_t count, cap;
};

void cidr_list_done(struct cidr_list *l);
void cidr_list_add(struct cidr_list *l, uint32_t lo, uint32_t hi);
/* "10.9.0.0/24" or "10.9.0.1"; host bits may be set. IPv6 networks are checked and left out:
 * sessions have no IPv6. -EINVAL with the text in quotes. */
int cidr_list_add_text(struct cidr_list *l, const char *text, struct err *err);
/* Sort, join. */
void cidr_list_normalise(struct cidr_list *l);
/* "10.9.0.0-10.9.0.255, 10.9.1.7"; nothing when empty. */
int cidr_list_print(const struct cidr_list *l, struct buf *out);

#endif
