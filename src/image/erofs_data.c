/*
 * Content of files. Every 128 KiB are compressed on their own and stored in whole blocks; what does
 * not get a block smaller stays as it is, and a file of which that is true everywhere is written as
 * a plain one, which the kernel reads without copying. Zeros, also those of holes, are compressed
 * 512 KiB at a time into one block.
 */
#include <fcntl.h>
#include <lz4.h>

#include "base/str.h"
#include "image/erofs_write.h"

#define ZEROS_MAX (512u * 1024)
#define WRITE_BACK (UINT64_C(16) << 20)

static const char zeros[ZEROS_MAX];

int erofs_disk_full(struct err *err)
{
    return err_set(err, -ENOSPC, "no space is left for the blob");
}

/* ---- blocks ---- */

/* Begin to write to disk what is there: at the end it has to be, and the disk is idle now. */
static void write_back(struct erofs_out *o, size_t n)
{
    o->written += n;
    if (o->written - o->begun < WRITE_BACK)
        return;
    (void)sync_file_range(
        o->fd, (off_t)o->begun, (off_t)(o->written - o->begun), SYNC_FILE_RANGE_WRITE);
    o->begun = o->written;
}

int erofs_out_flush(struct erofs_out *o, struct err *err)
{
    const char *p = o->buf;

    while (o->len > 0) {
        ssize_t n = write(o->fd, p, o->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, -errno, "cannot write the blob");
        p += n;
        o->len -= (size_t)n;
        write_back(o, (size_t)n);
    }
    return 0;
}

static int out_bytes(struct erofs_out *o, const void *p, size_t n, struct err *err)
{
    int r = 0;

    if (n > EROFS_OUT - o->len)
        r = erofs_out_flush(o, err);
    if (r == 0)
        memcpy(o->buf + o->len, p, n);
    o->len += r == 0 ? n : 0;
    return r;
}

static int out_block_count(struct erofs_out *o, uint32_t count, struct err *err)
{
    if (count > INT32_MAX - o->block)
        return err_set(err, -EFBIG, "the blob is larger than 8 TiB");
    o->block += count;
    return 0;
}

int erofs_out_put(struct erofs_out *o, const void *p, size_t n, struct err *err)
{
    size_t rest = erofs_blocks(n) * (size_t)EROFS_BLOCK - n;
    int r;

    if ((r = out_block_count(o, erofs_blocks(n), err)) < 0 || (r = out_bytes(o, p, n, err)) < 0)
        return r;
    return out_bytes(o, zeros, rest, err);
}

/* ---- chunks ---- */

static int store(struct erofs_writer *w, uint64_t at, const char *p, size_t len, struct err *err)
{
    struct erofs_index *index = w->open->index + at / EROFS_BLOCK;

    for (uint32_t n = 0; n < erofs_blocks(len); n++)
        index[n] = (struct erofs_index){.type = EROFS_STORED, .block = w->out.block + n};
    return erofs_out_put(&w->out, p, len, err);
}

static void point_at(struct erofs_index *index, uint32_t blocks, uint32_t block, uint32_t on_disk)
{
    index[0] = (struct erofs_index){.type = EROFS_HEAD, .block = block};
    for (uint32_t n = 1; n < blocks; n++) {
        index[n] = (struct erofs_index){.type = EROFS_BEHIND};
        index[n].delta[0] = (uint16_t)(n == 1 ? EROFS_DELTA_BLOCKS | on_disk : n);
        index[n].delta[1] = (uint16_t)(blocks - n);
    }
}

/* One chunk: compressed if that saves a block. */
static int emit(struct erofs_writer *w, uint64_t at, const char *p, size_t len, struct err *err)
{
    char packed[EROFS_CHUNK];
    uint32_t blocks = erofs_blocks(len), on_disk;
    size_t room = MIN_OF((blocks - 1) * (size_t)EROFS_BLOCK, sizeof(packed));
    int n = room > 0 ? LZ4_compress_default(p, packed, (int)len, (int)room) : 0, r;

    if (n <= 0) {
        w->chunk.on_disk += blocks;
        return store(w, at, p, len, err);
    }
    on_disk = erofs_blocks((uint64_t)n);
    point_at(w->open->index + at / EROFS_BLOCK, blocks, w->out.block, on_disk);
    w->chunk.all_stored = false;
    w->chunk.on_disk += on_disk;
    /* The compressed bytes end where their last block ends. */
    if ((r = out_block_count(&w->out, on_disk, err)) < 0 ||
        (r = out_bytes(&w->out, zeros, on_disk * (size_t)EROFS_BLOCK - (size_t)n, err)) < 0)
        return r;
    return out_bytes(&w->out, packed, (size_t)n, err);
}

static int emit_zeros(struct erofs_writer *w, struct err *err)
{
    struct erofs_chunk *c = &w->chunk;

    while (c->zeros > 0) {
        size_t n = (size_t)MIN_OF(c->zeros, (uint64_t)ZEROS_MAX);
        int r = emit(w, c->at - c->zeros, zeros, n, err);
        if (r < 0)
            return r;
        c->zeros -= n;
    }
    return 0;
}

static bool is_zero(const char *p, size_t n)
{
    return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static int end_chunk(struct erofs_writer *w, struct err *err)
{
    struct erofs_chunk *c = &w->chunk;
    int r;

    if (c->len == EROFS_CHUNK && is_zero(c->buf, c->len)) {
        c->zeros += c->len;
    } else if ((r = emit_zeros(w, err)) < 0 || (r = emit(w, c->at, c->buf, c->len, err)) < 0) {
        return r;
    }
    c->at += c->len;
    c->len = 0;
    return 0;
}

static int add_bytes(struct erofs_writer *w, const char *p, size_t n, struct err *err)
{
    struct erofs_chunk *c = &w->chunk;

    while (n > 0) {
        size_t some = MIN_OF(n, EROFS_CHUNK - c->len);
        int r = 0;

        if (p)
            memcpy(c->buf + c->len, p, some);
        else
            memset(c->buf + c->len, 0, some);
        c->len += some;
        p = p ? p + some : NULL;
        n -= some;
        if (c->len == EROFS_CHUNK)
            r = end_chunk(w, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Whole chunks of a hole are only counted. */
static int add_hole(struct erofs_writer *w, uint64_t n, struct err *err)
{
    struct erofs_chunk *c = &w->chunk;
    size_t some = c->len > 0 ? (size_t)MIN_OF(n, (uint64_t)(EROFS_CHUNK - c->len)) : 0;
    int r = add_bytes(w, NULL, some, err);

    if (r < 0)
        return r;
    n -= some;
    c->zeros += n - n % EROFS_CHUNK;
    c->at += n - n % EROFS_CHUNK;
    return add_bytes(w, NULL, (size_t)(n % EROFS_CHUNK), err);
}

/* ---- a file ---- */

int erofs_content_begin(struct erofs_writer *w, struct err *err)
{
    struct erofs_chunk *c = &w->chunk;

    w->open->index = arena_alloc(
        &w->arena, (size_t)erofs_blocks(w->open->size) * sizeof(struct erofs_index));
    if (!w->open->index)
        return erofs_disk_full(err);
    *c = (struct erofs_chunk){.buf = c->buf, .first = w->out.block, .all_stored = true};
    return 0;
}

int erofs_content_add(
    struct erofs_writer *w, const void *p, size_t n, uint64_t off, struct err *err)
{
    uint64_t at = w->chunk.at + w->chunk.len;
    int r;

    if (off < at || off > w->open->size || n > w->open->size - off)
        return err_set(err, -EINVAL, "a file's bytes are out of order");
    r = add_hole(w, off - at, err);
    return r < 0 ? r : add_bytes(w, p, n, err);
}

int erofs_content_end(struct erofs_writer *w, struct err *err)
{
    struct erofs_chunk *c = &w->chunk;
    int r = add_hole(w, w->open->size - c->at - c->len, err);

    if (r == 0)
        r = emit_zeros(w, err);
    if (r == 0 && c->len > 0)
        r = end_chunk(w, err);
    if (r == 0)
        r = emit_zeros(w, err);
    if (r < 0)
        return r;
    w->open->layout = c->all_stored ? EROFS_PLAIN : EROFS_COMPRESSED;
    w->open->where = c->all_stored ? c->first : c->on_disk;
    return 0;
}
