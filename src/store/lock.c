/*
 * The lock file beside the database. Not on the database itself: SQLite holds POSIX locks there,
 * and closing any descriptor of a file drops every POSIX lock that the process has on it.
 */
#include "store/lock.h"

#include <fcntl.h>
#include <sys/file.h>

/* Digits only: the text is somebody else's and goes into a message. */
static void read_holder(int fd, char pid[16])
{
    ssize_t n = pread(fd, pid, 15, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    if (!pid[0])
        snprintf(pid, 16, "unknown");
}

static int write_holder(int fd)
{
    if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
        return -errno;
    return 0;
}

int lock_take(const char *path, int *ret_fd, struct err *err)
{
    _cleanup_free_ char *file = xasprintf("%s.lock", path);
    _cleanup_close_ int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char pid[16];
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", file);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_sys(err, -errno, "cannot lock '%s'", file);
        read_holder(fd, pid);
        return err_set(err, -EBUSY, "another manager has '%s' open (pid %s)", path, pid);
    }
    r = write_holder(fd);
    if (r < 0)
        return err_sys(err, r, "cannot write '%s'", file);
    *ret_fd = TAKE_FD(fd);
    return 0;
}
