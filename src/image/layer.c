/*
 * The conversion of a layer, entry by entry as the tar streams by. What can only be known at the
 * end is put at the end: whiteouts (a name whited out and made again in one layer is just the new
 * one) and the folders' overlay attributes.
 *
 * A folder that holds whiteouts gets an empty trusted.overlay.origin: without it overlayfs shows
 * the whiteouts of a folder that has nothing below (Linux: fs/overlayfs/readdir.c, "non-merge dir
 * that may contain whiteouts"). So whiteouts need no look at what is below.
 */
#include "image/layer.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/str.h"
#include "image/layer_entry.h"
#include "image/layer_path.h"

#define WHITEOUT ".wh."
#define WHITEOUT_META ".wh..wh."
#define OPAQUE_MARKER ".wh..wh..opq"
#define DROPS_MAX 10000 /* names that come again as something else: each may cost a tree */
#define COPY_CHUNK 65536
#define PROGRESS_STEP (16 * 1024 * 1024)

struct convert {
    struct layer l;
    struct archive *tar;
    unsigned drops;
    uint64_t told; /* bytes at the last progress */
};

/* ---- whiteouts ---- */

static int take_opaque(struct layer *l, const struct place *p)
{
    p->dir->opaque = true;
    return 0;
}

static int take_whiteout(struct layer *l, const struct place *p, const char *raw, struct err *err)
{
    const char *name = p->name + strlen(WHITEOUT);
    struct node *n;

    if (name[0] == '\0' || str_eq(name, ".") || str_eq(name, ".."))
        return layer_failed(raw, -EINVAL, "a whiteout of nothing", err);
    n = skeleton_find(&l->names, p->dir, name, strlen(name));
    if (!n) {
        if (++l->entries > l->limits->max_entries)
            return err_set(err, -EFBIG, "more than the limit of %llu entries",
                (unsigned long long)l->limits->max_entries);
        n = skeleton_add(&l->names, p->dir, name, strlen(name), NODE_WHITEOUT);
    }
    n->hidden = true;
    return 0;
}

/* ---- a hard link ---- */

static int copy_content(struct layer *l, int fd, uint64_t size, struct err *err)
{
    _cleanup_free_ char *chunk = xcalloc(1, COPY_CHUNK);
    uint64_t at = 0;

    while (at < size) {
        ssize_t n = pread(fd, chunk, (size_t)MIN_OF(size - at, (uint64_t)COPY_CHUNK), (off_t)at);
        int r;

        if (n < 0)
            return err_sys(err, -errno, "cannot read a file below");
        if (n == 0)
            return err_set(err, -EIO, "a file below ends too early");
        if ((r = l->out->ops->data(l->out, chunk, (size_t)n, at, err)) < 0)
            return r;
        at += (uint64_t)n;
    }
    return 0;
}

/* The target is in a lower layer: this layer gets a copy, and with it the name. */
static int copy_from_below(
    struct layer *l, const char *target, const char *path, struct node *n, struct err *err)
{
    _cleanup_(item_done) struct item i = {0};
    _cleanup_close_ int fd = -1;
    int r;

    r = below_lookup(l->below, target, &i, err);
    if (r == -ENOENT || (r == 0 && i.type == ITEM_DIR))
        return err_set(err, -EINVAL, "a hard link to what is not there");
    if (r < 0)
        return r;
    if (i.type == ITEM_FILE && (fd = below_open(l->below, target, err)) < 0)
        return fd;
    r = layer_put(l, path, &i, err);
    if (r == 0 && i.type == ITEM_FILE)
        r = copy_content(l, fd, i.size, err);
    n->type = i.type == ITEM_SYMLINK ? NODE_SYMLINK : NODE_OTHER;
    item_done(&n->attr);
    n->attr.target = TAKE_PTR(i.target);
    return r;
}

static int put_hardlink(struct layer *l, struct node *n, const char *path, struct item *i,
    const char *raw, struct err *err)
{
    char target[LAYER_PATH_MAX];
    struct place at;
    struct node *other;
    int r;

    if ((r = layer_find_place(l, i->target, &at, err)) < 0 ||
        (r = layer_path(l, at.dir, at.name, target, err)) < 0)
        return r;
    other = layer_node_at(l, &at);
    if (other == n)
        return layer_failed(raw, -EINVAL, "a hard link to itself", err);
    if (!other && layer_shows_below(at.dir)) {
        r = copy_from_below(l, target, path, n, err);
        return r == -EINVAL ? layer_failed(raw, r, "a hard link to what is not there", err) : r;
    }
    if (!other || other->type == NODE_WHITEOUT || other->type == NODE_DIR)
        return layer_failed(raw, -EINVAL, "a hard link to what is not there", err);
    n->type = other->type;
    if (other->type == NODE_SKIPPED)
        return 0;
    item_done(&n->attr);
    n->attr.target = xstrdup(other->attr.target);
    free(i->target);
    i->target = xstrdup(target);
    return layer_put(l, path, i, err);
}

/* ---- an entry ---- */

static enum node_type node_type_of(const struct item *i)
{
    return i->type == ITEM_DIR ? NODE_DIR : i->type == ITEM_SYMLINK ? NODE_SYMLINK : NODE_OTHER;
}

/* The name again, and not a folder both times: what was put goes, and nothing below shows. */
static int replace(struct convert *c, struct node *n, const char *path, struct err *err)
{
    int r;

    if (++c->drops > DROPS_MAX)
        return err_set(err, -EFBIG, "too many names come twice in the layer");
    r = c->l.out->ops->drop(c->l.out, path, err);
    if (r < 0)
        return r;
    skeleton_prune(&c->l.names, n);
    n->hidden = true;
    n->opaque = false;
    return 0;
}

static int make_node(struct convert *c, const struct place *p, const char *path,
    const struct item *i, struct node **ret, struct err *err)
{
    struct node *n = layer_node_at(&c->l, p);
    bool again;
    int r = 0;

    if (!n) {
        *ret = skeleton_add(&c->l.names, p->dir, p->name, strlen(p->name), NODE_WHITEOUT);
        return 0;
    }
    again = n->type != NODE_WHITEOUT && n->type != NODE_SKIPPED;
    if (again && !(n->type == NODE_DIR && i->type == ITEM_DIR))
        r = replace(c, n, path, err);
    *ret = n;
    return r;
}

static int copy_data(struct convert *c, struct err *err)
{
    const void *p;
    size_t n;
    la_int64_t off;
    int r;

    while ((r = archive_read_data_block(c->tar, &p, &n, &off)) == ARCHIVE_OK) {
        if (n > 0 && (r = c->l.out->ops->data(c->l.out, p, n, (uint64_t)off, err)) < 0)
            return r;
        if (c->l.progress && stream_bytes(c->l.in) - c->told >= PROGRESS_STEP) {
            c->told = stream_bytes(c->l.in);
            c->l.progress(c->l.progress_arg, c->told);
        }
    }
    return r == ARCHIVE_EOF ? 0 : -EBADMSG;
}

static int put_entry(
    struct convert *c, const struct place *p, struct item *i, const char *raw, struct err *err)
{
    char path[LAYER_PATH_MAX];
    struct node *n;
    int r;

    if ((r = layer_path(&c->l, p->dir, p->name, path, err)) < 0 ||
        (r = make_node(c, p, path, i, &n, err)) < 0)
        return r;
    n->listed = true;
    if (i->type == ITEM_HARDLINK)
        return put_hardlink(&c->l, n, path, i, raw, err);
    n->type = node_type_of(i);
    r = layer_put(&c->l, path, i, err);
    if (r < 0)
        return r;
    item_done(&n->attr);
    if (i->type == ITEM_DIR)
        item_copy(i, &n->attr);
    else if (i->type == ITEM_SYMLINK)
        n->attr.target = xstrdup(i->target);
    return i->type == ITEM_FILE ? copy_data(c, err) : 0;
}

static int skip_device(struct layer *l, const struct place *p)
{
    if (p->name[0] && !layer_node_at(l, p))
        skeleton_add(&l->names, p->dir, p->name, strlen(p->name), NODE_SKIPPED);
    return 0;
}

/* ".wh..wh.plnk/..." and the like: bookkeeping of aufs, in layers of Docker's first years. */
static bool is_aufs_meta(const char *raw)
{
    for (const char *p = raw; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (str_starts(p, WHITEOUT_META) && !str_eq(p, OPAQUE_MARKER))
            return true;
    }
    return false;
}

static bool is_whiteout_name(const char *raw)
{
    const char *slash = strrchr(raw, '/');

    return str_starts(slash ? slash + 1 : raw, WHITEOUT);
}

static int take_entry(struct convert *c, struct archive_entry *e, struct err *err)
{
    const char *raw = archive_entry_pathname(e);
    _cleanup_(item_done) struct item i = {0};
    struct place p;
    int r;

    if (!raw)
        return err_set(err, -EINVAL, "an entry with a name that cannot be read");
    if (strlen(raw) > 4 * LAYER_PATH_MAX)
        return layer_failed(raw, -ENAMETOOLONG, "far too long", err);
    if (is_aufs_meta(raw))
        return 0;
    r = layer_find_place(&c->l, raw, &p, err);
    /* umoci whites out all that was in a folder which is a file now: it is gone anyway. */
    if (r == -ENOTDIR && is_whiteout_name(raw))
        return 0;
    if (r < 0)
        return r;
    if (str_eq(p.name, OPAQUE_MARKER))
        return take_opaque(&c->l, &p);
    if (str_starts(p.name, WHITEOUT))
        return take_whiteout(&c->l, &p, raw, err);
    r = layer_entry_item(e, raw, &i, err);
    if (r == -ENODATA)
        return skip_device(&c->l, &p);
    if (r == 0 && p.name[0] == '\0' && i.type != ITEM_DIR)
        r = layer_failed(raw, -EINVAL, "the root must be a folder", err);
    return r == 0 ? put_entry(c, &p, &i, raw, err) : r;
}

/* ---- the end ---- */

static int put_whiteout(struct node *n, void *arg, struct err *err)
{
    static const struct item whiteout = {.type = ITEM_WHITEOUT};
    struct layer *l = arg;
    char path[LAYER_PATH_MAX];
    int r;

    if (n->type != NODE_WHITEOUT)
        return 0;
    r = layer_path(l, n, "", path, err);
    if (r < 0)
        return r;
    n->parent->has_whiteouts = true;
    return l->out->ops->put(l->out, path, &whiteout, err);
}

static int put_dir_marks(struct node *n, void *arg, struct err *err)
{
    struct layer *l = arg;
    char path[LAYER_PATH_MAX];
    int r;

    if (n->type != NODE_DIR || !n->parent || !(n->opaque || n->hidden || n->has_whiteouts))
        return 0;
    r = layer_path(l, n, "", path, err);
    if (r < 0)
        return r;
    if (n->opaque || n->hidden)
        item_set_xattr(&n->attr, "trusted.overlay.opaque", "y", 1);
    if (n->has_whiteouts)
        item_set_xattr(&n->attr, "trusted.overlay.origin", "", 0);
    return l->out->ops->put(l->out, path, &n->attr, err);
}

/* overlayfs shows the topmost layer's root: what the layer does not say comes from below. */
static int put_root(struct layer *l, const struct layer_root *below, struct err *err)
{
    struct node *root = l->names.root;
    struct layer_root asked;
    int r;

    if (!root->listed) {
        if (!below && (r = below_root(l->below, &asked, err)) < 0)
            return r;
        below = below ? below : &asked;
        if (below->has_xattrs && !root->opaque &&
            (r = below_lookup(l->below, "", &root->attr, err)) < 0)
            return r;
        root->attr.type = ITEM_DIR;
        root->attr.mode = below->mode;
        root->attr.uid = below->uid;
        root->attr.gid = below->gid;
    }
    return l->out->ops->put(l->out, "", &root->attr, err);
}

static int finish(struct layer *l, const struct layer_root *root_below, struct err *err)
{
    int r;

    if ((r = skeleton_walk(&l->names, put_whiteout, l, err)) < 0 ||
        (r = skeleton_walk(&l->names, put_dir_marks, l, err)) < 0 ||
        (r = put_root(l, root_below, err)) < 0)
        return r;
    return l->out->ops->finish(l->out, err);
}

/* ---- the tar ---- */

static la_ssize_t read_stream(struct archive *a, void *arg, const void **ret)
{
    struct layer *l = arg;
    struct err err = ERR_INIT;
    size_t n;

    if (stream_next(l->in, ret, &n, &err) < 0) {
        archive_set_error(a, -err.code, "%s", err.text);
        return -1;
    }
    return (la_ssize_t)n;
}

static int tar_failed(struct archive *a, struct err *err)
{
    const char *text = archive_error_string(a);
    _cleanup_free_ char *shown = str_escape(text ? text : "", text ? strlen(text) : 0, 160);
    int code = archive_errno(a);

    return err_set(err, code == EFBIG ? -EFBIG : -EINVAL, "cannot read the tar: %s", shown);
}

static int read_tar(struct convert *c, struct err *err)
{
    struct archive_entry *e;
    int r;

    if (archive_read_support_format_tar(c->tar) != ARCHIVE_OK ||
        archive_read_support_format_empty(c->tar) != ARCHIVE_OK ||
        archive_read_open(c->tar, &c->l, NULL, read_stream, NULL) != ARCHIVE_OK)
        return tar_failed(c->tar, err);
    while ((r = archive_read_next_header(c->tar, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
        r = take_entry(c, e, err);
        if (r == -EBADMSG)
            return tar_failed(c->tar, err);
        if (r < 0)
            return r;
    }
    return r == ARCHIVE_EOF ? 0 : tar_failed(c->tar, err);
}

int layer_convert(struct stream *in, struct below *below, const struct layer_root *root_below,
    const struct layer_limits *limits, struct sink *out, layer_progress_fn progress, void *arg,
    struct layer_result *ret, struct err *err)
{
    struct convert c = {
        .l = {in, below, out, limits, .progress = progress, .progress_arg = arg},
        .tar = archive_read_new(),
    };
    const struct node *root;
    int r;

    assert(c.tar);
    skeleton_init(&c.l.names, out->memory);
    r = read_tar(&c, err);
    archive_read_free(c.tar);
    if (r == 0)
        r = finish(&c.l, root_below, err);
    root = c.l.names.root;
    if (r == 0)
        *ret = (struct layer_result){
            .root_listed = root->listed,
            .opaque_root = root->opaque,
            .root = {root->attr.mode, root->attr.uid, root->attr.gid, root->attr.xattr_count > 0},
            .entries = c.l.entries,
            .bytes = c.l.bytes,
        };
    skeleton_done(&c.l.names);
    return r;
}
