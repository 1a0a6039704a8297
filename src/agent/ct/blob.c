/*
 * Blobs: one mount of each blob file a node, at RUN/blob/HEX. Two mounts of a file would share no
 * page cache, so who mounts and who unmounts holds a lock, and a blob is unmounted only when no
 * container's folder names it: a container writes its list of layers down before it asks for them.
 */
#include "agent/ct/blob.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "agent/ct/feature.h"
#include "agent/ct/mnt.h"
#include "agent/ct/paths.h"
#include "base/fs.h"
#include "base/strv.h"

#define EROFS_MAGIC 0xE0F5E1E2
#define LOOP_TRIES 64
#define LAYERS_FILE_MAX (1024 * 80)
#define BLOB_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV)

char *blob_path(const struct rootfs_dirs *d, const char *hex, char path[CT_PATH_MAX])
{
    int n = snprintf(path, CT_PATH_MAX, "%s/blob/%s", d->run, hex);

    assert(n > 0 && n < CT_PATH_MAX);
    return path;
}

/* flock(2) belongs to the open file description, so it keeps threads apart as well as processes. */
static int lock_blobs(const struct rootfs_dirs *d, int *ret_fd, struct err *err)
{
    char path[CT_PATH_MAX];
    _cleanup_close_ int fd = -1;
    int r;

    r = fs_mkdir_p(ct_path(d->run, "blob", path), 0700, err);
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_sys(err, -errno, "cannot lock '%s'", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int mount_source(const char *source, bool directio, struct err *err)
{
    const struct mnt_opt opts[] = {
        {"source", source}, {"ro", NULL}, {directio ? "directio" : NULL, NULL}, {0}};

    return mnt_new("erofs", opts, BLOB_ATTRS, err);
}

/* An fsconfig string ends at 255 bytes; the magic link is shorter than any path. */
static int mount_file(int file, struct err *err)
{
    char source[64];
    int fd = -EOPNOTSUPP;

    snprintf(source, sizeof(source), "/proc/self/fd/%d", file);
    if (feature_has(FEATURE_DIRECTIO)) {
        fd = mount_source(source, true, err);
        /* Also when the file system below cannot: only then is the page cache used twice. */
        if (fd >= 0)
            return fd;
    }
    fd = mount_source(source, false, err);
    if (fd == -ENOTBLK)
        feature_clear(FEATURE_FILE_MOUNT);
    return fd;
}

static int loop_configure(int control, int file, char device[32])
{
    struct loop_config config = {
        .fd = (uint32_t)file,
        .info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
    };
    int number = ioctl(control, LOOP_CTL_GET_FREE), fd;

    if (number < 0)
        return -errno;
    snprintf(device, 32, "/dev/loop%d", number);
    fd = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
        return fd;
    config.info.lo_flags &= (uint32_t)~LO_FLAGS_DIRECT_IO;
    if (errno != EBUSY && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
        return fd;
    close(fd);
    return -EBUSY;
}

/* Another program may take the free device first, so it is tried again. The device clears itself
 * when the mount goes. */
static int mount_loop(int file, struct err *err)
{
    _cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    _cleanup_close_ int loop = -1;
    char device[32];

    if (control < 0)
        return err_sys(err, -errno, "cannot open '/dev/loop-control'");
    for (int i = 0; i < LOOP_TRIES && (loop == -1 || loop == -EBUSY); i++)
        loop = loop_configure(control, file, device);
    if (loop < 0)
        return err_sys(err, loop, "cannot set up a loop device");
    return mount_source(device, false, err);
}

static int mount_blob(int file, struct err *err)
{
    int fd;

    if (feature_has(FEATURE_FILE_MOUNT)) {
        fd = mount_file(file, err);
        if (fd != -ENOTBLK)
            return fd;
    }
    return mount_loop(file, err);
}

static int open_blob(const struct rootfs_dirs *d, const char *hex, struct err *err)
{
    char path[CT_PATH_MAX];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "%s/sha256/%s", d->blobs, hex);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_sys(err, -errno, "cannot open blob '%.12s'", hex);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return err_set(err, -EINVAL, "blob '%.12s' is not a regular file", hex);
}

static int mount_at(
    const struct rootfs_dirs *d, const char *hex, const char *point, struct err *err)
{
    _cleanup_close_ int file = open_blob(d, hex, err);
    _cleanup_close_ int mount = -1;
    int r;

    if (file < 0)
        return file;
    r = fs_mkdir_p(point, 0700, err);
    if (r < 0)
        return r;
    mount = mount_blob(file, err);
    if (mount < 0)
        return err ? err_prefix(err, "blob '%.12s'", hex) : mount;
    r = mnt_attach(mount, point);
    return r < 0 ? err_sys(err, r, "cannot attach blob '%.12s'", hex) : 0;
}

static bool is_mounted(const char *point)
{
    struct statfs sf;

    return mnt_is_root(point) && statfs(point, &sf) == 0 && (uint32_t)sf.f_type == EROFS_MAGIC;
}

int blob_mount(const struct rootfs_dirs *d, const char *digest, struct err *err)
{
    const char *hex = ct_digest_hex(digest);
    _cleanup_close_ int lock = -1;
    char point[CT_PATH_MAX];
    int r;

    if (!hex)
        return err_set(err, -EINVAL, "a layer's digest must be sha256 and 64 hexadecimal digits");
    r = lock_blobs(d, &lock, err);
    if (r < 0)
        return r;
    if (is_mounted(blob_path(d, hex, point)))
        return 0;
    return mount_at(d, hex, point, err);
}

/* Add what one container's list names. A list that cannot be read keeps everything mounted. */
static int add_used(const struct rootfs_dirs *d, const char *id, char ***used, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    char path[CT_PATH_MAX];
    char **lines;
    int r;

    ct_run_path(d, id, BLOB_LIST_FILE, path);
    if (!fs_exists(path))
        return 0;
    r = fs_read(path, LAYERS_FILE_MAX, &text, NULL, err);
    if (r < 0)
        return r;
    lines = strv_split(text, '\n');
    strv_for_each (line, lines)
        if (**line)
            strv_push(used, *line);
    strv_free(lines);
    return 0;
}

static int all_used(const struct rootfs_dirs *d, char ***used, struct err *err)
{
    _cleanup_(strv_freep) char **ids = NULL;
    int r = rootfs_list(d, &ids, err);

    for (size_t i = 0; r == 0 && ids && ids[i]; i++)
        r = add_used(d, ids[i], used, err);
    return r;
}

static int unmount_one(const char *point, struct err *err)
{
    int r = mnt_unmount_below(point, err);

    if (r == 0 && rmdir(point) < 0 && errno != ENOENT)
        r = err_sys(err, -errno, "cannot remove '%s'", point);
    return r;
}

static int unmount_others(const struct rootfs_dirs *d, DIR *dir, char **used, struct err *err)
{
    char point[CT_PATH_MAX];
    struct dirent *e;
    int r = 0;

    while (r == 0 && (e = readdir(dir))) {
        _cleanup_free_ char *digest = xasprintf("sha256:%s", e->d_name);

        if (ct_digest_hex(digest) && !strv_has(used, digest))
            r = unmount_one(blob_path(d, e->d_name, point), err);
    }
    return r;
}

int blob_unmount_unused(const struct rootfs_dirs *d, struct err *err)
{
    _cleanup_(strv_freep) char **used = NULL;
    _cleanup_close_ int lock = -1;
    char path[CT_PATH_MAX];
    DIR *dir;
    int r;

    r = lock_blobs(d, &lock, err);
    if (r == 0)
        r = all_used(d, &used, err);
    if (r < 0)
        return r;
    dir = opendir(ct_path(d->run, "blob", path));
    if (!dir)
        return err_sys(err, -errno, "cannot open '%s'", path);
    r = unmount_others(d, dir, used, err);
    closedir(dir);
    return r;
}
