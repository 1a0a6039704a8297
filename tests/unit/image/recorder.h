/* A sink that writes down what is put, one line each, and tars made in memory. */
#ifndef UNIT_IMAGE_RECORDER_H
#define UNIT_IMAGE_RECORDER_H

#include <sys/mman.h>

#include "base/buf.h"
#include "image/layer.h"

struct recorder {
    struct sink sink;
    struct buf said;
    bool cannot_drop;
};

static inline struct recorder *recorder_of(struct sink *s)
{
    return CONTAINER_OF(s, struct recorder, sink);
}

static inline int recorder_put(
    struct sink *s, const char *path, const struct item *i, struct err *err UNUSED)
{
    static const char *const types[] = {"dir", "file", "symlink", "hardlink", "fifo", "whiteout"};
    struct buf *b = &recorder_of(s)->said;

    (void)buf_printf(b, "%s '%s'", types[i->type], path);
    if (i->type == ITEM_DIR)
        (void)buf_printf(b, " %04o", i->mode);
    if (i->target)
        (void)buf_printf(b, " -> '%s'", i->target);
    for (size_t n = 0; n < i->xattr_count; n++)
        (void)buf_printf(b, " %s=%.*s", i->xattrs[n].name, (int)i->xattrs[n].len,
            (const char *)i->xattrs[n].value);
    return buf_puts(b, "\n");
}

static inline int recorder_data(
    struct sink *s, const void *p, size_t n, uint64_t off, struct err *err UNUSED)
{
    return buf_printf(&recorder_of(s)->said, "  %zu bytes at %llu\n", n, (unsigned long long)off);
}

static inline int recorder_drop(struct sink *s, const char *path, struct err *err)
{
    if (recorder_of(s)->cannot_drop)
        return err_set(err, -EOPNOTSUPP, "cannot");
    return buf_printf(&recorder_of(s)->said, "drop '%s'\n", path);
}

static inline int recorder_finish(struct sink *s, struct err *err UNUSED)
{
    return buf_puts(&recorder_of(s)->said, "end\n");
}

static inline void recorder_free(struct sink *s UNUSED)
{
}

static const struct sink_ops recorder_ops = {
    recorder_put,
    recorder_data,
    recorder_drop,
    recorder_finish,
    recorder_free,
};

static inline void recorder_init(struct recorder *r)
{
    *r = (struct recorder){.sink = {&recorder_ops}, .said = BUF_INIT(1024 * 1024)};
}

#endif
