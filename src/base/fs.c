/*
 * Files: bounded reading, atomic writing, folders made and opened. Removing trees is in fs_tree.c.
 * Every descriptor is close-on-exec; no call changes the working directory or the umask.
 */
#include "base/fs.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"

#define READ_CHUNK 16384

static int read_all(int fd, struct buf *b)
{
    char chunk[READ_CHUNK];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        if (buf_append(b, chunk, (size_t)n) < 0)
            return -EFBIG;
    }
}

int fs_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
{
    _cleanup_close_ int fd = -1;
    _cleanup_(buf_done) struct buf b = BUF_INIT(max);
    struct stat st;
    int r;

    /* Not blocking: path may turn out to be a FIFO. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_sys(err, -errno, "cannot stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "'%s' is not a regular file", path);
    r = read_all(fd, &b);
    if (r == -EFBIG)
        return err_set(err, r, "'%s' is larger than %zu bytes", path, max);
    if (r < 0)
        return err_sys(err, r, "cannot read '%s'", path);
    if (ret_len)
        *ret_len = b.len;
    *ret = buf_take(&b);
    return 0;
}

static int write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

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

static int fill(int fd, const void *data, size_t len, mode_t mode, bool sync)
{
    int r = write_all(fd, data, len);

    if (r < 0)
        return r;
    if (fchmod(fd, mode) < 0)
        return -errno;
    return sync && fsync(fd) < 0 ? -errno : 0;
}

static int write_beside(
    const char *path, const void *data, size_t len, mode_t mode, bool sync, struct err *err)
{
    _cleanup_free_ char *temp = xasprintf("%s.tmpXXXXXX", path);
    _cleanup_close_ int fd = mkostemp(temp, O_CLOEXEC);
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "cannot create a file beside '%s'", path);
    r = fill(fd, data, len, mode, sync);
    if (r == 0 && rename(temp, path) < 0)
        r = -errno;
    if (r < 0) {
        unlink(temp);
        return err_sys(err, r, "cannot write '%s'", path);
    }
    r = sync ? fs_sync_parent(path) : 0;
    if (r < 0)
        return err_sys(err, r, "cannot sync the folder of '%s'", path);
    return 0;
}

int fs_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
    return write_beside(path, data, len, mode, true, err);
}

int fs_write(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
    return write_beside(path, data, len, mode, false, err);
}

int fs_write_existing(const char *path, const char *text, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    size_t len = strlen(text);
    ssize_t n;

    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    do
        n = write(fd, text, len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(err, -errno, "cannot write '%s'", path);
    if ((size_t)n != len)
        return err_set(err, -EIO, "cannot write '%s': took %zd of %zu bytes", path, n, len);
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int fs_mkdir_p(const char *path, mode_t mode, struct err *err)
{
    _cleanup_free_ char *part = xstrdup(path);
    char *end = part;

    do {
        char c;
        int code;

        end += strspn(end, "/");
        end += strcspn(end, "/");
        c = *end;
        *end = '\0';
        code = mkdir(part, mode) < 0 ? errno : 0;
        /* A folder may exist and mkdir still say EROFS or EACCES. */
        if (code && !is_folder(part))
            return err_sys(err, code == EEXIST ? -ENOTDIR : -code, "cannot make folder '%s'", part);
        *end = c;
    } while (*end);
    return 0;
}

bool fs_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode, bool in_root)
{
    bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = creates ? mode : 0,
        .resolve = (in_root ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) | RESOLVE_NO_MAGICLINKS,
    };

    /* EAGAIN: a rename somewhere made ".." uncertain (openat2(2)). */
    for (int tries = 0; tries < 64; tries++) {
        long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}

int fs_sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = NULL;
    _cleanup_close_ int fd = -1;

    if (!slash)
        folder = xstrdup(".");
    else
        folder = xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return -errno;
    return 0;
}
