/*
 * fs_remove_tree: rm -r on a tree whose owner may be changing it to lead us elsewhere. Only names
 * in an open folder are removed; folders are entered without following links and without crossing
 * a mount; the way back up is "..", taken only if it is the folder that we came from. So one
 * descriptor is open at a time however deep the tree is, and nothing outside it is touched.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fs.h"
#include "base/str.h"

/* The folders above the one that is being emptied, the tree's parent first. */
struct level {
    char *name; /* of the folder below that was entered */
    dev_t dev;
    ino_t ino;
};

struct walk {
    int fd; /* the folder being emptied */
    struct level *above;
    size_t depth, cap;
};

static void walk_done(struct walk *w)
{
    for (size_t i = 0; i < w->depth; i++)
        free(w->above[i].name);
    free(w->above);
    cleanup_close(&w->fd);
}

static int open_folder(int dirfd, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    long fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));

    return fd >= 0 ? (int)fd : errno == EXDEV ? -EBUSY : -errno;
}

/* 0: gone. -ENOTEMPTY: a folder that must be emptied first. -EBUSY: a mount. */
static int remove_name(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return -errno;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return errno == EEXIST ? -ENOTEMPTY : -errno;
}

static int go_down(struct walk *w, const char *name)
{
    struct stat st;
    int fd;

    if (fstat(w->fd, &st) < 0)
        return -errno;
    fd = open_folder(w->fd, name);
    if (fd < 0)
        return fd;
    w->above = xgrow(w->above, &w->cap, w->depth + 1, sizeof(*w->above));
    w->above[w->depth++] = (struct level){xstrdup(name), st.st_dev, st.st_ino};
    close(w->fd);
    w->fd = fd;
    return 0;
}

/* Back to the folder above, and remove the one that is empty now. */
static int go_up(struct walk *w)
{
    struct level *level = &w->above[w->depth - 1];
    _cleanup_free_ char *name = NULL;
    struct stat st;
    int fd = open_folder(w->fd, "..");

    if (fd < 0)
        return fd;
    close(w->fd);
    w->fd = fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_dev != level->dev || st.st_ino != level->ino)
        return -ESTALE;
    name = TAKE_PTR(level->name);
    w->depth--;
    return unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* Remove what goes at once; *ret_name (heap) is the first folder that has something in it, NULL
 * when all is gone. On an error it is the name that would not go. */
static int empty_folder(int dirfd, char **ret_name)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *e;
    int r = 0;

    *ret_name = NULL;
    if (!dir) {
        r = -errno;
        cleanup_close(&copy);
        return r;
    }
    while (r == 0 && (errno = 0, e = readdir(dir))) {
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            continue;
        r = remove_name(dirfd, e->d_name);
        if (r < 0)
            *ret_name = xstrdup(e->d_name);
    }
    if (r == 0)
        r = -errno;
    closedir(dir);
    return r == -ENOTEMPTY ? 0 : r;
}

static int fail(const struct walk *w, const char *name, int code, const char *path, struct err *err)
{
    const char *at = name ? name : w->depth ? w->above[w->depth - 1].name : path;
    _cleanup_free_ char *echo = str_escape(at, strlen(at), 80);

    if (code == -EBUSY)
        return err_set(err, code, "cannot remove '%s': '%s' is a mount", path, echo);
    if (code == -ESTALE)
        return err_set(err, code, "cannot remove '%s': it was moved meanwhile", path);
    return err_sys(err, code, "cannot remove '%s': '%s'", path, echo);
}

/* w stands in the parent of a folder that is not empty. */
static int remove_below(struct walk *w, const char *name, const char *path, struct err *err)
{
    int r = go_down(w, name);

    if (r < 0)
        return r == -ENOENT ? 0 : fail(w, name, r, path, err);
    while (w->depth > 0) {
        _cleanup_free_ char *below = NULL;

        r = empty_folder(w->fd, &below);
        if (r == 0)
            r = below ? go_down(w, below) : go_up(w);
        if (r == -ENOENT && below)
            r = 0; /* it went by itself; look again */
        if (r < 0)
            return fail(w, below, r, path, err);
    }
    return 0;
}

int fs_remove_tree(const char *path, struct err *err)
{
    _cleanup_(walk_done) struct walk w = {.fd = -1};
    _cleanup_free_ char *parent = xstrdup(path);
    size_t len = strlen(parent);
    char *name;
    int r;

    while (len > 1 && parent[len - 1] == '/')
        parent[--len] = '\0';
    name = strrchr(parent, '/');
    name = name ? name + 1 : parent;
    if (str_is_empty(name) || str_eq(name, ".") || str_eq(name, ".."))
        return err_set(err, -EINVAL, "cannot remove '%s'", path);
    if (name > parent + 1)
        name[-1] = '\0';
    w.fd = open(name == parent   ? "."
            : name == parent + 1 ? "/"
                                 : parent,
        O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w.fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "cannot open the folder of '%s'", path);
    r = remove_name(w.fd, name);
    if (r == -ENOTEMPTY)
        return remove_below(&w, name, path, err);
    return r < 0 ? fail(&w, name, r, path, err) : 0;
}
