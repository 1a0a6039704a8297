/*
 * Files. Everything that comes from outside is bounded before it is read; everything that must
 * survive a crash is written beside, synced and renamed; paths below a folder that somebody else
 * can write to go through fs_open_beneath (openat2(2), RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS).
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <sys/types.h>

#include "base/err.h"

/* Read a whole file of at most max bytes; NUL-terminated; ret_len may be NULL. -EFBIG if larger;
 * -EINVAL if it is not a regular file. */
int fs_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err);
/* Write beside, fsync, rename, fsync the folder. */
int fs_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *err);
/* The same without any fsync: for run-time files that a reboot may lose. */
int fs_write(const char *path, const void *data, size_t len, mode_t mode, struct err *err);
/* Write to an existing file (procfs, cgroupfs, sysfs) with one write(2). */
int fs_write_existing(const char *path, const char *text, struct err *err);

/* mkdir -p; existing folders are left as they are. */
int fs_mkdir_p(const char *path, mode_t mode, struct err *err);
/* rm -r without following links and without leaving the file system; a path that is not there is
 * no error. -EBUSY when a mount stands in the way (nothing behind the mount is touched). */
int fs_remove_tree(const char *path, struct err *err);
bool fs_exists(const char *path); /* lstat */

/*
 * Open path below the folder dirfd with openat2(2): flags as open(2), resolve RESOLVE_IN_ROOT when
 * in_root (links are followed inside the folder), RESOLVE_BENEATH otherwise. Returns the fd or a
 * negative errno (-ELOOP, -EXDEV when the path would leave).
 */
int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode, bool in_root);

/* fsync the folder that holds path. */
int fs_sync_parent(const char *path);

#endif
