/*
 * Memory that only grows, in an unnamed file: what is known about millions of names can be written
 * out by the kernel when memory is short, instead of ending the import. Zeroed, 8-byte aligned,
 * freed all at once.
 */
#ifndef IMAGE_ARENA_H
#define IMAGE_ARENA_H

#include "base/err.h"

struct arena {
    int fd;
    char *chunk; /* the newest */
    size_t used; /* of it */
    struct arena_map *maps;
    size_t count, cap;
    uint64_t size; /* of the file */
};

/* dir: a folder for the file. */
int arena_init(struct arena *a, const char *dir, struct err *err);
/* NULL when the disk is full (or n is over a chunk, 16 MiB, and memory is). */
void *arena_alloc(struct arena *a, size_t n);
/* Borrowed; NULL as above. */
void *arena_dup(struct arena *a, const void *p, size_t n);
void arena_done(struct arena *a);

#endif
