/*
 * Overlay mounts. Two ways: layers stay detached and go in by descriptor; or, on older kernels,
 * they are attached below low/ and named in one option string, as /proc/self/fd/N, which is short
 * enough for 200 of them. Images have 127 layers at most.
 *
 * No redirect_dir and no metacopy: an upper folder then says nothing about where a file's content
 * is. "volatile": an upper folder does not outlive a crash of the machine, so nobody's fsync waits.
 */
#include "agent/ct/overlay.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/ct/blob.h"
#include "agent/ct/feature.h"
#include "agent/ct/idmap.h"
#include "agent/ct/mnt.h"
#include "base/buf.h"
#include "base/fs.h"

#define LAYERS_MAX 500   /* overlayfs' own limit */
#define CLASSIC_MAX 4095 /* bytes of mount(2)'s option string */
#define OVERLAY_ATTRS MOUNT_ATTR_NODEV
#define OVERLAY_FIXED "xino=on,redirect_dir=nofollow,metacopy=off,volatile"

struct layers {
    int fds[LAYERS_MAX]; /* topmost first */
    uint32_t count;
    int upper, work; /* O_PATH */
};

static void layers_done(struct layers *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        close(l->fds[i]);
    cleanup_close(&l->upper);
    cleanup_close(&l->work);
}

static int open_layer(const struct rootfs_dirs *d, const char *digest, int userns, struct err *err)
{
    const char *hex = ct_digest_hex(digest);
    char path[CT_PATH_MAX];
    int fd, r;

    assert(hex); /* blob_mount has checked it */
    fd = mnt_clone(AT_FDCWD, blob_path(d, hex, path), false);
    if (fd < 0)
        return err_sys(err, fd, "cannot open layer '%.12s'", hex);
    r = mnt_set_idmap(fd, userns);
    if (r == 0)
        return fd;
    close(fd);
    return err_sys(
        err, r, "cannot map the ids of layer '%.12s' (Linux 5.19 or later is needed)", hex);
}

/* The same layer twice in a stack is ELOOP to the kernel; only the higher one can be seen. */
static bool is_repeated_above(const struct assignment *a, uint32_t i)
{
    for (uint32_t k = i + 1; k < a->layer_count; k++)
        if (str_eq(a->layers[k].digest, a->layers[i].digest))
            return true;
    return false;
}

static int open_layers(
    const struct rootfs_dirs *d, const struct assignment *a, struct layers *l, struct err *err)
{
    _cleanup_close_ int userns = -1;
    int r;

    if (a->layer_count == 0 || a->layer_count > LAYERS_MAX)
        return err_set(
            err, -EINVAL, "an image has 1 to %d layers, not %u", LAYERS_MAX, a->layer_count);
    r = idmap_userns(&a->user, &userns, err);
    for (uint32_t i = a->layer_count; r == 0 && i > 0; i--) {
        int fd;

        if (is_repeated_above(a, i - 1))
            continue;
        fd = open_layer(d, a->layers[i - 1].digest, userns, err);
        if (fd < 0)
            return fd;
        l->fds[l->count++] = fd;
    }
    return r;
}

static int open_folder(const char *path, struct err *err)
{
    int r = fs_mkdir_p(path, 0700, err), fd;

    if (r < 0)
        return r;
    fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? fd : err_sys(err, -errno, "cannot open '%s'", path);
}

static int open_upper(
    const struct rootfs_dirs *d, const char *id, struct layers *l, struct err *err)
{
    char path[CT_PATH_MAX];
    struct stat st;

    l->upper = open_folder(ct_state_path(d, id, "upper", path), err);
    if (l->upper < 0)
        return l->upper;
    l->work = open_folder(ct_state_path(d, id, "work", path), err);
    if (l->work < 0)
        return l->work;
    ct_state_path(d, id, "upper", path);
    if (fstat(l->fds[0], &st) < 0 || fchownat(l->upper, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) ||
        chmod(path, st.st_mode & 07777) < 0)
        return err_sys(err, -errno, "cannot set the owner of '%s'", path);
    return 0;
}

static int set_fd(int context, const char *key, int fd, struct err *err)
{
    if (fsconfig(context, FSCONFIG_SET_FD, key, NULL, fd) < 0)
        return err_sys(err, -errno, "overlay does not take option '%s'", key);
    return 0;
}

static int set_fixed(int context, struct err *err)
{
    static const struct mnt_opt fixed[] = {{"source", "muster"}, {"xino", "on"},
        {"redirect_dir", "nofollow"}, {"metacopy", "off"}, {"volatile", NULL}};

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        unsigned cmd = fixed[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

        if (fsconfig(context, cmd, fixed[i].key, fixed[i].value, 0) < 0)
            return err_sys(err, -errno, "overlay does not take option '%s'", fixed[i].key);
    }
    return 0;
}

static int mount_by_fd(const struct layers *l, const char *target, struct err *err)
{
    _cleanup_close_ int context = fsopen("overlay", FSOPEN_CLOEXEC);
    _cleanup_close_ int mount = -1;
    int r;

    if (context < 0)
        return err_sys(err, -errno, "cannot open file system type 'overlay'");
    r = set_fixed(context, err);
    for (uint32_t i = 0; r == 0 && i < l->count; i++)
        r = set_fd(context, "lowerdir+", l->fds[i], err);
    if (r == 0)
        r = set_fd(context, "upperdir", l->upper, err);
    if (r == 0)
        r = set_fd(context, "workdir", l->work, err);
    if (r < 0)
        return r;
    mount = mnt_finish(context, "overlay", OVERLAY_ATTRS, err);
    if (mount < 0)
        return mount;
    r = mnt_attach(mount, target);
    return r < 0 ? err_sys(err, r, "cannot attach '%s'", target) : 0;
}

static int attach_low(
    const struct rootfs_dirs *d, const char *id, uint32_t i, int fd, struct err *err)
{
    char rest[32], path[CT_PATH_MAX];
    int r;

    snprintf(rest, sizeof(rest), "low/%u", i);
    r = fs_mkdir_p(ct_run_path(d, id, rest, path), 0700, err);
    if (r == 0)
        r = mnt_attach(fd, path);
    return r < 0 ? err_sys(err, r, "cannot attach '%s'", path) : 0;
}

static int mount_classic(const struct rootfs_dirs *d, const char *id, const struct layers *l,
    const char *target, struct err *err)
{
    _cleanup_(buf_done) struct buf opts = BUF_INIT(CLASSIC_MAX);
    int r = 0, full = 0;

    for (uint32_t i = 0; r == 0 && i < l->count; i++) {
        r = attach_low(d, id, i, l->fds[i], err);
        full |= buf_printf(&opts, "%s/proc/self/fd/%d", i ? ":" : "lowerdir=", l->fds[i]);
    }
    full |= buf_printf(&opts, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,%s", l->upper,
        l->work, OVERLAY_FIXED);
    if (r < 0)
        return r;
    if (full)
        return err_set(err, -E2BIG, "%u layers are more than this kernel can stack", l->count);
    if (mount("muster", target, "overlay", MS_NODEV, opts.data) < 0)
        return err_sys(err, -errno, "cannot mount the overlay of %u layers", l->count);
    return 0;
}

int overlay_make(
    const struct rootfs_dirs *d, const struct assignment *a, const char *id, struct err *err)
{
    _cleanup_(layers_done) struct layers l = {.upper = -1, .work = -1};
    char target[CT_PATH_MAX];
    int r;

    r = open_layers(d, a, &l, err);
    if (r == 0)
        r = open_upper(d, id, &l, err);
    if (r == 0)
        r = fs_mkdir_p(ct_run_path(d, id, "merged", target), 0755, err);
    if (r < 0)
        return r;
    return feature_has(FEATURE_LAYER_FD) ? mount_by_fd(&l, target, err)
                                         : mount_classic(d, id, &l, target, err);
}
