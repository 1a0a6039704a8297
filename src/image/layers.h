/*
 * All layers of one image, converted side by side, each in a worker without rights. A layer whose
 * blob is here already is not converted again, but its bytes are still hashed: who names a diff id
 * in a config without having the layer gets nothing.
 */
#ifndef IMAGE_LAYERS_H
#define IMAGE_LAYERS_H

#include "image/blobs.h"
#include "image/plan.h"

struct stacked {
    char digest[DIGEST_TEXT_MAX], diff_id[DIGEST_TEXT_MAX];
    uint64_t size;
};

struct layers {
    struct blobs *blobs;
    const char *scratch;
    const struct source *source;
    struct plan *plan;          /* what was not known beforehand is filled in */
    struct layer_limits limits; /* of the whole image; path and name are set here */
    const char *from;           /* for errors about a root file system */
    void (*tell)(void *arg, const char *step, uint32_t layer, uint64_t bytes, uint64_t total);
    void *arg;

    struct job *jobs;                       /* one a layer */
    struct stacked stack[IMAGE_LAYERS_MAX]; /* the result, lowest first */
    uint32_t stack_count;
};

/* Fills stack. Single-threaded processes only; changes the mount namespace. */
int layers_convert(struct layers *l, struct err *err);
void layers_done(struct layers *l);

#endif
