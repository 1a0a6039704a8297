/*
 * Where an image comes from, once it is on this machine: a tar of a root file system, an OCI layout
 * (folder or tar) or a docker-archive; the kind is seen from the content. Gives out pieces: byte
 * ranges of files, so that members of an uncompressed tar are read where they are.
 */
#ifndef IMAGE_SOURCE_H
#define IMAGE_SOURCE_H

#include "base/err.h"
#include "base/map.h"

enum source_kind { SOURCE_ROOTFS, SOURCE_OCI, SOURCE_DOCKER };

struct piece {
    int fd; /* owned */
    uint64_t off, len;
};

void piece_done(struct piece *p);
/* All of it; -EFBIG when longer than max. Heap, NUL-terminated. */
int piece_read(const struct piece *p, size_t max, char **ret, struct err *err);

struct source {
    enum source_kind kind;
    int fd; /* the folder, or the tar without compression (unlinked if we made it) */
    bool is_dir;
    struct map members; /* of a tar, by clean name */
};

/* scratch: a folder of ours; a compressed tar with members is unpacked into a file there, of at
 * most max bytes. */
int source_open(
    const char *path, const char *scratch, uint64_t max, struct source **ret, struct err *err);
void source_free(struct source *s);
void source_freep(struct source **s);

/* One member ("index.json", "blobs/sha256/HEX"); the whole file for a SOURCE_ROOTFS, name NULL.
 * -ENOENT. */
int source_piece(const struct source *s, const char *name, struct piece *ret, struct err *err);

#endif
