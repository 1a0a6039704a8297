/* IPv4 networks that are in use already, to choose others. Addresses are in host byte order. */
#ifndef CLI_IP_USED_H
#define CLI_IP_USED_H

#include "base/err.h"

struct ip_range {
    uint32_t lo, hi; /* both are in it */
};

struct ip_used {
    struct ip_range *ranges;
    size_t count, cap;
};

void ip_used_done(struct ip_used *u);
/* The network of this address; one of everything (mask 0) is none. */
void ip_used_add(struct ip_used *u, uint32_t ip, uint32_t mask);
/* text: of /proc/net/route, see proc_net_route(5); lines of another form are skipped. */
void ip_used_add_routes(struct ip_used *u, const char *text);
/* text: of a resolv.conf(5). */
void ip_used_add_name_servers(struct ip_used *u, const char *text);
/* All of this machine: addresses, routes, name servers. */
int ip_used_add_machine(struct ip_used *u, struct err *err);
bool ip_used_overlaps(const struct ip_used *u, struct ip_range range);

#endif
