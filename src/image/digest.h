/*
 * SHA-256 digests: their text, computing them over a stream, and over a file. Only sha256 is
 * known; the OCI image specification ("Digests") allows others, nobody uses them.
 */
#ifndef IMAGE_DIGEST_H
#define IMAGE_DIGEST_H

#include "base/err.h"
#include "base/str.h"

#define DIGEST_TEXT_LEN 71 /* "sha256:" and 64 hexadecimal digits */
#define DIGEST_TEXT_MAX 80

/* The 64 digits of a valid digest, borrowed: file names are made of them. */
const char *digest_hex(const char *text);
/* The first 62 bits: a number to lock by. */
uint64_t digest_number(const char *text);

struct digest {
    void *ctx; /* NULL: not started */
    uint64_t bytes;
};

void digest_init(struct digest *d);
void digest_done(struct digest *d);
void digest_add(struct digest *d, const void *p, size_t n);
/* Ends the computation; nothing may be added behind it. */
void digest_end(struct digest *d, char text[DIGEST_TEXT_MAX]);

void digest_of(const void *p, size_t n, char text[DIGEST_TEXT_MAX]);
/* Of a whole file from its begin, by pread; ret_size may be NULL. */
int digest_of_fd(int fd, char text[DIGEST_TEXT_MAX], uint64_t *ret_size, struct err *err);
/* OCI "ChainID": of the layers below and this one; below NULL or "" for the lowest. */
void digest_chain(const char *below, const char *diff_id, char text[DIGEST_TEXT_MAX]);

#endif
