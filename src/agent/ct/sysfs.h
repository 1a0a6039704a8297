/* The container's own /sys. Internal to this folder. */
#ifndef AGENT_CT_SYSFS_H
#define AGENT_CT_SYSFS_H

#include "base/err.h"

/* Mount a sysfs of the network namespace at netns_path on target, read-only; nothing if it is
 * mounted. */
int sysfs_make(const char *netns_path, const char *target, struct err *err);

#endif
