/*
 * One OCI layer (image-spec v1.1, "Layer Filesystem Changeset") turned into what overlayfs stacks:
 * whiteout names become character devices 0:0, opaque markers the attribute trusted.overlay.opaque,
 * folders that are only implied get the attributes that they have below, hard links into lower
 * layers become copies. Whiteouts apply to lower layers only, wherever they stand in the tar.
 */
#ifndef IMAGE_LAYER_H
#define IMAGE_LAYER_H

#include "image/below.h"
#include "image/stream.h"

struct layer_limits {
    uint64_t max_bytes; /* of all files, holes counted too */
    uint64_t max_entries;
    unsigned max_depth;
    unsigned max_path; /* bytes, at most LAYER_PATH_MAX - 1 */
    unsigned max_name; /* bytes, at most LAYER_NAME_MAX */
};

#define LAYER_PATH_MAX 4096 /* PATH_MAX: with its NUL */
#define LAYER_NAME_MAX 255

struct layer_root { /* attributes of a stack's root folder */
    uint32_t mode, uid, gid;
    bool has_xattrs;
};

#define LAYER_ROOT_DEFAULT ((struct layer_root){.mode = 0755})

struct layer_result {
    bool root_listed; /* the layer says itself what its root is like */
    bool opaque_root; /* nothing of the layers below is left */
    struct layer_root root;
    uint64_t entries, bytes;
};

typedef void (*layer_progress_fn)(void *arg, uint64_t bytes);

/*
 * Read the stream to the end of the tar (stream_end is the caller's), put everything into the sink
 * and finish it. Whether below was asked says if the result depends on it; besides, the root's
 * attributes come from root_below (NULL: below_root) when the layer does not list its root.
 */
int layer_convert(struct stream *in, struct below *below, const struct layer_root *root_below,
    const struct layer_limits *limits, struct sink *out, layer_progress_fn progress, void *arg,
    struct layer_result *ret, struct err *err);

#endif
