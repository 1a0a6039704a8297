/* Data folders of the node in a container. Internal to this folder. */
#ifndef AGENT_CT_VOLUME_H
#define AGENT_CT_VOLUME_H

#include "agent/ct/guest.h"

/* Indexes into a->mounts such that a folder comes before what is mounted inside it. Heap. */
uint32_t *volume_order(const struct assignment *a);
/* Where mount i is attached on the node: RUN/ct/ID/vol/I. */
char *volume_path(
    const struct rootfs_dirs *d, const char *id, uint32_t i, char path[CT_PATH_MAX]);
/* path is at or below the target of one of the volumes. */
bool volume_covers(const struct assignment *a, const char *path);

/* Attach every volume and make its mount point in the root or in the volume around it. */
int volume_make(const struct rootfs_dirs *d, const struct assignment *a, const char *id,
    const struct guest *g, struct err *err);

#endif
