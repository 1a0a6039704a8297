/*
 * A piece as a stream of bytes: decompressed (gzip, zstd, xz, bzip2 or nothing, seen from the first
 * bytes), the digests of both sides computed on the way, never more than a maximum.
 */
#ifndef IMAGE_STREAM_H
#define IMAGE_STREAM_H

#include "image/digest.h"
#include "image/source.h"

struct archive;

struct stream {
    struct piece from; /* borrowed descriptor */
    uint64_t at;       /* read of it */
    uint64_t max;      /* decompressed bytes */
    char *chunk;
    bool compressed, ended;
    struct archive *unpack;      /* when compressed */
    struct digest packed, plain; /* as it is; decompressed. Without compression: packed only */
};

int stream_open(struct stream *s, const struct piece *from, uint64_t max, struct err *err);
/* The bytes as they are, never decompressed. */
void stream_open_raw(struct stream *s, const struct piece *from);
void stream_done(struct stream *s);
/* The next bytes, valid until the next call; *ret_len 0 at the end. -EFBIG: more than max. */
int stream_next(struct stream *s, const void **ret, size_t *ret_len, struct err *err);
/* Read what is left, and tell the digests; either may be NULL. */
int stream_end(
    struct stream *s, char packed[DIGEST_TEXT_MAX], char plain[DIGEST_TEXT_MAX], struct err *err);
/* Decompressed bytes so far. */
uint64_t stream_bytes(const struct stream *s);
/* Is the piece compressed? */
int stream_is_compressed(const struct piece *p, bool *ret, struct err *err);

#endif
