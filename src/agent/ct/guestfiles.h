/* The files of ours in a container's root. Internal to this folder. */
#ifndef AGENT_CT_GUESTFILES_H
#define AGENT_CT_GUESTFILES_H

#include "agent/ct/guest.h"

/* Mount points, accounts, hosts, hostname, resolv.conf, ssh, home, working folder. */
int guestfiles_make(const struct rootfs_dirs *d, const struct guest *g, const struct assignment *a,
    const struct assigned_container *c, struct err *err);
/* The node's resolv.conf less resolvers on a loopback address, which the container cannot reach.
 * Pure. Heap. */
char *guestfiles_resolv(const char *text);

#endif
