/*
 * Mounting and asking. The blobs are ours (erofs.c made them from what we checked), so the
 * kernel may read them; names in them are the image author's, so every path is opened without
 * following links. All mounts are in a private mount namespace and die with this process.
 */
#include "image/below.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/strv.h"

#define XATTR_LIST_MAX 65536
#define LOOP_TRIES 16

struct below {
    struct below_peer peer; /* lookup NULL: none, all is done here */
    char *scratch;
    char **blobs;   /* lowest first */
    size_t mounted; /* of blobs, at SCRATCH/low/N */
    bool own_namespace, has_root, asked;
    int root; /* of the overlay, while has_root */
};

struct below *below_new(const char *scratch)
{
    struct below *b = xnew(struct below);

    b->scratch = xstrdup(scratch);
    b->root = -1;
    return b;
}

struct below *below_new_peer(const struct below_peer *peer)
{
    struct below *b = xnew(struct below);

    b->peer = *peer;
    b->root = -1;
    return b;
}

static void unmount_root(struct below *b)
{
    _cleanup_free_ char *merged = NULL;

    if (!b->has_root)
        return;
    merged = xasprintf("%s/merged", b->scratch);
    cleanup_close(&b->root);
    b->root = -1;
    (void)umount2(merged, MNT_DETACH);
    b->has_root = false;
}

void below_clear(struct below *b)
{
    unmount_root(b);
    while (b->mounted > 0) {
        _cleanup_free_ char *at = xasprintf("%s/low/%zu", b->scratch, --b->mounted);
        (void)umount2(at, MNT_DETACH);
    }
    strv_free(b->blobs);
    b->blobs = NULL;
    b->asked = false;
}

void below_free(struct below *b)
{
    if (!b)
        return;
    below_clear(b);
    free(b->scratch);
    free(b);
}

void below_freep(struct below **b)
{
    below_free(*b);
}

void below_push(struct below *b, const char *blob_path)
{
    unmount_root(b);
    strv_push(&b->blobs, blob_path);
    b->asked = false;
}

bool below_was_asked(const struct below *b)
{
    return b->asked;
}

/* ---- mounting ---- */

static int enter_own_namespace(struct below *b, struct err *err)
{
    if (b->own_namespace)
        return 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(err, -errno, "cannot make a mount namespace");
    b->own_namespace = true;
    return 0;
}

/* A free loop device with the file behind it; it goes when the last user does. */
static int loop_attach(const char *file, char *device, size_t size)
{
    struct loop_config config = {.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR};
    _cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);

    if (control < 0 || fd < 0)
        return -errno;
    config.fd = (uint32_t)fd;
    for (int i = 0; i < LOOP_TRIES; i++) {
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        _cleanup_close_ int loop = -1;

        snprintf(device, size, "/dev/loop%d", n);
        if (n < 0 || (loop = open(device, O_RDONLY | O_CLOEXEC)) < 0)
            return -errno;
        if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
            return TAKE_FD(loop); /* open until it is mounted, or it is cleared at once */
        if (errno != EBUSY)
            return -errno;
    }
    return -EBUSY;
}

/* The file itself (Linux 6.12 and later), else through a loop device. */
static int mount_blob(const char *blob, const char *at, struct err *err)
{
    const unsigned long flags = MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC;
    _cleanup_close_ int loop = -1;
    char device[32];

    if (mount(blob, at, "erofs", flags, NULL) == 0)
        return 0;
    if (errno != ENOTBLK)
        return err_sys(err, -errno, "cannot mount the blob '%s'", blob);
    loop = loop_attach(blob, device, sizeof(device));
    if (loop < 0)
        return err_sys(err, loop, "cannot get a loop device");
    if (mount(device, at, "erofs", flags, NULL) < 0)
        return err_sys(err, -errno, "cannot mount the blob '%s'", blob);
    return 0;
}

static int mount_blobs(struct below *b, struct err *err)
{
    for (; b->mounted < strv_len(b->blobs); b->mounted++) {
        _cleanup_free_ char *at = xasprintf("%s/low/%zu", b->scratch, b->mounted);
        int r;

        if ((r = fs_mkdir_p(at, 0700, err)) < 0 ||
            (r = mount_blob(b->blobs[b->mounted], at, err)) < 0)
            return r;
    }
    return 0;
}

/* Short relative names, from within low/: the option string may be 4095 bytes long. The empty
 * folder is there because overlayfs wants two. */
static int mount_overlay(struct below *b, const char *at, struct err *err)
{
    _cleanup_free_ char *low = xasprintf("%s/low", b->scratch);
    _cleanup_free_ char *empty = xasprintf("%s/low/empty", b->scratch);
    struct buf options = BUF_INIT(4095);
    int r;

    if ((r = fs_mkdir_p(empty, 0700, err)) < 0 || (r = fs_mkdir_p(at, 0700, err)) < 0)
        return r;
    (void)buf_puts(&options, "lowerdir=");
    for (size_t n = b->mounted; n > 0; n--)
        (void)buf_printf(&options, "%zu:", n - 1);
    r = buf_puts(&options, "empty");
    if (r == 0 && chdir(low) < 0)
        r = -errno;
    if (r == 0 &&
        mount("overlay", at, "overlay", MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC,
            options.data) < 0)
        r = -errno;
    if (chdir("/") < 0 && r == 0)
        r = -errno;
    buf_done(&options);
    return r < 0 ? err_sys(err, r, "cannot mount the layers below") : 0;
}

static int mount_all(struct below *b, struct err *err)
{
    _cleanup_free_ char *merged = xasprintf("%s/merged", b->scratch);
    int r;

    if ((r = enter_own_namespace(b, err)) < 0 || (r = mount_blobs(b, err)) < 0 ||
        (r = mount_overlay(b, merged, err)) < 0)
        return r;
    b->has_root = true;
    b->root = open(merged, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return b->root < 0 ? err_sys(err, -errno, "cannot open '%s'", merged) : 0;
}

/* ---- asking ---- */

static int open_path(struct below *b, const char *path, int flags, struct err *err)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    long fd;
    int r;

    b->asked = true;
    if (strv_len(b->blobs) == 0)
        return err_set(err, -ENOENT, "no layer below");
    if (!b->has_root && (r = mount_all(b, err)) < 0)
        return r;
    fd = syscall(SYS_openat2, b->root, path[0] ? path : ".", &how, sizeof(how));
    if (fd >= 0)
        return (int)fd;
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return err_set(err, -ENOENT, "not in the layers below");
    return err_sys(err, -errno, "cannot look into the layers below");
}

static int read_xattrs(int fd, struct item *i, struct err *err)
{
    _cleanup_free_ char *list = xcalloc(1, XATTR_LIST_MAX);
    _cleanup_free_ char *value = xcalloc(1, XATTR_LIST_MAX);
    char link[40];
    ssize_t n, len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = listxattr(link, list, XATTR_LIST_MAX);
    if (n < 0)
        return errno == EOPNOTSUPP ? 0 : err_sys(err, -errno, "cannot list extended attributes");
    for (char *name = list; name < list + n; name += strlen(name) + 1) {
        if (!item_xattr_is_kept(name))
            continue;
        len = getxattr(link, name, value, XATTR_LIST_MAX);
        if (len < 0)
            return err_sys(err, -errno, "cannot read an extended attribute");
        item_set_xattr(i, name, value, (size_t)len);
    }
    return 0;
}

static int read_target(int fd, uint64_t size, struct item *i, struct err *err)
{
    _cleanup_free_ char *target = NULL;
    ssize_t n;

    if (size == 0 || size >= 4096)
        return err_set(err, -EINVAL, "a symbolic link below has a target of %llu bytes",
            (unsigned long long)size);
    target = xcalloc(1, size + 1);
    n = readlinkat(fd, "", target, size);
    if (n < 0)
        return err_sys(err, -errno, "cannot read a symbolic link below");
    i->target = TAKE_PTR(target);
    return 0;
}

static int type_of(mode_t mode, enum item_type *ret)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        *ret = ITEM_DIR;
        return 0;
    case S_IFREG:
        *ret = ITEM_FILE;
        return 0;
    case S_IFLNK:
        *ret = ITEM_SYMLINK;
        return 0;
    case S_IFIFO:
        *ret = ITEM_FIFO;
        return 0;
    default:
        return -ENOENT;
    }
}

static int lookup(struct below *b, const char *path, struct item *ret, struct err *err)
{
    _cleanup_close_ int fd = open_path(b, path, O_PATH, err);
    _cleanup_(item_done) struct item i = {0};
    struct stat st;
    int r;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return err_sys(err, -errno, "cannot stat in the layers below");
    if (type_of(st.st_mode, &i.type) < 0)
        return err_set(err, -ENOENT, "not in the layers below");
    i.mode = st.st_mode & 07777;
    i.uid = st.st_uid;
    i.gid = st.st_gid;
    i.sec = st.st_mtim.tv_sec;
    i.nsec = (uint32_t)st.st_mtim.tv_nsec;
    i.size = i.type == ITEM_FILE ? (uint64_t)st.st_size : 0;
    if (i.type == ITEM_SYMLINK && (r = read_target(fd, (uint64_t)st.st_size, &i, err)) < 0)
        return r;
    r = read_xattrs(fd, &i, err);
    if (r < 0)
        return r;
    *ret = i;
    i = (struct item){0};
    return 0;
}

int below_lookup(struct below *b, const char *path, struct item *ret, struct err *err)
{
    if (!b->peer.lookup)
        return lookup(b, path, ret, err);
    b->asked = true;
    return b->peer.lookup(b->peer.arg, path, ret, err);
}

int below_root(struct below *b, struct layer_root *ret, struct err *err)
{
    return b->peer.root(b->peer.arg, ret, err);
}

int below_open(struct below *b, const char *path, struct err *err)
{
    if (b->peer.open)
        return b->peer.open(b->peer.arg, path, err);
    return open_path(b, path, O_RDONLY | O_NONBLOCK, err);
}
