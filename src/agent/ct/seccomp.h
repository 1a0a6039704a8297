/* The seccomp profile. Internal to this folder. */
#ifndef AGENT_CT_SECCOMP_H
#define AGENT_CT_SECCOMP_H

#include "base/json.h"

/*
 * A profile in the form of containers-common (containers-seccomp.json(5): names, archMap, includes
 * and excludes by capability, architecture and kernel) as linux.seccomp of the OCI runtime
 * specification, for this machine and a container with these capabilities ("CAP_CHOWN", NULL at the
 * end).
 */
int seccomp_convert(const json_t *profile, const char *const *caps, json_t **ret, struct err *err);
/* The same from a file. */
int seccomp_load(const char *path, const char *const *caps, json_t **ret, struct err *err);

#endif
