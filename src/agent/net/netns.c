/*
 * Owns the pin files and the thread's visits to other namespaces; knows nothing of sessions. The
 * file under /proc that names the calling thread's namespace is thread-self, never self: the
 * process's main thread is elsewhere while a worker visits.
 */
#include "agent/net/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/fs.h"
#include "base/str.h"

#define NETNS_SELF "/proc/thread-self/ns/net"

int netns_open_current(void)
{
    int fd = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int netns_enter(int fd, struct netns_visit *v, struct err *err)
{
    int home = netns_open_current();

    assert(v->home < 0);
    if (home < 0)
        return err_sys(err, home, "cannot open '%s'", NETNS_SELF);
    if (setns(fd, CLONE_NEWNET) < 0) {
        int r = -errno;
        close(home);
        return err_sys(err, r, "cannot enter a network namespace");
    }
    v->home = home;
    return 0;
}

void netns_leave(struct netns_visit *v)
{
    int saved = errno;

    if (v->home < 0)
        return;
    if (setns(v->home, CLONE_NEWNET) < 0) {
        fprintf(stderr, "cannot return to the own network namespace: %m\n");
        abort();
    }
    close(v->home);
    v->home = -1;
    errno = saved;
}

static bool is_nsfs(int fd)
{
    struct statfs s;

    return fstatfs(fd, &s) == 0 && s.f_type == NSFS_MAGIC;
}

int netns_open(const char *path, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return err_sys(err, -errno, "network namespace '%s'", path);
    if (!is_nsfs(fd))
        return err_set(err, -ENOENT, "network namespace '%s': the file has none bound to it", path);
    return TAKE_FD(fd);
}

static int bind_current(const char *path, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0400);

    if (fd < 0)
        return err_sys(err, -errno, "cannot make '%s'", path);
    if (mount(NETNS_SELF, path, NULL, MS_BIND, NULL) < 0)
        return err_sys(err, -errno, "cannot bind a network namespace to '%s'", path);
    return netns_open_current();
}

int netns_pin(const char *path, int (*prepare)(struct err *err), struct err *err)
{
    _cleanup_(netns_leave) struct netns_visit v = NETNS_HOME;
    int fd = netns_open(path, NULL);
    int r;

    if (fd >= 0)
        return fd;
    v.home = netns_open_current();
    if (v.home < 0)
        return err_sys(err, v.home, "cannot open '%s'", NETNS_SELF);
    if (unshare(CLONE_NEWNET) < 0) {
        r = -errno;
        close(TAKE_FD(v.home));
        return err_sys(err, r, "cannot make a network namespace");
    }
    r = prepare(err);
    return r < 0 ? r : bind_current(path, err);
}

int netns_unpin(const char *path, struct err *err)
{
    /* EINVAL: not a mount point, a pin that was not finished */
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
        return err_sys(err, -errno, "cannot unbind '%s'", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return err_sys(err, -errno, "cannot delete '%s'", path);
    return 0;
}

int netns_sysctl(const char *name, const char *value, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("/proc/sys/net/%s", name);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    char now[64];
    ssize_t n;

    if (fd < 0)
        return errno == ENOENT ? -ENOENT : err_sys(err, -errno, "cannot open '%s'", path);
    n = read(fd, now, sizeof(now) - 1);
    if (n > 0) {
        now[n] = '\0';
        now[strcspn(now, "\n")] = '\0';
        if (str_eq(now, value))
            return 0;
    }
    if (pwrite(fd, value, strlen(value), 0) < 0)
        return err_sys(err, -errno, "cannot write '%s' to '%s'", value, path);
    return 0;
}
