/*
 * The mount calls of Linux 5.2 and later, with errors that say what was tried. Mounts are made
 * detached (nobody can see or race them), get their flags, and are attached last.
 * Internal to this folder.
 */
#ifndef AGENT_CT_MNT_H
#define AGENT_CT_MNT_H

#include <sys/mount.h>

#include "base/err.h"

/* A detached copy of the mount at path below dirfd (path "": dirfd itself). Returns the fd or a
 * negative errno. */
int mnt_clone(int dirfd, const char *path, bool recursive);

/* Set MOUNT_ATTR_* flags on a mount; propagation 0 leaves it. */
int mnt_set(int fd, uint64_t flags, uint64_t propagation, bool recursive);
/* Map ids through a user namespace. */
int mnt_set_idmap(int fd, int userns_fd);
/* Attach at target, which only root can change. */
int mnt_attach(int fd, const char *target);

struct mnt_opt {
    const char *key;
    const char *value; /* NULL: a flag */
};
/* A new detached file system; options end with a row of zeros. Returns the fd; the kernel's own
 * words are in err when it has any. */
int mnt_new(const char *fstype, const struct mnt_opt *opts, uint64_t attrs, struct err *err);
/* The same on a context that the caller made with fsopen(2); closes nothing. */
int mnt_finish(int context, const char *fstype, uint64_t attrs, struct err *err);
/* What the kernel wrote into the context's log about a failure; "" if nothing. */
void mnt_log(int context, char *text, size_t size);

/* path is the root of a mount (statx(2); no symbolic link is followed). */
bool mnt_is_root(const char *path);
/*
 * Unmount everything at and below path, in the calling process's mount namespace. A mount goes with
 * all that is mounted in it at once, by the path of the outermost: what lies inside may be in a
 * user's folder, who could put a link there while we walk. path and the names of the outermost
 * mounts are root's.
 */
int mnt_unmount_below(const char *path, struct err *err);

#endif
