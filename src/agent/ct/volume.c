/*
 * Volumes. The source is opened by one openat2(2) that follows no link at all, and from then on
 * only its descriptor is used: somebody who can rename things on the way gets a refusal or what was
 * there, never another folder. The mount is private, nosuid, nodev, and read-only in all of its
 * submounts if asked, before it is attached.
 *
 * It is attached below merged/, also by descriptor, and reaches the container with its root, which
 * the runtime binds recursively. Given to the runtime as a mount, it would lose its submounts: crun
 * 1.8 ignores the "r" of "rbind" in a user namespace.
 */
#include "agent/ct/volume.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agent/ct/mnt.h"
#include "base/fs.h"

uint32_t *volume_order(const struct assignment *a)
{
    uint32_t *order = xnew_array(uint32_t, a->mount_count);

    /* Insertion sort by length: what is inside a folder has a longer path. Stable. */
    for (uint32_t i = 0; i < a->mount_count; i++) {
        uint32_t k = i;

        for (; k > 0 && strlen(a->mounts[order[k - 1]].target) > strlen(a->mounts[i].target); k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return order;
}

static bool is_at_or_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool volume_covers(const struct assignment *a, const char *path)
{
    for (uint32_t i = 0; i < a->mount_count; i++)
        if (is_at_or_below(path, a->mounts[i].target))
            return true;
    return false;
}

/* Ours may neither be covered nor be mounted upon. */
static int check_target(const char *target, struct err *err)
{
    static const char *const ours[] = {"/dev", "/etc/muster", "/opt/muster", "/proc", "/sys"};
    size_t n = strlen(target);

    if (target[0] != '/' || n < 2 || target[n - 1] == '/' || strstr(target, "//") ||
        strstr(target, "/./") || strstr(target, "/../") || str_ends(target, "/.") ||
        str_ends(target, "/.."))
        return err_set(err, -EINVAL, "a volume needs a clean absolute path, not '%.100s'", target);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (is_at_or_below(target, ours[i]) || is_at_or_below(ours[i], target))
            return err_set(err, -EINVAL, "a volume cannot be mounted on '%.100s'", target);
    return 0;
}

static int open_source(const char *path, struct err *err)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    if (fd >= 0)
        return (int)fd;
    if (errno == ELOOP)
        return err_set(err, -ELOOP, "volume '%.120s' has a symbolic link in its path", path);
    return err_sys(err, -errno, "cannot open volume '%.120s'", path);
}

/* A detached copy with its flags set. Returns the fd. */
static int open_mount(const struct assigned_mount *m, struct err *err)
{
    uint64_t flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (m->read_only ? MOUNT_ATTR_RDONLY : 0);
    _cleanup_close_ int source = open_source(m->source, err);
    _cleanup_close_ int mount = -1;
    int r;

    if (source < 0)
        return source;
    mount = mnt_clone(source, "", true);
    r = mount < 0 ? mount : mnt_set(mount, flags, MS_PRIVATE, true);
    return r < 0 ? err_sys(err, r, "cannot mount volume '%.120s'", m->source) : TAKE_FD(mount);
}

/* Make the folders of path below dir as the user would: an NFS server does not let root. */
static int make_as_user(int dir, const char *path, uint32_t uid)
{
    _cleanup_free_ char *part = xstrdup(path);
    int r = 0;

    setfsgid(uid);
    setfsuid(uid);
    for (char *end = part; r == 0 && *end;) {
        _cleanup_close_ int parent = -1;
        char *name = end + strspn(end, "/"), saved;

        end = name + strcspn(name, "/");
        saved = *end;
        *end = '\0';
        parent = name == part ? dup(dir) : -1;
        if (name != part) {
            name[-1] = '\0';
            parent = fs_open_beneath(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, false);
            name[-1] = '/';
        }
        if (parent < 0 || (mkdirat(parent, name, 0755) < 0 && errno != EEXIST))
            r = parent < 0 ? parent : -errno;
        *end = saved;
    }
    setfsuid(0);
    setfsgid(0);
    return r;
}

/* The folder of target inside the volume m, which is attached as mount. Returns its fd. */
static int open_inside(const struct assignment *a, const struct assigned_mount *m, int mount,
    const char *target, struct err *err)
{
    const char *rest = target + strlen(m->target) + 1;
    int dir = fs_open_beneath(mount, rest, O_PATH | O_DIRECTORY, 0, false);

    if (dir == -ENOENT && !m->read_only) {
        dir = make_as_user(mount, rest, a->user.uid);
        if (dir == 0)
            dir = fs_open_beneath(mount, rest, O_PATH | O_DIRECTORY, 0, false);
    }
    return dir >= 0 ? dir
                    : err_sys(err, dir, "cannot make '%.60s' in volume '%.60s'", rest, m->source);
}

/* The innermost volume around mount i, or -1. */
static int find_around(const struct assignment *a, uint32_t i)
{
    int best = -1;

    for (uint32_t k = 0; k < a->mount_count; k++) {
        size_t n = strlen(a->mounts[k].target);

        if (k == i || !is_at_or_below(a->mounts[i].target, a->mounts[k].target))
            continue;
        if (best < 0 || n > strlen(a->mounts[best].target))
            best = (int)k;
    }
    return best;
}

static int open_point(const struct assignment *a, const struct guest *g, const int *mounts,
    uint32_t i, struct err *err)
{
    const char *target = a->mounts[i].target;
    int around = find_around(a, i);

    if (around < 0)
        return guest_dir(g, target, err);
    if (str_eq(target, a->mounts[around].target))
        return err_set(err, -EINVAL, "two volumes are to be mounted on '%.100s'", target);
    return open_inside(a, &a->mounts[around], mounts[around], target, err);
}

static int make_one(
    const struct assignment *a, const struct guest *g, int *mounts, uint32_t i, struct err *err)
{
    _cleanup_close_ int point = -1;
    int r = check_target(a->mounts[i].target, err);

    if (r < 0)
        return r;
    mounts[i] = open_mount(&a->mounts[i], err);
    if (mounts[i] < 0)
        return mounts[i];
    point = open_point(a, g, mounts, i, err);
    if (point < 0)
        return point;
    if (move_mount(mounts[i], "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return err_sys(err, -errno, "cannot attach volume '%.120s'", a->mounts[i].source);
    return 0;
}

int volume_make(const struct assignment *a, const struct guest *g, struct err *err)
{
    _cleanup_free_ uint32_t *order = volume_order(a);
    _cleanup_free_ int *mounts = xnew_array(int, a->mount_count);
    int r = 0;

    for (uint32_t i = 0; i < a->mount_count; i++)
        mounts[i] = -1;
    for (uint32_t i = 0; r == 0 && i < a->mount_count; i++)
        r = make_one(a, g, mounts, order[i], err);
    for (uint32_t i = 0; i < a->mount_count; i++)
        cleanup_close(&mounts[i]);
    return r;
}
