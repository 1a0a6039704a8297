/* Container Device Interface specifications (CNCF CDI 0.3 to 0.8). Internal to this folder. */
#ifndef AGENT_CT_CDI_H
#define AGENT_CT_CDI_H

#include "agent/ct/gpu.h"

/*
 * Find the specification of "nvidia.com/gpu" in ROOT/etc/cdi and ROOT/var/run/cdi (*.json, *.yaml,
 * in order of name; the latter folder wins). -ENOENT: there is none. Device nodes without numbers
 * are looked up below root.
 */
int cdi_load(const char *root, json_t **ret, struct err *err);
/*
 * Add what the specification says for these GPUs (named by uuid or index) and for all. Its hooks
 * are not run: a program that a file names would run as root on the node.
 */
int cdi_apply(const json_t *spec, const char *root, const struct gpu *gpus, const uint32_t *given,
    uint32_t given_count, struct runtime_extra *x, struct err *err);

/* Append a device unless its container_path is there. -ENAMETOOLONG. */
int extra_add_device(struct runtime_extra *x, const char *host, const char *container,
    uint32_t major, uint32_t minor, struct err *err);

#endif
