/* The tmpfs at /etc/muster. Internal to this folder. */
#ifndef AGENT_CT_ETC_H
#define AGENT_CT_ETC_H

#include "agent/ct/rootfs.h"

/* Make, fill and attach it at RUN/ct/ID/etc. */
int etc_make(const struct rootfs_dirs *d, const struct assignment *a,
    const struct assigned_container *c, char *const *env, struct err *err);
/* Init's plan, as records that end with NUL. Heap; *ret_len bytes. */
int etc_plan(const struct assignment *a, const struct assigned_container *c, char *const *env,
    char **ret, size_t *ret_len, struct err *err);

#endif
