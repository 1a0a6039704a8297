/*
 * mkfs.erofs: from 1.7 on it packs a tar as it streams; Debian 12's 1.5 packs a folder. Which one
 * is here is asked once. The images are lz4: every kernel with EROFS reads it. Of 914 MB it made
 * 490 in 2.4 s of CPU time; lz4hc 408 in 32 s, its level 3 419 in 12 s.
 */
#ifndef IMAGE_EROFS_H
#define IMAGE_EROFS_H

#include <sys/types.h>

#include "base/err.h"

struct erofs_tool {
    const char *program; /* borrowed; a name or a path */
    bool takes_tar;
};

int erofs_probe(const char *program, struct erofs_tool *ret, struct err *err);
/* Pack the folder into the file. Blocks. */
int erofs_pack_tree(
    const struct erofs_tool *t, const char *dir, const char *image, struct err *err);

/* Pack a tar: write it to *ret_fd, close that, then wait. */
struct erofs_job {
    pid_t pid;
    int messages; /* file with its stderr */
};

int erofs_tar_start(const struct erofs_tool *t, const char *scratch, const char *image,
    struct erofs_job *ret, int *ret_fd, struct err *err);
int erofs_tar_wait(struct erofs_job *j, struct err *err);
/* Kill and reap, when the tar cannot be written to its end. */
void erofs_tar_abort(struct erofs_job *j);

#endif
