/* The OCI configuration's parts that exec.c shares with it. Internal to this folder. */
#ifndef AGENT_CT_OCI_H
#define AGENT_CT_OCI_H

#include "agent/ct/runtime.h"

/* What root in the container may do in its own user namespace; NULL at the end. */
extern const char *const oci_capabilities[];
/* The "capabilities" of a process: all of them, or as a bounding set only, for sudo(8). */
json_t *oci_capability_sets(bool root);
/* "CGROUP/SESSION/CONTAINER". Heap. */
char *oci_cgroup(const struct runtime *rt, const char *session_id, const char *container_id);

#endif
