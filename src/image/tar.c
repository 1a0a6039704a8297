/*
 * The sink that writes a pax tar, for a mkfs.erofs that packs one as it comes. Nothing that was
 * written can be taken back: drop is not possible, and the caller then unpacks to disk instead.
 */
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "base/str.h"
#include "image/item.h"

struct tar {
    struct sink sink;
    struct archive *out;
    struct archive_entry *entry;
    int fd;
    uint64_t at, size; /* of the file put last */
};

static struct tar *tar_of(struct sink *s)
{
    return CONTAINER_OF(s, struct tar, sink);
}

static int archive_failed(struct tar *t, struct err *err)
{
    const char *text = archive_error_string(t->out);
    int code = archive_errno(t->out);

    return err_set(err, code > 0 ? -code : -EIO, "cannot pass on: %s", text ? text : "no reason");
}

/* Holes are written as zeros: mkfs.erofs sees them again when it compresses. */
static int write_zeros(struct tar *t, uint64_t upto, struct err *err)
{
    static const char zeros[65536];

    while (t->at < upto) {
        size_t n = (size_t)MIN_OF(upto - t->at, (uint64_t)sizeof(zeros));
        if (archive_write_data(t->out, zeros, n) != (la_ssize_t)n)
            return archive_failed(t, err);
        t->at += n;
    }
    return 0;
}

static int tar_data(struct sink *s, const void *p, size_t n, uint64_t off, struct err *err)
{
    struct tar *t = tar_of(s);
    int r;

    r = write_zeros(t, off, err);
    if (r < 0)
        return r;
    if (archive_write_data(t->out, p, n) != (la_ssize_t)n)
        return archive_failed(t, err);
    t->at += n;
    return 0;
}

static void set_type(struct archive_entry *e, const struct item *i)
{
    static const unsigned int types[] = {
        [ITEM_DIR] = AE_IFDIR,
        [ITEM_FILE] = AE_IFREG,
        [ITEM_SYMLINK] = AE_IFLNK,
        [ITEM_HARDLINK] = AE_IFREG,
        [ITEM_FIFO] = AE_IFIFO,
        [ITEM_WHITEOUT] = AE_IFCHR,
    };

    archive_entry_set_filetype(e, types[i->type]);
    archive_entry_set_perm(e, i->type == ITEM_SYMLINK ? 0777 : i->mode);
    if (i->type == ITEM_SYMLINK)
        archive_entry_set_symlink(e, i->target);
    if (i->type == ITEM_HARDLINK)
        archive_entry_set_hardlink(e, i->target);
    if (i->type == ITEM_WHITEOUT) {
        archive_entry_set_rdevmajor(e, 0);
        archive_entry_set_rdevminor(e, 0);
    }
    if (i->type == ITEM_FILE)
        archive_entry_set_size(e, (la_int64_t)i->size);
    else
        archive_entry_unset_size(e);
}

static int tar_put(struct sink *s, const char *path, const struct item *i, struct err *err)
{
    struct tar *t = tar_of(s);
    struct archive_entry *e = t->entry;
    int r;

    r = write_zeros(t, t->size, err);
    if (r < 0)
        return r;
    archive_entry_clear(e);
    archive_entry_set_pathname(e, path[0] ? path : ".");
    set_type(e, i);
    archive_entry_set_uid(e, i->uid);
    archive_entry_set_gid(e, i->gid);
    archive_entry_set_mtime(e, i->sec, (long)i->nsec);
    for (size_t n = 0; n < i->xattr_count; n++)
        archive_entry_xattr_add_entry(e, i->xattrs[n].name, i->xattrs[n].value, i->xattrs[n].len);
    if (archive_write_header(t->out, e) != ARCHIVE_OK)
        return archive_failed(t, err);
    t->at = 0;
    t->size = i->type == ITEM_FILE ? i->size : 0;
    return 0;
}

static int tar_drop(struct sink *s, const char *path, struct err *err)
{
    return err_set(err, -EOPNOTSUPP, "a name comes twice in the layer");
}

static int tar_finish(struct sink *s, struct err *err)
{
    struct tar *t = tar_of(s);
    int r;

    r = write_zeros(t, t->size, err);
    if (r < 0)
        return r;
    if (archive_write_close(t->out) != ARCHIVE_OK)
        return archive_failed(t, err);
    cleanup_close(&t->fd); /* mkfs.erofs waits for the end of its input */
    t->fd = -1;
    return 0;
}

static void tar_free(struct sink *s)
{
    struct tar *t = tar_of(s);

    archive_write_fail(t->out); /* no trailer after an error; closing again is no harm */
    archive_write_free(t->out);
    archive_entry_free(t->entry);
    cleanup_close(&t->fd);
    free(t);
}

static const struct sink_ops tar_ops = {
    .put = tar_put,
    .data = tar_data,
    .drop = tar_drop,
    .finish = tar_finish,
    .free = tar_free,
};

int sink_tar_new(int fd, struct sink **ret, struct err *err)
{
    struct tar *t = xnew(struct tar);

    t->sink.ops = &tar_ops;
    t->fd = fd;
    t->out = archive_write_new();
    t->entry = archive_entry_new();
    assert(t->out && t->entry);
    archive_write_set_format_pax(t->out);
    archive_write_set_options(t->out, "xattrheader=SCHILY,hdrcharset=BINARY");
    archive_write_set_bytes_per_block(t->out, 256 * 1024);
    archive_write_set_bytes_in_last_block(t->out, 512);
    if (archive_write_open_fd(t->out, fd) != ARCHIVE_OK) {
        int r = archive_failed(t, err);
        tar_free(&t->sink);
        return r;
    }
    *ret = &t->sink;
    return 0;
}
