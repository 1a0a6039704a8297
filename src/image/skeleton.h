/*
 * The names of one layer as a tree: what has been put so far, and what is known about it. One hash
 * table over (parent, name) finds a name; taking away a folder takes away all below it.
 */
#ifndef IMAGE_SKELETON_H
#define IMAGE_SKELETON_H

#include "image/arena.h"
#include "image/item.h"

enum node_type {
    NODE_DIR,
    NODE_OTHER, /* a file, FIFO, or another name of one */
    NODE_SYMLINK,
    NODE_WHITEOUT, /* nothing put (yet): only the lower one is hidden */
    NODE_SKIPPED,  /* a device or socket: not taken over */
};

struct node {
    struct node *parent;          /* NULL: the root */
    struct node *child, *sibling; /* first below; next beside */
    struct node *chain;           /* of the hash table */
    enum node_type type;
    bool listed; /* it has an entry of its own, a folder that only had to be there has not */
    bool opaque; /* folder: nothing from below shows in it */
    bool hidden; /* a whiteout of this name was seen: what is below this layer is gone */
    bool has_whiteouts;
    struct item attr; /* folder: all; symlink: target */
    char name[];
};

struct skeleton {
    struct arena *memory; /* of the nodes, borrowed; NULL: the heap */
    struct node *root;
    struct node **table;
    size_t size, count;
};

void skeleton_init(struct skeleton *s, struct arena *memory);
void skeleton_done(struct skeleton *s);
struct node *skeleton_find(
    const struct skeleton *s, const struct node *parent, const char *name, size_t len);
struct node *skeleton_add(
    struct skeleton *s, struct node *parent, const char *name, size_t len, enum node_type type);
/* Forget all below the node; the node stays. */
void skeleton_prune(struct skeleton *s, struct node *n);
/* Path from the root, "" for the root itself; at most size - 1 bytes, or -ENAMETOOLONG. */
int skeleton_path(const struct node *n, char *ret, size_t size);
unsigned skeleton_depth(const struct node *n);
/* Each node, parents first; fn's first value below 0 ends it. */
int skeleton_walk(struct skeleton *s, int (*fn)(struct node *n, void *arg, struct err *err),
    void *arg, struct err *err);

#endif
