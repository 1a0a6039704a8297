/*
 * The sink: names and inodes in the arena, found by a hash table over (folder, name). Content goes
 * to erofs_data.c, unless the file is so small that it will stand beside its inode.
 */
#include "image/erofs.h"

#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "image/erofs_write.h"

#define FIRST_SIZE 4096
/* Inode, attributes and content must be in one block. */
#define TAIL_MAX (EROFS_BLOCK - sizeof(struct erofs_inode))

static struct erofs_writer *writer_of(struct sink *s)
{
    return CONTAINER_OF(s, struct erofs_writer, sink);
}

/* ---- names ---- */

/* FNV-1a over the name, mixed with the folder's address. */
static size_t hash_of(const struct erofs_file *dir, const char *name, size_t len)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ (uint64_t)(uintptr_t)dir;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return (size_t)(h ^ (h >> 32));
}

static struct erofs_name **slot(
    const struct erofs_writer *w, const struct erofs_file *dir, const char *name, size_t len)
{
    struct erofs_name **at = &w->table[hash_of(dir, name, len) & (w->table_size - 1)];

    while (*at && !((*at)->dir == dir && (*at)->len == len && memcmp((*at)->text, name, len) == 0))
        at = &(*at)->chain;
    return at;
}

static void grow(struct erofs_writer *w)
{
    struct erofs_name **old = w->table;
    size_t old_size = w->table_size;

    w->table_size *= 2;
    w->table = xnew_array(struct erofs_name *, w->table_size);
    for (size_t i = 0; i < old_size; i++) {
        for (struct erofs_name *n = old[i], *next; n; n = next) {
            struct erofs_name **at;
            next = n->chain;
            n->chain = NULL;
            at = &w->table[hash_of(n->dir, n->text, n->len) & (w->table_size - 1)];
            n->chain = *at;
            *at = n;
        }
    }
    free(old);
}

static int add_name(struct erofs_writer *w, struct erofs_file *dir, const char *name, size_t len,
    struct erofs_file *file, struct err *err)
{
    struct erofs_name *n = arena_alloc(&w->arena, sizeof(*n) + len);
    struct erofs_name **at;

    if (!n)
        return erofs_disk_full(err);
    if (++w->name_count > w->table_size)
        grow(w);
    *n = (struct erofs_name){.dir = dir, .file = file, .len = (uint16_t)len, .next = dir->names};
    memcpy(n->text, name, len);
    at = slot(w, dir, name, len);
    n->chain = *at;
    *at = n;
    dir->names = n;
    dir->name_count++;
    return 0;
}

/* The folder of a path, and the name in it. NULL: it was not put. */
static struct erofs_file *folder_of(
    const struct erofs_writer *w, const char *path, const char **ret_name)
{
    struct erofs_file *at = w->root;

    for (const char *slash; at && (slash = strchr(path, '/')); path = slash + 1) {
        struct erofs_name *n = *slot(w, at, path, (size_t)(slash - path));
        at = n && S_ISDIR(n->file->mode) ? n->file : NULL;
    }
    *ret_name = path;
    return at;
}

static struct erofs_file *find(const struct erofs_writer *w, const char *path)
{
    const char *name;
    struct erofs_file *dir;
    struct erofs_name *n;

    if (path[0] == '\0')
        return w->root;
    dir = folder_of(w, path, &name);
    n = dir ? *slot(w, dir, name, strlen(name)) : NULL;
    return n ? n->file : NULL;
}

/* ---- attributes ---- */

static bool prefix_of(const char *name, uint8_t *ret_prefix, const char **ret_rest)
{
    static const struct {
        const char *text;
        uint8_t number;
    } known[] = {{"user.", 1}, {"trusted.", 4}, {"security.", 6}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_starts(name, known[i].text)) {
            *ret_prefix = known[i].number;
            *ret_rest = name + strlen(known[i].text);
            return true;
        }
    return false;
}

static int add_xattr(struct buf *b, const struct item_xattr *x)
{
    static const char pad[4];
    struct erofs_xattr h = {.value_len = (uint16_t)x->len};
    const char *rest;
    size_t len;

    if (!prefix_of(x->name, &h.prefix, &rest))
        return 0;
    len = strlen(rest);
    if (len > UINT8_MAX || x->len > UINT16_MAX)
        return -EFBIG;
    h.name_len = (uint8_t)len;
    if (buf_append(b, &h, sizeof(h)) < 0 || buf_append(b, rest, len) < 0 ||
        buf_append(b, x->value, x->len) < 0)
        return -EFBIG;
    return buf_append(b, pad, (4 - b->len % 4) % 4);
}

static int set_xattrs(
    struct erofs_writer *w, struct erofs_file *f, const struct item *i, struct err *err)
{
    struct buf b = BUF_INIT(UINT16_MAX * 4); /* counted in words, by 16 bits */
    int r = 0;

    for (size_t n = 0; r == 0 && n < i->xattr_count; n++)
        r = add_xattr(&b, &i->xattrs[n]);
    if (r < 0)
        r = err_set(err, -EFBIG, "an entry's attributes are larger than 256 KiB");
    f->xattr_len = (uint32_t)b.len;
    f->xattrs = r == 0 && b.len > 0 ? arena_dup(&w->arena, b.data, b.len) : NULL;
    if (r == 0 && b.len > 0 && !f->xattrs)
        r = erofs_disk_full(err);
    buf_done(&b);
    return r;
}

static int set_attributes(
    struct erofs_writer *w, struct erofs_file *f, const struct item *i, struct err *err)
{
    static const uint16_t types[] = {
        [ITEM_DIR] = S_IFDIR,
        [ITEM_FILE] = S_IFREG,
        [ITEM_SYMLINK] = S_IFLNK,
        [ITEM_FIFO] = S_IFIFO,
        [ITEM_WHITEOUT] = S_IFCHR,
    };

    f->mode = (uint16_t)(types[i->type] | (i->type == ITEM_SYMLINK ? 0777 : i->mode));
    f->uid = i->uid;
    f->gid = i->gid;
    f->sec = i->sec;
    f->nsec = i->nsec;
    return set_xattrs(w, f, i, err);
}

/* ---- content ---- */

static bool stands_beside(const struct erofs_file *f)
{
    size_t attributes = f->xattr_len ? sizeof(struct erofs_xattr_header) + f->xattr_len : 0;

    return attributes < TAIL_MAX && f->size <= TAIL_MAX - attributes;
}

static int open_content(
    struct erofs_writer *w, struct erofs_file *f, uint64_t size, struct err *err)
{
    f->size = size;
    f->where = EROFS_NO_BLOCK;
    if (size == 0)
        return 0;
    w->open = f;
    w->open_got = 0;
    if (!stands_beside(f))
        return erofs_content_begin(w, err);
    f->layout = EROFS_INLINE;
    f->tail = arena_alloc(&w->arena, size);
    return f->tail ? 0 : erofs_disk_full(err);
}

static int close_content(struct erofs_writer *w, struct err *err)
{
    int r = 0;

    if (w->open && w->open->layout != EROFS_INLINE)
        r = erofs_content_end(w, err);
    w->open = NULL;
    return r;
}

static int erofs_data(struct sink *s, const void *p, size_t n, uint64_t off, struct err *err)
{
    struct erofs_writer *w = writer_of(s);
    struct erofs_file *f = w->open;

    if (n == 0)
        return 0;
    if (!f || off > f->size || n > f->size - off || off < w->open_got)
        return err_set(err, -EINVAL, "a file's bytes are out of order");
    w->open_got = off + n;
    if (f->layout != EROFS_INLINE)
        return erofs_content_add(w, p, n, off, err);
    memcpy(f->tail + off, p, n);
    return 0;
}

/* ---- the sink ---- */

static int make(struct erofs_writer *w, struct erofs_file *dir, const char *name,
    const struct item *i, struct err *err)
{
    struct erofs_file *f = arena_alloc(&w->arena, sizeof(*f));
    int r;

    if (!f)
        return erofs_disk_full(err);
    w->inode_count++;
    f->nlink = i->type == ITEM_DIR ? 2 : 1;
    dir->nlink += i->type == ITEM_DIR;
    f->parent = dir;
    if ((r = set_attributes(w, f, i, err)) < 0 ||
        (r = add_name(w, dir, name, strlen(name), f, err)) < 0)
        return r;
    if (i->type == ITEM_FILE)
        return open_content(w, f, i->size, err);
    if (i->type != ITEM_SYMLINK)
        return 0;
    if ((r = open_content(w, f, strlen(i->target), err)) == 0)
        r = erofs_data(&w->sink, i->target, strlen(i->target), 0, err);
    return r < 0 ? r : close_content(w, err);
}

static int make_link(struct erofs_writer *w, struct erofs_file *dir, const char *name,
    const char *target, struct err *err)
{
    struct erofs_file *f = find(w, target);

    assert(f && !S_ISDIR(f->mode));
    f->nlink++;
    return add_name(w, dir, name, strlen(name), f, err);
}

static int erofs_put(struct sink *s, const char *path, const struct item *i, struct err *err)
{
    struct erofs_writer *w = writer_of(s);
    struct erofs_file *dir, *there;
    const char *name;
    int r;

    r = close_content(w, err);
    if (r < 0)
        return r;
    there = find(w, path);
    if (there) {
        assert(S_ISDIR(there->mode) && i->type == ITEM_DIR);
        return set_attributes(w, there, i, err);
    }
    dir = folder_of(w, path, &name);
    assert(dir);
    return i->type == ITEM_HARDLINK ? make_link(w, dir, name, i->target, err)
                                    : make(w, dir, name, i, err);
}

static void forget(struct erofs_writer *w, struct erofs_name *n)
{
    struct erofs_file *f = n->file;

    if (!f)
        return;
    *slot(w, n->dir, n->text, n->len) = n->chain;
    n->file = NULL;
    n->dir->name_count--;
    f->nlink--;
    w->inode_count -= S_ISDIR(f->mode) || f->nlink == 0;
    if (!S_ISDIR(f->mode))
        return;
    n->dir->nlink--;
    for (struct erofs_name *c = f->names; c; c = c->next)
        forget(w, c);
}

/* Content that was written stays in the blob, and nothing points to it. */
static int erofs_drop(struct sink *s, const char *path, struct err *err)
{
    struct erofs_writer *w = writer_of(s);
    const char *name;
    struct erofs_file *dir = folder_of(w, path, &name);
    struct erofs_name *n = dir ? *slot(w, dir, name, strlen(name)) : NULL;
    int r = close_content(w, err);

    assert(n);
    forget(w, n);
    return r;
}

static int erofs_finish(struct sink *s, struct err *err)
{
    struct erofs_writer *w = writer_of(s);
    int r = close_content(w, err);

    return r < 0 ? r : erofs_meta_write(w, err);
}

static void erofs_free(struct sink *s)
{
    struct erofs_writer *w = writer_of(s);

    arena_done(&w->arena);
    free(w->table);
    free(w->out.buf);
    free(w->chunk.buf);
    free(w);
}

static const struct sink_ops erofs_ops = {
    .put = erofs_put,
    .data = erofs_data,
    .drop = erofs_drop,
    .finish = erofs_finish,
    .free = erofs_free,
};

int sink_erofs_new(int fd, const char *scratch, struct sink **ret, struct err *err)
{
    struct erofs_writer *w = xnew(struct erofs_writer);
    _cleanup_(sink_freep) struct sink *s = &w->sink;
    static const char first[EROFS_BLOCK];
    int r;

    s->ops = &erofs_ops;
    s->memory = &w->arena;
    w->out = (struct erofs_out){.fd = fd, .buf = xcalloc(1, EROFS_OUT)};
    w->chunk.buf = xcalloc(1, EROFS_CHUNK);
    w->table_size = FIRST_SIZE;
    w->table = xnew_array(struct erofs_name *, FIRST_SIZE);
    if ((r = arena_init(&w->arena, scratch, err)) < 0 ||
        (r = erofs_out_put(&w->out, first, sizeof(first), err)) < 0)
        return r;
    w->root = arena_alloc(&w->arena, sizeof(*w->root));
    if (!w->root)
        return erofs_disk_full(err);
    *w->root = (struct erofs_file){.mode = S_IFDIR | 0755, .nlink = 2, .parent = w->root};
    w->inode_count = 1;
    *ret = TAKE_PTR(s);
    return 0;
}
