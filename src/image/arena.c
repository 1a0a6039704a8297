/*
 * Chunks of one file, mapped one by one so that pointers stay. Their blocks are allocated before:
 * writing to a mapped hole of a full disk would be a SIGBUS.
 */
#include "image/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/str.h"

#define CHUNK ((size_t)16 << 20)
#define ALIGN(n) (((n) + 7) & ~(size_t)7)

struct arena_map {
    void *at;
    size_t len;
};

int arena_init(struct arena *a, const char *dir, struct err *err)
{
    *a = (struct arena){.fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    return a->fd < 0 ? err_sys(err, -errno, "cannot make a file in '%s'", dir) : 0;
}

void arena_done(struct arena *a)
{
    for (size_t n = 0; n < a->count; n++)
        (void)munmap(a->maps[n].at, a->maps[n].len);
    free(a->maps);
    cleanup_close(&a->fd);
    *a = (struct arena){.fd = -1};
}

static void *map_more(struct arena *a, size_t len)
{
    void *at;

    if (posix_fallocate(a->fd, (off_t)a->size, (off_t)len) != 0)
        return NULL;
    at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, (off_t)a->size);
    if (at == MAP_FAILED)
        return NULL;
    a->size += len;
    a->maps = xgrow(a->maps, &a->cap, a->count + 1, sizeof(*a->maps));
    a->maps[a->count++] = (struct arena_map){at, len};
    return at;
}

void *arena_alloc(struct arena *a, size_t n)
{
    void *p;

    n = ALIGN(n);
    if (n > CHUNK / 4) /* a map of its own: a chunk would be left half used */
        return map_more(a, (n + 4095) & ~(size_t)4095);
    if (!a->chunk || n > CHUNK - a->used) {
        p = map_more(a, CHUNK);
        if (!p)
            return NULL;
        a->chunk = p;
        a->used = 0;
    }
    p = a->chunk + a->used;
    a->used += n;
    return p;
}

void *arena_dup(struct arena *a, const void *p, size_t n)
{
    void *copy = arena_alloc(a, n);

    if (copy && n > 0)
        memcpy(copy, p, n);
    return copy;
}
