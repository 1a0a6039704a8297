/* The whole way of one image: fetched, looked at, every layer made a blob, told on a stream. */
#ifndef IMAGE_IMPORT_H
#define IMAGE_IMPORT_H

#include "image/image.h"
#include "image/layer.h"

struct import {
    const char *blobs, *tmp; /* folders, absolute */
    const char *source;      /* absolute path, or a reference */
    bool is_path;
    const char *name;    /* NULL: what the source says, or none */
    const char *arch;    /* Go's name */
    const json_t *auths; /* credentials.h; NULL: none */
    const char *auths_from;
    char **insecure, **mirrors, **cas; /* fetch.h */
    uint64_t stall_usec;
    struct layer_limits limits; /* of the whole image */
    FILE *out;                  /* JSON lines; NULL: none */
};

/* On success the "image" line was written; on failure no "error" line. Single-threaded processes
 * only; changes the working directory. */
int import_run(const struct import *opts, struct err *err);

#endif
