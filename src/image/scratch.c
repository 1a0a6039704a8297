/*
 * PARENT/.lock is held while folders are made and looked for, so that none is taken for ownerless
 * between its mkdir and its lock. Removing happens after that, with the folder's own lock held.
 */
#include "image/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/str.h"

#define PREFIX "import."

struct orphan {
    char *path;
    int lock;
};

struct orphans {
    struct orphan *list;
    size_t count, cap;
};

static int lock_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static int find_orphans(const char *parent, struct orphans *ret, struct err *err)
{
    DIR *dir = opendir(parent);
    struct dirent *e;

    if (!dir)
        return err_sys(err, -errno, "cannot open '%s'", parent);
    while ((e = readdir(dir))) {
        _cleanup_free_ char *path = NULL;
        int lock;

        if (!str_starts(e->d_name, PREFIX))
            continue;
        path = xasprintf("%s/%s", parent, e->d_name);
        lock = lock_dir(path);
        if (lock < 0)
            continue;
        ret->list = xgrow(ret->list, &ret->cap, ret->count + 1, sizeof(*ret->list));
        ret->list[ret->count++] = (struct orphan){TAKE_PTR(path), lock};
    }
    closedir(dir);
    return 0;
}

/* What cannot be removed now is for the next one. */
static void remove_orphans(struct orphans *o)
{
    for (size_t i = 0; i < o->count; i++) {
        (void)fs_remove_tree(o->list[i].path, NULL);
        close(o->list[i].lock);
        free(o->list[i].path);
    }
    free(o->list);
}

static int make_locked(const char *parent, struct scratch *ret, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/" PREFIX "XXXXXX", parent);
    int lock;

    if (!mkdtemp(path))
        return err_sys(err, -errno, "cannot make a folder in '%s'", parent);
    lock = lock_dir(path);
    if (lock < 0)
        return err_sys(err, lock, "cannot lock '%s'", path);
    *ret = (struct scratch){TAKE_PTR(path), lock};
    return 0;
}

/* The lock of PARENT, held while the others are looked at. */
static int lock_parent(const char *parent, int *ret, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/.lock", parent);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return err_sys(err, -errno, "cannot lock '%s'", path);
    *ret = TAKE_FD(fd);
    return 0;
}

int scratch_make(const char *parent, struct scratch *ret, struct err *err)
{
    struct orphans orphans = {0};
    int lock, r;

    if ((r = fs_mkdir_p(parent, 0700, err)) < 0 || (r = lock_parent(parent, &lock, err)) < 0)
        return r;
    r = find_orphans(parent, &orphans, err);
    if (r == 0)
        r = make_locked(parent, ret, err);
    close(lock);
    remove_orphans(&orphans);
    return r;
}

void scratch_done(struct scratch *s)
{
    struct orphans orphans = {0};
    int lock;

    if (!s->path)
        return;
    (void)fs_remove_tree(s->path, NULL);
    close(s->lock);
    *strrchr(s->path, '/') = '\0';
    if (lock_parent(s->path, &lock, NULL) == 0) {
        (void)find_orphans(s->path, &orphans, NULL);
        close(lock);
        remove_orphans(&orphans);
    }
    free(s->path);
    *s = (struct scratch){0};
}
