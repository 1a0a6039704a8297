/* From a registry to a folder of ours, by skopeo. */
#ifndef IMAGE_FETCH_H
#define IMAGE_FETCH_H

#include "image/ref.h"

struct fetch {
    const struct image_ref *ref;
    const char *arch;     /* Go's name */
    const char *authfile; /* NULL: none */
    bool insecure;        /* plain HTTP, or a certificate that cannot be checked */
    uint64_t max_bytes;   /* of what is fetched */
    void (*progress)(void *arg, uint64_t bytes);
    void *arg;
};

/* Makes an OCI layout at SCRATCH/layout. Blocks. -EPROTO with the registry and what it said. */
int fetch_image(const struct fetch *f, const char *scratch, struct err *err);

#endif
