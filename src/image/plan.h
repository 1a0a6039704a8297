/*
 * What a source holds, read and verified: which pieces are the layers, lowest first, what their
 * digests must be, and how the image is run.
 */
#ifndef IMAGE_PLAN_H
#define IMAGE_PLAN_H

#include "image/manifest.h"
#include "image/source.h"

struct plan_layer {
    char *member;                  /* for source_piece; NULL: the whole file */
    char packed[DIGEST_TEXT_MAX];  /* digest of the member as it is; "": not known beforehand */
    char diff_id[DIGEST_TEXT_MAX]; /* digest without compression; "": not known beforehand */
};

struct plan {
    char id[DIGEST_TEXT_MAX]; /* of the config; "" for a root file system: its layer's diff id */
    char *name;               /* that the source gives it, or NULL */
    struct image *run;
    struct plan_layer *layers;
    uint32_t layer_count;
};

int plan_make(const struct source *s, const char *arch, struct plan *ret, struct err *err);
void plan_done(struct plan *p);

#endif
