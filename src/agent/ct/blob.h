/* What rootfs.c and overlay.c need of blobs beside rootfs.h. Internal to this folder. */
#ifndef AGENT_CT_BLOB_H
#define AGENT_CT_BLOB_H

#include "agent/ct/paths.h"

/* Below RUN/ct/ID: the digests that the container uses, one a line. Written before any blob_mount
 * for it. */
#define BLOB_LIST_FILE "layers"

/* Where the blob is mounted. */
char *blob_path(const struct rootfs_dirs *d, const char *hex, char path[CT_PATH_MAX]);

#endif
