/* The stack of a container's layers. Internal to this folder. */
#ifndef AGENT_CT_OVERLAY_H
#define AGENT_CT_OVERLAY_H

#include "agent/ct/rootfs.h"

/*
 * Idmap the mounted blobs of the assignment's layers for its user, stack them under the container's
 * upper folder, attach at RUN/ct/ID/merged. upper and work are made; the root of upper gets the top
 * layer's owner and mode, as mapped.
 */
int overlay_make(
    const struct rootfs_dirs *d, const struct assignment *a, const char *id, struct err *err);

#endif
