/*
 * A registry's side of the distribution specification (OCI distribution-spec v1.1, "Pull"), over
 * libcurl: documents and blobs of one repository, with Docker's token scheme or basic
 * authentication. What does not arrive is tried again, blobs from where they broke off. Errors name
 * the registry, the request, the HTTP status and whose credentials were used.
 */
#ifndef IMAGE_REGISTRY_H
#define IMAGE_REGISTRY_H

#include "base/buf.h"
#include "image/credentials.h"
#include "image/manifest.h"

struct registry;

struct registry_opts {
    const char *host, *name; /* "registry.lan:5000", "team/app" */
    const char *ca;          /* text of the certificates to trust; NULL: the system's */
    bool insecure;           /* any certificate, or plain HTTP */
    const json_t *auths;     /* credentials.h; NULL: none */
    const char *auths_from;
    uint64_t stall_usec; /* give up on a transfer that stands still for so long */
};

/* Finds out how it is spoken to. */
int registry_open(const struct registry_opts *opts, struct registry **ret, struct err *err);
void registry_close(struct registry *r);
void registry_closep(struct registry **r);

/* A manifest or index; reference is a tag or digest. At most MANIFEST_MAX_BYTES. */
int registry_manifest(struct registry *r, const char *reference, struct buf *ret, struct err *err);

struct registry_blob {
    struct blob_ref ref;
    int fd; /* to write to, borrowed */
    uint64_t got;
};

/* All of them, several at a time. Their digests are not checked here, their sizes are. */
int registry_blobs(struct registry *r, struct registry_blob *blobs, size_t count,
    void (*progress)(void *arg, uint64_t bytes), void *arg, struct err *err);

#endif
