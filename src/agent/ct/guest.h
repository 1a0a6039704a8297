/*
 * Writing into a container's root from outside, before anything runs in it. Nothing the image
 * contains is trusted: names are resolved inside the root, a link or a FIFO where a file or folder
 * of ours belongs is replaced, never followed. Internal to this folder.
 */
#ifndef AGENT_CT_GUEST_H
#define AGENT_CT_GUEST_H

#include <sys/types.h>

#include "agent/ct/paths.h"

struct guest {
    int root;       /* of the merged tree */
    uint32_t owner; /* root-in-container's uid and gid on the node */
    uint32_t work;  /* work's */
};

int guest_open(const struct rootfs_dirs *d, const struct user *user, const char *id,
    struct guest *ret, struct err *err);
void guest_done(struct guest *g);

/*
 * The folder at path (absolute, as the container sees it), made with its parents when missing
 * (0755, root-in-container's). A parent that is a link is followed inside the root if a folder is
 * there, but for /dev /etc /proc /sys; the last name and anything else is replaced. Returns the fd
 * or a negative errno.
 */
int guest_dir(const struct guest *g, const char *path, struct err *err);
/* An empty regular file to mount upon. */
int guest_mount_file(const struct guest *g, const char *path, struct err *err);

/* Replace the file, whatever it is, by one of ours. owner: on the node. */
int guest_write(const struct guest *g, const char *path, const void *data, size_t len,
    uint32_t owner, mode_t mode, struct err *err);
/* Read a regular file, links followed inside the root. -ENOENT, -EINVAL (something else is there),
 * -EFBIG. */
int guest_read(const struct guest *g, const char *path, size_t max, char **ret, size_t *ret_len);
/* A regular file that somebody may execute is there (links followed inside the root). */
bool guest_is_program(const struct guest *g, const char *path);
bool guest_exists(const struct guest *g, const char *path); /* links followed inside */

#endif
