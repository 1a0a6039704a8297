/*
 * Layers from an attacker, converted above nothing into a sink that checks the contract: paths are
 * canonical, their folders were put before, nothing is put over something else.
 */
#include <sys/mman.h>

#include "base/map.h"
#include "base/str.h"
#include "image/layer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct checker {
    struct sink sink;
    struct map types; /* path -> type + 1 */
    uint64_t at, size;
};

static void must(bool ok, const char *what, const char *path)
{
    if (ok)
        return;
    fprintf(stderr, "%s: '%s'\n", what, path);
    abort();
}

static uintptr_t type_at(const struct checker *c, const char *path)
{
    return path[0] ? (uintptr_t)map_get(&c->types, path) : ITEM_DIR + 1;
}

static void check_path(const struct checker *c, const char *path)
{
    _cleanup_free_ char *parent = xstrdup(path);
    char *slash = strrchr(parent, '/');

    must(path[0] != '/' && !strstr(path, "//") && !str_ends(path, "/"), "not canonical", path);
    must(!str_eq(path, "..") && !str_starts(path, "../") && !strstr(path, "/../") &&
            !str_ends(path, "/.."),
        "leads up", path);
    *(slash ? slash : parent) = '\0';
    must(type_at(c, parent) == ITEM_DIR + 1, "its folder is none", path);
}

static int put(struct sink *s, const char *path, const struct item *i, struct err *err UNUSED)
{
    struct checker *c = CONTAINER_OF(s, struct checker, sink);
    uintptr_t old = type_at(c, path);

    check_path(c, path);
    must(old == 0 || (old == ITEM_DIR + 1 && i->type == ITEM_DIR), "put twice", path);
    must(i->type != ITEM_HARDLINK || type_at(c, i->target) > ITEM_DIR + 1, "links to", i->target);
    if (path[0])
        map_set(&c->types, path, (void *)(uintptr_t)(i->type + 1));
    c->at = 0;
    c->size = i->type == ITEM_FILE ? i->size : 0;
    return 0;
}

static int data_put(
    struct sink *s, const void *p UNUSED, size_t n, uint64_t off, struct err *err UNUSED)
{
    struct checker *c = CONTAINER_OF(s, struct checker, sink);

    must(off >= c->at && n <= c->size && off <= c->size - n, "bytes outside of the file", "");
    c->at = off + n;
    return 0;
}

static int drop(struct sink *s, const char *path, struct err *err UNUSED)
{
    struct checker *c = CONTAINER_OF(s, struct checker, sink);
    size_t len = strlen(path);

    must(len > 0 && map_remove(&c->types, path), "dropped what is not there", path);
    map_for_each (e, &c->types)
        if (strncmp(e->key, path, len) == 0 && e->key[len] == '/')
            map_remove(&c->types, e->key);
    return 0;
}

static int finish(struct sink *s UNUSED, struct err *err UNUSED)
{
    return 0;
}

static void nothing(struct sink *s UNUSED)
{
}

static const struct sink_ops ops = {put, data_put, drop, finish, nothing};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct layer_limits limits = {1 << 24, 1000, 64, 4000, 255};
    static const struct layer_root root = LAYER_ROOT_DEFAULT;
    struct checker c = {.sink = {&ops}};
    struct piece p = {.fd = memfd_create("layer", MFD_CLOEXEC), .len = size};
    struct below *below = below_new("/nonexistent");
    struct stream in = {0};
    struct layer_result result;
    struct err err = ERR_INIT;

    if (p.fd < 0 || pwrite(p.fd, data, size, 0) != (ssize_t)size)
        abort();
    map_init(&c.types);
    if (stream_open(&in, &p, 1 << 24, &err) == 0)
        (void)layer_convert(&in, below, &root, &limits, &c.sink, NULL, NULL, &result, &err);
    stream_done(&in);
    below_free(below);
    map_done(&c.types, NULL);
    piece_done(&p);
    return 0;
}
