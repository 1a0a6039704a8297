/*
 * Thin wrappers around the mount API. Owns no state. Unmounting goes by what mountinfo says, not by
 * what somebody remembers to have mounted.
 */
#include "agent/ct/mnt.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/strv.h"

int mnt_clone(int dirfd, const char *path, bool recursive)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
    int fd;

    if (!*path)
        flags |= AT_EMPTY_PATH;
    if (recursive)
        flags |= AT_RECURSIVE;
    fd = open_tree(dirfd, path, flags);
    return fd >= 0 ? fd : -errno;
}

static int set_attr(int fd, struct mount_attr *attr, bool recursive)
{
    unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);

    return mount_setattr(fd, "", flags, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

int mnt_set(int fd, uint64_t flags, uint64_t propagation, bool recursive)
{
    struct mount_attr attr = {.attr_set = flags, .propagation = propagation};

    return set_attr(fd, &attr, recursive);
}

int mnt_set_idmap(int fd, int userns_fd)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd};

    return set_attr(fd, &attr, false);
}

int mnt_attach(int fd, const char *target)
{
    return move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

void mnt_log(int context, char *text, size_t size)
{
    size_t used = 0;
    ssize_t n;

    *text = '\0';
    while (used + 1 < size && (n = read(context, text + used, size - used - 1)) > 0) {
        used += (size_t)n;
        text[used] = '\0';
        /* "e MESSAGE\n"; one read is one message. */
        text[strcspn(text, "\n")] = ' ';
    }
}

int mnt_finish(int context, const char *fstype, uint64_t attrs, struct err *err)
{
    char log[160];
    int fd, r;

    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        r = -errno;
        mnt_log(context, log, sizeof(log));
        return err_set(err, r, "cannot make a mount of '%s': %s%s%s", fstype, strerror(-r),
            *log ? ": " : "", log);
    }
    fd = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attrs);
    if (fd < 0)
        return err_sys(err, -errno, "cannot mount '%s'", fstype);
    return fd;
}

int mnt_new(const char *fstype, const struct mnt_opt *opts, uint64_t attrs, struct err *err)
{
    _cleanup_close_ int context = fsopen(fstype, FSOPEN_CLOEXEC);

    if (context < 0)
        return err_sys(err, -errno, "cannot open file system type '%s'", fstype);
    for (; opts->key; opts++) {
        unsigned cmd = opts->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

        if (fsconfig(context, cmd, opts->key, opts->value, 0) < 0)
            return err_sys(err, -errno, "'%s' does not take option '%s'", fstype, opts->key);
    }
    return mnt_finish(context, fstype, attrs, err);
}

bool mnt_is_root(const char *path)
{
    struct statx sx;

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &sx) < 0)
        return false;
    return sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* "\040" and the like, as the kernel writes space, tab, newline and backslash in mountinfo. */
static void unescape(char *s)
{
    char *to = s;

    while (*s) {
        if (s[0] == '\\' && s[1] && s[2] && s[3]) {
            *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 4;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
}

static bool is_at_or_below(const char *point, const char *path)
{
    size_t n = strlen(path);

    return strncmp(point, path, n) == 0 && (point[n] == '\0' || point[n] == '/');
}

/* Field 5 of each line (proc(5), mountinfo) that lies at or below path, oldest first. */
static int points_below(const char *path, char ***ret)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    _cleanup_free_ char *line = NULL;
    size_t size = 0;

    if (!f)
        return -errno;
    while (getline(&line, &size, f) > 0) {
        char *at = line, *end;

        for (int i = 0; at && i < 4; i++) {
            at = strchr(at, ' ');
            at = at ? at + 1 : NULL;
        }
        end = at ? strchr(at, ' ') : NULL;
        if (!end)
            continue;
        *end = '\0';
        unescape(at);
        if (is_at_or_below(at, path))
            strv_push(ret, at);
    }
    fclose(f);
    return 0;
}

/* It lies inside another one of the list. */
static bool is_inside(char **points, const char *point)
{
    strv_for_each (p, points)
        if (is_at_or_below(point, *p) && !str_eq(point, *p))
            return true;
    return false;
}

int mnt_unmount_below(const char *path, struct err *err)
{
    _cleanup_(strv_freep) char **points = NULL;
    int r = points_below(path, &points);

    if (r < 0)
        return err_sys(err, r, "cannot read the list of mounts");
    strv_for_each (p, points) {
        if (is_inside(points, *p))
            continue;
        /* EINVAL: not mounted any more. */
        if (umount2(*p, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 && errno != EINVAL)
            return err_sys(err, -errno, "cannot unmount '%s'", *p);
    }
    return 0;
}
