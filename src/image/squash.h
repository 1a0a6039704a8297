/* A squashfs file, as enroot makes them (.sqsh), to the tar of a root file system. */
#ifndef IMAGE_SQUASH_H
#define IMAGE_SQUASH_H

#include "base/err.h"

/* It begins as a squashfs does. */
bool squash_is_one(const char *path);
/* Makes FOLDER, and FOLDER/rootfs.tar of at most max bytes. Blocks. */
int squash_to_tar(const char *path, const char *folder, uint64_t max, struct err *err);

#endif
