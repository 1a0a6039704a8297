/*
 * The walk that makes folders, and the files written into them. One component at a time, each
 * opened with O_NOFOLLOW below the descriptor of the one before; openat2(2) with RESOLVE_IN_ROOT
 * where an image's own links are to be followed. Files are written beside and renamed, so that
 * nothing of a lower layer is ever opened for writing (no copy-up of a 10 GB /etc/passwd).
 */
#include "agent/ct/guest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"

#define TEMP_NAME ".muster.tmp"

int guest_open(const struct rootfs_dirs *d, const struct user *user, const char *id,
    struct guest *ret, struct err *err)
{
    char path[CT_PATH_MAX];
    struct id_extent map[USER_EXTENTS];

    user_id_map(user, map);
    ret->owner = map[0].outside;
    ret->work = user->uid;
    ct_run_path(d, id, "merged", path);
    ret->root = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return ret->root >= 0 ? 0 : err_sys(err, -errno, "cannot open '%s'", path);
}

void guest_done(struct guest *g)
{
    cleanup_close(&g->root);
}

/* Where our own trees go, no link is followed. */
static bool is_ours(const char *prefix)
{
    static const char *const ours[] = {"/dev", "/etc", "/proc", "/sys"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (str_eq(prefix, ours[i]))
            return true;
    return false;
}

static int open_folder(int dir, const char *name)
{
    int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 ? fd : -errno;
}

static int make_folder(const struct guest *g, int dir, const char *name)
{
    int fd;

    if (mkdirat(dir, name, 0755) < 0)
        return -errno;
    fd = open_folder(dir, name);
    if (fd < 0)
        return fd;
    if (fchownat(fd, "", g->owner, g->owner, AT_EMPTY_PATH) == 0 &&
        fchmodat(dir, name, 0755, 0) == 0)
        return fd;
    close(fd);
    return -EIO;
}

/* One step of the walk. prefix is the path so far, this component included. */
static int step(const struct guest *g, int dir, const char *name, const char *prefix, bool last)
{
    int fd = open_folder(dir, name);

    if (fd >= 0)
        return fd;
    if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP)
        return fd;
    if (fd != -ENOENT && !last && !is_ours(prefix)) {
        fd = fs_open_beneath(g->root, prefix, O_PATH | O_DIRECTORY, 0, true);
        if (fd >= 0)
            return fd;
    }
    if (fd != -ENOENT || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        if (unlinkat(dir, name, 0) < 0)
            return -errno;
    return make_folder(g, dir, name);
}

/* Walk the components of path[0..len). */
static int walk(const struct guest *g, const char *path, size_t len, bool keep_last)
{
    _cleanup_free_ char *prefix = xstrndup(path, len);
    _cleanup_close_ int dir = fcntl(g->root, F_DUPFD_CLOEXEC, 3);
    char *at = prefix;

    while (dir >= 0) {
        char *name = at + strspn(at, "/"), *end = name + strcspn(name, "/"), saved = *end;
        bool last = saved == '\0';
        int next;

        if (*name == '\0')
            break;
        *end = '\0';
        next = str_eq(name, "..") || str_eq(name, ".")
            ? -EINVAL
            : step(g, dir, name, prefix, last && keep_last);
        *end = saved;
        if (next < 0)
            return next;
        close(dir);
        dir = next;
        at = end;
    }
    return dir >= 0 ? TAKE_FD(dir) : -EMFILE;
}

int guest_dir(const struct guest *g, const char *path, struct err *err)
{
    int fd = walk(g, path, strlen(path), true);

    return fd >= 0 ? fd : err_sys(err, fd, "cannot make folder '%s' in the container", path);
}

/* The folder of path, and path's last name. */
static int open_parent(const struct guest *g, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');

    assert(slash && slash[1]);
    *ret_name = slash + 1;
    return walk(g, path, (size_t)(slash - path), false);
}

/* Anything but a folder with something in it. */
static int clear_name(int dir, const char *name)
{
    _cleanup_free_ char *path = NULL;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return -errno;
    path = xasprintf("/proc/self/fd/%d/%s", dir, name);
    return fs_remove_tree(path, NULL);
}

int guest_mount_file(const struct guest *g, const char *path, struct err *err)
{
    const char *name;
    _cleanup_close_ int dir = open_parent(g, path, &name);
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r = dir;

    if (dir >= 0) {
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            return 0;
        r = clear_name(dir, name);
    }
    if (r >= 0) {
        fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
        r = fd < 0 || fchown(fd, g->owner, g->owner) < 0 ? -errno : 0;
    }
    return r < 0 ? err_sys(err, r, "cannot make '%s' in the container", path) : 0;
}

static int write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int fill(int fd, const void *data, size_t len, uint32_t owner, mode_t mode)
{
    int r = write_all(fd, data, len);

    if (r < 0)
        return r;
    return fchown(fd, owner, owner) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

static int write_beside(
    int dir, const char *name, const void *data, size_t len, uint32_t owner, mode_t mode)
{
    _cleanup_close_ int fd = -1;
    int r = clear_name(dir, TEMP_NAME);

    if (r < 0)
        return r;
    fd = openat(dir, TEMP_NAME, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = fill(fd, data, len, owner, mode);
    if (r == 0 && renameat(dir, TEMP_NAME, dir, name) < 0)
        r = errno == EISDIR ? clear_name(dir, name) : -errno;
    if (r == 0 && faccessat(dir, TEMP_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        r = renameat(dir, TEMP_NAME, dir, name) < 0 ? -errno : 0; /* a folder was in the way */
    return r;
}

int guest_write(const struct guest *g, const char *path, const void *data, size_t len,
    uint32_t owner, mode_t mode, struct err *err)
{
    const char *name;
    _cleanup_close_ int dir = open_parent(g, path, &name);
    int r = dir < 0 ? dir : write_beside(dir, name, data, len, owner, mode);

    return r < 0 ? err_sys(err, r, "cannot write '%s' in the container", path) : 0;
}

/* Opened without effect first: what is opened for reading is then known to be a regular file. */
static int open_regular(const struct guest *g, const char *path, struct stat *ret_st)
{
    int fd = fs_open_beneath(g->root, path, O_PATH, 0, true);

    if (fd < 0)
        return fd;
    if (fstat(fd, ret_st) == 0 && S_ISREG(ret_st->st_mode))
        return fd;
    close(fd);
    return -EINVAL;
}

int guest_read(const struct guest *g, const char *path, size_t max, char **ret, size_t *ret_len)
{
    struct stat st;
    _cleanup_close_ int fd = open_regular(g, path, &st);
    char link[64];

    if (fd < 0)
        return fd;
    if (st.st_size < 0 || (uint64_t)st.st_size > max)
        return -EFBIG;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return fs_read(link, max, ret, ret_len, NULL);
}

bool guest_is_program(const struct guest *g, const char *path)
{
    struct stat st;
    _cleanup_close_ int fd = open_regular(g, path, &st);

    return fd >= 0 && (st.st_mode & 0111);
}

bool guest_exists(const struct guest *g, const char *path)
{
    _cleanup_close_ int fd = fs_open_beneath(g->root, path, O_PATH, 0, true);

    return fd >= 0;
}
