/* From a registry, or a mirror of it, to an OCI layout in a folder of ours. */
#ifndef IMAGE_FETCH_H
#define IMAGE_FETCH_H

#include "base/json.h"
#include "image/ref.h"

struct fetch {
    const struct image_ref *ref;
    const char *arch;       /* Go's name */
    const json_t *auths;    /* credentials.h; NULL: none */
    const char *auths_from; /* where they are from, for errors */
    char **insecure;        /* registries: plain HTTP, or a certificate that cannot be checked */
    char **mirrors;         /* "HOST=MIRROR": asked before HOST is */
    char **cas;             /* "HOST=PEM": certificates to trust there, their text */
    uint64_t stall_usec;    /* how long a registry may send nothing */
    uint64_t max_bytes;     /* of what is fetched */
    void (*progress)(void *arg, uint64_t bytes, uint64_t total);
    void *arg;
};

/* Makes an OCI layout at SCRATCH/layout. Blocks. Errors name the registry and what it said. */
int fetch_image(const struct fetch *f, const char *scratch, struct err *err);

#endif
