/*
 * Locks of up and down: of a cluster's folder, for as long as the command runs, and of the machine,
 * while something is chosen or put back that all of its clusters share. The machine's lock file is
 * removed by whoever holds it, so a lock counts only when the file is still the one that is there.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "cli/cluster.h"
#include "cli/progress.h"

#define MACHINE_LOCK CLUSTER_SHARED "/lock"

int cluster_lock(const char *dir, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/cluster.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, -EBUSY, "another 'muster up' or 'muster down' is at work in '%s'", dir);
    return 0; /* held by the open descriptor */
}

static int lock_wait(int fd, struct err *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    progress_set("waiting for another 'muster up' or 'muster down' on this machine");
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_sys(err, -errno, "cannot lock '%s'", MACHINE_LOCK);
    return 0;
}

static bool is_there(int fd)
{
    struct stat mine, there;

    return fstat(fd, &mine) == 0 && stat(MACHINE_LOCK, &there) == 0 &&
        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

int cluster_machine_lock(int *ret_fd, struct err *err)
{
    for (;;) {
        _cleanup_close_ int fd = -1;
        int r = fs_mkdir_p(CLUSTER_SHARED, 0755, err);

        if (r < 0)
            return r;
        fd = open(MACHINE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == ENOENT)
            continue; /* the folder was just removed */
        if (fd < 0)
            return err_sys(err, -errno, "cannot open '%s'", MACHINE_LOCK);
        r = lock_wait(fd, err);
        if (r < 0)
            return r;
        if (is_there(fd)) {
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
    }
}

void cluster_machine_unlock(int fd)
{
    if (fd < 0)
        return;
    if (is_there(fd))
        (void)unlink(MACHINE_LOCK);
    (void)rmdir(CLUSTER_SHARED); /* unless there is something else in it */
    close(fd);
}
