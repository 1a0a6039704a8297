/*
 * The sink that unpacks to disk, for a mkfs.erofs that takes no tar. Nobody else writes below the
 * folder, and paths are canonical; still every folder is reached by openat2(2) without following
 * links, so that a mistake elsewhere ends in an error and not in a write outside.
 * Owner first, then mode (chown clears set-uid), then extended attributes (writing clears
 * capabilities), then times; folders' times at the very end, since putting into them changes them.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/fs.h"
#include "base/str.h"
#include "image/item.h"

struct dir_time {
    char *path;
    struct timespec mtime;
};

struct tree {
    struct sink sink;
    char *dir;
    int root;
    int parent; /* folder of the last path, kept open: the next is most often in the same */
    char *parent_path;
    int file; /* put last, not finished yet; -1 none */
    struct item file_item;
    struct dir_time *times;
    size_t time_count, time_cap;
};

static struct tree *tree_of(struct sink *s)
{
    return CONTAINER_OF(s, struct tree, sink);
}

static int open_plain(int dirfd, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    long fd = syscall(SYS_openat2, dirfd, path[0] ? path : ".", &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

static int failed(const char *what, const char *path, int code, struct err *err)
{
    _cleanup_free_ char *shown = str_escape(path, strlen(path), 120);

    return err_sys(err, code, "'%s': %s", shown, what);
}

/* Opens the folder that holds path; *ret_name points at the last part. */
static int enter_parent(struct tree *t, const char *path, const char **ret_name, struct err *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    int fd;

    *ret_name = slash ? slash + 1 : path;
    if (t->parent_path && strlen(t->parent_path) == len && memcmp(t->parent_path, path, len) == 0)
        return 0;
    free(t->parent_path);
    t->parent_path = NULL;
    cleanup_close(&t->parent);
    t->parent = -1;
    char *parent = xstrndup(path, len);
    fd = open_plain(t->root, parent, O_PATH | O_DIRECTORY);
    if (fd < 0) {
        free(parent);
        return failed("cannot open its folder", path, fd, err);
    }
    t->parent = fd;
    t->parent_path = parent;
    return 0;
}

static struct timespec mtime_of(const struct item *i)
{
    return (struct timespec){.tv_sec = i->sec, .tv_nsec = i->nsec};
}

/* ---- attributes of an open thing; fd may be O_PATH ---- */

static int set_xattrs(int fd, const char *path, const struct item *i, struct err *err)
{
    char link[40];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    for (size_t n = 0; n < i->xattr_count; n++) {
        const struct item_xattr *x = &i->xattrs[n];
        if (setxattr(link, x->name, x->value, x->len, 0) < 0)
            return failed("cannot set an extended attribute", path, -errno, err);
    }
    return 0;
}

static int set_attributes(int fd, const char *path, const struct item *i, struct err *err)
{
    if (fchownat(fd, "", i->uid, i->gid, AT_EMPTY_PATH) < 0)
        return failed("cannot set the owner", path, -errno, err);
    if (i->type != ITEM_SYMLINK) {
        char link[40];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (chmod(link, i->mode) < 0)
            return failed("cannot set the mode", path, -errno, err);
    }
    return set_xattrs(fd, path, i, err);
}

/* A folder put twice: what only the first had goes. */
static int clear_xattrs(int fd, const char *path, struct err *err)
{
    char list[65536];
    ssize_t n = flistxattr(fd, list, sizeof(list));

    if (n < 0)
        return failed("cannot list extended attributes", path, -errno, err);
    for (char *name = list; name < list + n; name += strlen(name) + 1)
        if (str_starts(name, "trusted.") || item_xattr_is_kept(name))
            (void)fremovexattr(fd, name);
    return 0;
}

/* ---- files ---- */

static int finish_file(struct tree *t, struct err *err)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, mtime_of(&t->file_item)};
    _cleanup_close_ int fd = TAKE_FD(t->file);
    int r;

    if (fd < 0)
        return 0;
    /* A hole at the end has no data. */
    if (ftruncate(fd, (off_t)t->file_item.size) < 0)
        return err_sys(err, -errno, "cannot set the size of a file");
    r = set_attributes(fd, "(file)", &t->file_item, err);
    if (r < 0)
        return r;
    if (futimens(fd, times) < 0)
        return err_sys(err, -errno, "cannot set the time of a file");
    item_done(&t->file_item);
    return 0;
}

static int put_file(
    struct tree *t, const char *name, const char *path, const struct item *i, struct err *err)
{
    t->file = openat(t->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (t->file < 0)
        return failed("cannot make the file", path, -errno, err);
    item_done(&t->file_item);
    item_copy(i, &t->file_item);
    return 0;
}

static int tree_data(struct sink *s, const void *p, size_t n, uint64_t off, struct err *err)
{
    struct tree *t = tree_of(s);

    while (n > 0) {
        ssize_t written = pwrite(t->file, p, n, (off_t)off);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return err_sys(err, -errno, "cannot write");
        p = (const char *)p + written;
        n -= (size_t)written;
        off += (uint64_t)written;
    }
    return 0;
}

/* ---- the others ---- */

static void remember_time(struct tree *t, const char *path, const struct item *i)
{
    t->times = xgrow(t->times, &t->time_cap, t->time_count + 1, sizeof(*t->times));
    t->times[t->time_count++] = (struct dir_time){xstrdup(path), mtime_of(i)};
}

static int put_dir(
    struct tree *t, const char *name, const char *path, const struct item *i, struct err *err)
{
    _cleanup_close_ int fd = -1;
    bool there = path[0] == '\0';
    int r;

    if (!there && mkdirat(t->parent, name, 0700) < 0) {
        if (errno != EEXIST)
            return failed("cannot make the folder", path, -errno, err);
        there = true;
    }
    fd = open_plain(path[0] ? t->parent : t->root, path[0] ? name : "", O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return failed("cannot open the folder", path, fd, err);
    r = there ? clear_xattrs(fd, path, err) : 0;
    if (r < 0)
        return r;
    remember_time(t, path, i);
    return set_attributes(fd, path, i, err);
}

static int make_special(struct tree *t, const char *name, const struct item *i)
{
    switch (i->type) {
    case ITEM_SYMLINK:
        return symlinkat(i->target, t->parent, name);
    case ITEM_FIFO:
        return mknodat(t->parent, name, S_IFIFO | 0600, 0);
    default:
        return mknodat(t->parent, name, S_IFCHR, makedev(0, 0));
    }
}

static int put_special(
    struct tree *t, const char *name, const char *path, const struct item *i, struct err *err)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, mtime_of(i)};
    _cleanup_close_ int fd = -1;
    int r;

    if (make_special(t, name, i) < 0)
        return failed("cannot be made", path, -errno, err);
    if (i->type == ITEM_WHITEOUT)
        return 0;
    fd = open_plain(t->parent, name, O_PATH);
    if (fd < 0)
        return failed("cannot open", path, fd, err);
    r = set_attributes(fd, path, i, err);
    if (r < 0)
        return r;
    if (utimensat(t->parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return failed("cannot set the time", path, -errno, err);
    return 0;
}

static int put_hardlink(
    struct tree *t, const char *name, const char *path, const struct item *i, struct err *err)
{
    if (linkat(t->root, i->target, t->parent, name, 0) < 0)
        return failed("cannot make the hard link", path, -errno, err);
    return 0;
}

static int tree_put(struct sink *s, const char *path, const struct item *i, struct err *err)
{
    struct tree *t = tree_of(s);
    const char *name;
    int r;

    if ((r = finish_file(t, err)) < 0 || (r = enter_parent(t, path, &name, err)) < 0)
        return r;
    switch (i->type) {
    case ITEM_DIR:
        return put_dir(t, name, path, i, err);
    case ITEM_FILE:
        return put_file(t, name, path, i, err);
    case ITEM_HARDLINK:
        return put_hardlink(t, name, path, i, err);
    default:
        return put_special(t, name, path, i, err);
    }
}

static int tree_drop(struct sink *s, const char *path, struct err *err)
{
    struct tree *t = tree_of(s);
    _cleanup_free_ char *full = NULL;
    const char *name;
    int r;

    if ((r = finish_file(t, err)) < 0 || (r = enter_parent(t, path, &name, err)) < 0)
        return r;
    if (unlinkat(t->parent, name, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return failed("cannot remove", path, -errno, err);
    full = xasprintf("/proc/self/fd/%d/%s", t->parent, name);
    r = fs_remove_tree(full, err);
    /* The open parent may have been below. */
    cleanup_close(&t->parent);
    t->parent = -1;
    free(t->parent_path);
    t->parent_path = NULL;
    return r;
}

static int tree_finish(struct sink *s, struct err *err)
{
    struct tree *t = tree_of(s);
    int r;

    r = finish_file(t, err);
    if (r < 0)
        return r;
    for (size_t n = 0; n < t->time_count; n++) {
        struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, t->times[n].mtime};
        _cleanup_close_ int fd = open_plain(t->root, t->times[n].path, O_RDONLY | O_DIRECTORY);
        /* Dropped after it was put. */
        if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
            continue;
        if (fd < 0 || futimens(fd, times) < 0)
            return failed("cannot set the time", t->times[n].path, fd < 0 ? fd : -errno, err);
    }
    return 0;
}

static void tree_free(struct sink *s)
{
    struct tree *t = tree_of(s);

    for (size_t n = 0; n < t->time_count; n++)
        free(t->times[n].path);
    free(t->times);
    item_done(&t->file_item);
    cleanup_close(&t->file);
    cleanup_close(&t->parent);
    cleanup_close(&t->root);
    free(t->parent_path);
    free(t->dir);
    free(t);
}

static const struct sink_ops tree_ops = {
    .put = tree_put,
    .data = tree_data,
    .drop = tree_drop,
    .finish = tree_finish,
    .free = tree_free,
};

int sink_tree_new(const char *dir, struct sink **ret, struct err *err)
{
    struct tree *t;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", dir);
    t = xnew(struct tree);
    *t = (struct tree){.dir = xstrdup(dir), .root = fd, .parent = -1, .file = -1};
    t->sink.ops = &tree_ops;
    *ret = &t->sink;
    return 0;
}
