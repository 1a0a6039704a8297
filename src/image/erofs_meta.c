/*
 * Names, inodes and the super block. First every inode gets its place, folders before what is in
 * them, small ones into the gaps of blocks begun earlier; none crosses the end of a block unless it
 * is larger than one. Then folders that are too large to stand beside their inode are written, and
 * behind them the inodes.
 */
#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/str.h"
#include "image/digest.h"
#include "image/erofs_write.h"

#define GAPS_MAX 32

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "written as the processor has it");

struct gap {
    uint64_t at;
    uint32_t left;
};

struct meta {
    struct erofs_writer *w;
    struct gap gaps[GAPS_MAX];
    size_t gap_count;
    uint64_t end;       /* of the inodes so far; whole blocks */
    uint32_t dir_block; /* the next for folders */
    char *map;          /* of the inodes, while they are written */
};

/* ---- places ---- */

static void keep_gap(struct meta *m, uint64_t at, uint32_t left)
{
    size_t least = 0;

    if (left < sizeof(struct erofs_inode))
        return;
    if (m->gap_count < GAPS_MAX) {
        m->gaps[m->gap_count++] = (struct gap){at, left};
        return;
    }
    for (size_t n = 1; n < GAPS_MAX; n++)
        if (m->gaps[n].left < m->gaps[least].left)
            least = n;
    if (m->gaps[least].left < left)
        m->gaps[least] = (struct gap){at, left};
}

/* The smallest gap that is large enough; or a new place behind all. */
static uint64_t place(struct meta *m, uint64_t size)
{
    size_t best = GAPS_MAX;
    struct gap g;

    size = (size + EROFS_SLOT - 1) & ~(uint64_t)(EROFS_SLOT - 1);
    for (size_t n = 0; n < m->gap_count; n++)
        if (m->gaps[n].left >= size && (best == GAPS_MAX || m->gaps[n].left < m->gaps[best].left))
            best = n;
    if (best < GAPS_MAX) {
        g = m->gaps[best];
        m->gaps[best] = m->gaps[--m->gap_count];
    } else {
        g = (struct gap){m->end, (uint32_t)(erofs_blocks(size) * (uint64_t)EROFS_BLOCK)};
        m->end += g.left;
    }
    keep_gap(m, g.at + size, (uint32_t)(g.left - size));
    return g.at;
}

static uint64_t xattr_size(const struct erofs_file *f)
{
    return f->xattr_len ? sizeof(struct erofs_xattr_header) + f->xattr_len : 0;
}

/* Where the map header of compressed content is, from the inode. */
static uint64_t map_at(const struct erofs_file *f)
{
    return (sizeof(struct erofs_inode) + xattr_size(f) + 7) & ~UINT64_C(7);
}

static uint64_t index_at(const struct erofs_file *f)
{
    return map_at(f) + sizeof(struct erofs_map_header) + 8;
}

static uint64_t size_on_disk(const struct erofs_file *f)
{
    if (f->layout == EROFS_COMPRESSED)
        return index_at(f) + erofs_blocks(f->size) * sizeof(struct erofs_index);
    return sizeof(struct erofs_inode) + xattr_size(f) + (f->layout == EROFS_INLINE ? f->size : 0);
}

static void place_file(struct meta *m, struct erofs_file *f)
{
    if (f->nid == 0)
        f->nid = place(m, size_on_disk(f)) / EROFS_SLOT;
}

/* ---- folders ---- */

static int compare(const void *a, const void *b)
{
    const struct erofs_name *x = *(struct erofs_name *const *)a,
                            *y = *(struct erofs_name *const *)b;
    int r = memcmp(x->text, y->text, MIN_OF(x->len, y->len));

    return r ? r : (int)x->len - (int)y->len;
}

static struct erofs_name *dots(
    struct erofs_writer *w, struct erofs_file *dir, struct erofs_file *file, uint16_t len)
{
    struct erofs_name *n = arena_alloc(&w->arena, sizeof(*n) + 2);

    if (!n)
        return NULL;
    *n = (struct erofs_name){.dir = dir, .file = file, .len = len};
    memcpy(n->text, "..", 2);
    return n;
}

static int sort_names(struct erofs_writer *w, struct erofs_file *dir, struct err *err)
{
    uint32_t n = 0;

    dir->order = arena_alloc(&w->arena, (dir->name_count + 2) * sizeof(void *));
    if (!dir->order)
        return erofs_disk_full(err);
    dir->order[n++] = dots(w, dir, dir, 1);
    dir->order[n++] = dots(w, dir, dir->parent, 2);
    if (!dir->order[0] || !dir->order[1])
        return erofs_disk_full(err);
    for (struct erofs_name *name = dir->names; name; name = name->next)
        if (name->file)
            dir->order[n++] = name;
    assert(n == dir->name_count + 2);
    dir->name_count = n;
    qsort(dir->order, n, sizeof(void *), compare);
    return 0;
}

/* Names from the first on that are in one block; their bytes. */
static uint32_t fill_of(const struct erofs_file *dir, uint32_t first, uint32_t *ret_bytes)
{
    uint32_t bytes = 0, n = first;

    for (; n < dir->name_count; n++) {
        uint32_t more = (uint32_t)sizeof(struct erofs_dirent) + dir->order[n]->len;
        if (bytes + more > EROFS_BLOCK)
            break;
        bytes += more;
    }
    *ret_bytes = bytes;
    return n - first;
}

static uint64_t size_of_folder(const struct erofs_file *dir)
{
    uint64_t size = 0;
    uint32_t bytes;

    for (uint32_t n = 0; n < dir->name_count;) {
        n += fill_of(dir, n, &bytes);
        size += n < dir->name_count ? EROFS_BLOCK : bytes;
    }
    return size;
}

static uint8_t type_of(const struct erofs_file *f)
{
    switch (f->mode & S_IFMT) {
    case S_IFDIR:
        return EROFS_FT_DIR;
    case S_IFLNK:
        return EROFS_FT_LINK;
    case S_IFIFO:
        return EROFS_FT_FIFO;
    case S_IFCHR:
        return EROFS_FT_CHR;
    default:
        return EROFS_FT_FILE;
    }
}

/* One block of names; to has room for it. Returns how many names. */
static uint32_t write_names(
    const struct erofs_file *dir, uint32_t first, char *to, uint32_t *ret_bytes)
{
    uint32_t count = fill_of(dir, first, ret_bytes);
    uint16_t at = (uint16_t)(count * sizeof(struct erofs_dirent));

    for (uint32_t n = 0; n < count; n++) {
        const struct erofs_name *name = dir->order[first + n];
        struct erofs_dirent d = {name->file->nid, at, type_of(name->file), 0};
        memcpy(to + n * sizeof(d), &d, sizeof(d));
        memcpy(to + at, name->text, name->len);
        at = (uint16_t)(at + name->len);
    }
    return count;
}

static int lay_out(struct meta *m, struct erofs_file *dir, struct err *err)
{
    int r = sort_names(m->w, dir, err);

    if (r < 0)
        return r;
    dir->size = size_of_folder(dir);
    dir->layout = sizeof(struct erofs_inode) + xattr_size(dir) + dir->size <= EROFS_BLOCK
        ? EROFS_INLINE
        : EROFS_PLAIN;
    dir->where = dir->layout == EROFS_INLINE ? EROFS_NO_BLOCK : m->dir_block;
    m->dir_block += dir->layout == EROFS_INLINE ? 0 : erofs_blocks(dir->size);
    place_file(m, dir);
    for (uint32_t n = 0; n < dir->name_count; n++)
        if (!S_ISDIR(dir->order[n]->file->mode))
            place_file(m, dir->order[n]->file);
    for (uint32_t n = 0; r == 0 && n < dir->name_count; n++) {
        struct erofs_file *f = dir->order[n]->file;
        if (S_ISDIR(f->mode) && f != dir && f != dir->parent)
            r = lay_out(m, f, err);
    }
    return r;
}

/* ---- writing ---- */

static int write_folder(struct meta *m, const struct erofs_file *dir, struct err *err)
{
    char block[EROFS_BLOCK];
    uint32_t bytes;
    int r = 0;

    for (uint32_t n = 0; r == 0 && n < dir->name_count;) {
        n += write_names(dir, n, block, &bytes);
        r = erofs_out_put(&m->w->out, block, bytes, err);
    }
    return r;
}

static int write_folders(struct meta *m, const struct erofs_file *dir, struct err *err)
{
    int r = dir->layout == EROFS_INLINE ? 0 : write_folder(m, dir, err);

    for (uint32_t n = 0; r == 0 && n < dir->name_count; n++) {
        const struct erofs_file *f = dir->order[n]->file;
        if (S_ISDIR(f->mode) && f != dir && f != dir->parent)
            r = write_folders(m, f, err);
    }
    return r;
}

static void write_inode(struct meta *m, const struct erofs_file *f)
{
    char *at = m->map + f->nid * EROFS_SLOT;
    struct erofs_inode i = {
        .format = (uint16_t)(1 | f->layout << 1),
        .xattr_count = (uint16_t)(f->xattr_len ? 1 + f->xattr_len / 4 : 0),
        .mode = f->mode,
        .size = f->size,
        .where = f->where,
        .ino = (uint32_t)f->nid,
        .uid = f->uid,
        .gid = f->gid,
        .mtime = (uint64_t)f->sec,
        .mtime_nsec = f->nsec,
        .nlink = f->nlink,
    };
    struct erofs_map_header h = {.advise = EROFS_ADVISE_BIG_PCLUSTER};
    uint32_t bytes;

    memcpy(at, &i, sizeof(i));
    if (f->xattr_len)
        memcpy(at + sizeof(i) + sizeof(struct erofs_xattr_header), f->xattrs, f->xattr_len);
    if (f->layout == EROFS_COMPRESSED) {
        memcpy(at + map_at(f), &h, sizeof(h));
        memcpy(at + index_at(f), f->index, erofs_blocks(f->size) * sizeof(*f->index));
    } else if (f->layout == EROFS_INLINE && S_ISDIR(f->mode)) {
        (void)write_names(f, 0, at + sizeof(i) + xattr_size(f), &bytes);
    } else if (f->layout == EROFS_INLINE) {
        memcpy(at + sizeof(i) + xattr_size(f), f->tail, f->size);
    }
}

static void write_inodes(struct meta *m, const struct erofs_file *dir)
{
    write_inode(m, dir);
    for (uint32_t n = 0; n < dir->name_count; n++) {
        const struct erofs_file *f = dir->order[n]->file;
        if (!S_ISDIR(f->mode))
            write_inode(m, f);
        else if (f != dir && f != dir->parent)
            write_inodes(m, f);
    }
}

/* Half of the names' digest: the same for the same layer. */
static void make_uuid(const struct meta *m, uint8_t uuid[16])
{
    char text[DIGEST_TEXT_MAX], half[17] = "";
    uint64_t n;

    digest_of(m->map, m->end, text);
    for (size_t i = 0; i < 2; i++) {
        memcpy(half, digest_hex(text) + 16 * i, 16);
        n = strtoull(half, NULL, 16);
        memcpy(uuid + 8 * i, &n, 8);
    }
}

static int write_super(struct meta *m, uint32_t meta_block, struct err *err)
{
    struct erofs_super s = {
        .magic = EROFS_MAGIC,
        .compat = EROFS_COMPAT_MTIME,
        .block_bits = EROFS_BLOCK_BITS,
        .root_nid = (uint16_t)m->w->root->nid,
        .inodes = m->w->inode_count,
        .blocks = meta_block + erofs_blocks(m->end),
        .meta_block = meta_block,
        .incompat = EROFS_INCOMPAT_LZ4_0PADDING | EROFS_INCOMPAT_BIG_PCLUSTER,
        .algorithms = 1,
        .lz4_config_size = 14,
        .lz4_max_distance = UINT16_MAX,
        .lz4_max_blocks = EROFS_CHUNK / EROFS_BLOCK,
    };

    make_uuid(m, s.uuid);
    if (pwrite(m->w->out.fd, &s, sizeof(s), EROFS_SUPER_AT) != sizeof(s))
        return err_sys(err, -errno, "cannot write the blob");
    return 0;
}

static int write_meta(struct meta *m, struct err *err)
{
    int fd = m->w->out.fd, r;
    uint32_t meta_block = m->w->out.block;
    off_t from = (off_t)meta_block * EROFS_BLOCK;
    size_t before = (size_t)(from % sysconf(_SC_PAGESIZE));
    char *map;

    /* A hole that cannot be filled would be a SIGBUS. */
    r = posix_fallocate(fd, from, (off_t)m->end);
    if (r != 0)
        return err_sys(err, -r, "cannot write the blob");
    map = mmap(NULL, m->end + before, PROT_READ | PROT_WRITE, MAP_SHARED, fd, from - (off_t)before);
    if (map == MAP_FAILED)
        return err_sys(err, -errno, "cannot write the blob");
    m->map = map + before;
    write_inodes(m, m->w->root);
    r = write_super(m, meta_block, err);
    (void)munmap(map, m->end + before);
    return r;
}

int erofs_meta_write(struct erofs_writer *w, struct err *err)
{
    /* A nid of 0 would be an inode number of 0, which readers of folders skip. */
    struct meta m = {.w = w, .dir_block = w->out.block, .end = EROFS_BLOCK};
    int r;

    keep_gap(&m, EROFS_SLOT, EROFS_BLOCK - EROFS_SLOT);
    if ((r = lay_out(&m, w->root, err)) < 0 || (r = write_folders(&m, w->root, err)) < 0)
        return r;
    assert(w->out.block == m.dir_block);
    r = erofs_out_flush(&w->out, err);
    return r < 0 ? r : write_meta(&m, err);
}
