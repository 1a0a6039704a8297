/*
 * Where things of a container lie, and the check that an id is one before it becomes part of a
 * path. Internal to this folder.
 */
#ifndef AGENT_CT_PATHS_H
#define AGENT_CT_PATHS_H

#include "agent/ct/rootfs.h"

#define CT_PATH_MAX 512
#define CT_UID_WORK 1000 /* inside */

/* RUN/ct/ID/REST; "" for the folder itself. */
char *ct_run_path(
    const struct rootfs_dirs *d, const char *id, const char *rest, char path[CT_PATH_MAX]);
/* STATE/ct/ID/REST. */
char *ct_state_path(
    const struct rootfs_dirs *d, const char *id, const char *rest, char path[CT_PATH_MAX]);
/* RUN/REST. */
char *ct_path(const char *dir, const char *rest, char path[CT_PATH_MAX]);

/* -EINVAL when text is not a UUID: nothing else becomes a file name. what: "container", ... */
int ct_check_id(const char *what, const char *text, struct err *err);
/* "sha256:HEX" -> HEX (borrowed); NULL if it is not one. */
const char *ct_digest_hex(const char *digest);

#endif
