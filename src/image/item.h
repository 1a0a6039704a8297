/*
 * One thing in a layer: a folder, file, link, FIFO or whiteout, with what belongs to it. And the
 * sink that such things are written to (erofs.h).
 */
#ifndef IMAGE_ITEM_H
#define IMAGE_ITEM_H

#include "base/err.h"

enum item_type {
    ITEM_DIR,
    ITEM_FILE,
    ITEM_SYMLINK,
    ITEM_HARDLINK, /* target: path of the other name in the same layer; nothing else counts */
    ITEM_FIFO,
    ITEM_WHITEOUT, /* as overlayfs reads it: a character device 0:0 */
};

struct item_xattr {
    char *name;
    void *value;
    size_t len;
};

struct item {
    enum item_type type;
    uint32_t mode; /* permission bits, 07777 */
    uint32_t uid, gid;
    int64_t sec; /* time of modification */
    uint32_t nsec;
    uint64_t size; /* of a file */
    char *target;  /* of links */
    struct item_xattr *xattrs;
    size_t xattr_count, xattr_cap;
};

void item_done(struct item *i);
void item_copy(const struct item *from, struct item *to);
/* Sets or replaces; name and value are copied. */
void item_set_xattr(struct item *i, const char *name, const void *value, size_t len);
/* Extended attributes that a layer may bring: user.*, trusted.* but overlayfs' own, and
 * security.capability. The others mean something to this host only (SELinux labels, IMA). */
bool item_xattr_is_kept(const char *name);

struct sink;

/* Paths are relative and canonical ("usr/bin/env", "" is the root); parents were put before. */
struct sink_ops {
    /* A folder that is there gets the new attributes; nothing else may be at path. */
    int (*put)(struct sink *s, const char *path, const struct item *i, struct err *err);
    /* Bytes of the file that was put last, in ascending order, with holes left out. */
    int (*data)(struct sink *s, const void *p, size_t n, uint64_t off, struct err *err);
    /* Take away what is at path, with all below. */
    int (*drop)(struct sink *s, const char *path, struct err *err);
    /* Everything was put. */
    int (*finish)(struct sink *s, struct err *err);
    void (*free)(struct sink *s);
};

struct arena;

struct sink {
    const struct sink_ops *ops;
    struct arena *memory; /* where what is known about the names can be, too; NULL: none */
};

void sink_freep(struct sink **s);

#endif
