/*
 * Inside of the layer conversion: its state, and finding the place of a name: normalised, parents'
 * links followed inside the root as the layer and what is below have them, implied folders made.
 */
#ifndef IMAGE_LAYER_PATH_H
#define IMAGE_LAYER_PATH_H

#include "image/layer.h"
#include "image/skeleton.h"

struct layer {
    struct stream *in;
    struct below *below;
    struct sink *out;
    const struct layer_limits *limits;
    struct skeleton names;
    uint64_t entries, bytes;
    layer_progress_fn progress;
    void *progress_arg;
};

/* A place in the layer: the folder, and the name in it ("" : the root itself). */
struct place {
    struct node *dir;
    char name[LAYER_NAME_MAX + 1];
};

/* -EINVAL, -ENAMETOOLONG, -ELOOP, -ENOTDIR with the name in the text. */
int layer_find_place(struct layer *l, const char *raw, struct place *ret, struct err *err);
struct node *layer_node_at(const struct layer *l, const struct place *p); /* NULL */
/* Does what is below the layer show at this folder? */
bool layer_shows_below(const struct node *dir);
/* Path of a name in a folder. */
int layer_path(const struct layer *l, const struct node *dir, const char *name,
    char ret[LAYER_PATH_MAX], struct err *err);
/* Put one more name, bounds checked. */
int layer_put(struct layer *l, const char *path, const struct item *i, struct err *err);
/* err text about an entry's raw name. */
int layer_failed(const char *raw, int code, const char *why, struct err *err);

#endif
