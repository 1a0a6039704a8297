/* Data folders of the node in a container. Internal to this folder. */
#ifndef AGENT_CT_VOLUME_H
#define AGENT_CT_VOLUME_H

#include "agent/ct/guest.h"

/* Indexes into a->mounts such that a folder comes before what is mounted inside it. Heap. */
uint32_t *volume_order(const struct assignment *a);
/* path is at or below the target of one of the volumes. */
bool volume_covers(const struct assignment *a, const char *path);

/* Make every volume's mount point, in the root or in the volume around it, and attach it there. */
int volume_make(const struct assignment *a, const struct guest *g, struct err *err);

#endif
