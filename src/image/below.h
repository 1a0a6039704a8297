/*
 * What lies below the layer that is being converted: the blobs of the lower layers, mounted
 * read-only with overlayfs over them in a mount namespace of ours, on the first question. A layer
 * that asked nothing may be used above anything; one that asked, above the same layers only.
 */
#ifndef IMAGE_BELOW_H
#define IMAGE_BELOW_H

#include "image/item.h"

struct below;
struct layer_root;

/* Another process that answers instead: the one who converts may have no right to mount. */
struct below_peer {
    int (*lookup)(void *arg, const char *path, struct item *ret, struct err *err);
    int (*open)(void *arg, const char *path, struct err *err);
    int (*root)(void *arg, struct layer_root *ret, struct err *err);
    void *arg;
};

struct below *below_new_peer(const struct below_peer *peer);

/* scratch: a folder of ours. The process must be single-threaded (unshare(2)). */
struct below *below_new(const char *scratch);
void below_free(struct below *b);
void below_freep(struct below **b);

/* The blob file is now the topmost below. Forgets that questions were asked. */
void below_push(struct below *b, const char *blob_path);
/* Nothing is below any more. */
void below_clear(struct below *b);
/* Was anything asked since the last push? */
bool below_was_asked(const struct below *b);

/* Path is canonical. -ENOENT: nothing there (also: a parent is no folder). ret gets all but the
 * content; devices and sockets are as if not there. */
int below_lookup(struct below *b, const char *path, struct item *ret, struct err *err);
/* The content of a file found by below_lookup; returns a descriptor. */
int below_open(struct below *b, const char *path, struct err *err);
/* What the root of the layers below is like; of a peer only. */
int below_root(struct below *b, struct layer_root *ret, struct err *err);

#endif
