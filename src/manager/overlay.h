/* Network numbers of sessions: a /22 of the overlay each while they are placed, and a VNI nobody
 * can guess. */
#ifndef MANAGER_OVERLAY_H
#define MANAGER_OVERLAY_H

#include "manager/manager.h"

/* Check that the CIDR is an IPv4 network of /8 to /20. */
int overlay_parse(const char *cidr, uint32_t *ret_base, uint32_t *ret_count, struct err *err);
/* Set s->subnet and s->vni to ones that no live session has; what it had is free. -ENOSPC. */
int overlay_assign(struct manager *m, struct session *s, struct err *err);
/* It has been loaded with a network. */
void overlay_take(struct manager *m, struct session *s);
/* It has none any more. */
void overlay_free(struct manager *m, struct session *s);

/* Add what sessions must not reach of each other: the overlay, and networks of live sessions that
 * are from another one, before the configuration was changed. */
void overlay_block(struct manager *m, char ***blocked);

#endif
