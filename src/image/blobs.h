/*
 * The folder of blobs: content-addressed, read-only files, and what is known about them.
 *
 *   sha256/HEX     a blob; HEX is the digest of the file
 *   by-diff/HEX    layer with this diff id -> record; good above any layers whose root is default
 *   by-chain/HEX   layer with this chain id -> record; its content depends on what is below
 *   by-packed/HEX  a compressed layer with this digest was seen to have that diff id
 *   tmp/           files on their way in
 *
 * Every file appears whole (written beside, synced, renamed); the record comes after its blob.
 */
#ifndef IMAGE_BLOBS_H
#define IMAGE_BLOBS_H

#include "image/layer.h"
#include "image/scratch.h"

struct blobs {
    char *dir;
    int lock; /* byte-range locks, one for each diff id */
    struct scratch tmp;
};

struct layer_record {
    char digest[DIGEST_TEXT_MAX]; /* of the blob file */
    uint64_t size;                /* of the blob file */
    struct layer_result layer;
};

int blobs_open(const char *dir, struct blobs *ret, struct err *err);
void blobs_done(struct blobs *b);

/* -EAGAIN: another import converts this layer. */
int blobs_try_lock(struct blobs *b, const char *diff_id, struct err *err);
void blobs_unlock(struct blobs *b, const char *diff_id);

/* A record by diff id (by_chain false) or chain id. -ENOENT: none, or its blob is gone. */
int blobs_find(const struct blobs *b, bool by_chain, const char *id, struct layer_record *ret,
    struct err *err);
int blobs_record(const struct blobs *b, bool by_chain, const char *id,
    const struct layer_record *record, struct err *err);

/* Where to write a new blob of that number; heap. */
char *blobs_tmp_path(const struct blobs *b, uint32_t number);
/* Hash, sync, make read-only, move in; sets digest and size of the record. */
int blobs_add(
    const struct blobs *b, const char *tmp_path, struct layer_record *record, struct err *err);
char *blobs_path(const struct blobs *b, const char *digest); /* heap */

/* The diff id that a compressed layer was found to have. -ENOENT. */
int blobs_packed_find(const struct blobs *b, const char *packed, char diff_id[DIGEST_TEXT_MAX]);
int blobs_packed_record(
    const struct blobs *b, const char *packed, const char *diff_id, struct err *err);

#endif
