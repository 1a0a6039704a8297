/*
 * A sysfs shows the network devices of the namespace in which it was mounted. The calling thread
 * stays where it is: a thread of its own goes in, makes a detached mount, and ends, so that there
 * is no way back that could fail.
 */
#include "agent/ct/sysfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "agent/ct/mnt.h"
#include "base/fs.h"

#define SYSFS_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

struct job {
    const char *netns_path;
    struct err *err;
    int fd; /* out */
};

static void *run(void *arg)
{
    const struct mnt_opt none[] = {{0}};
    struct job *job = arg;
    _cleanup_close_ int netns = open(job->netns_path, O_RDONLY | O_CLOEXEC);

    if (netns < 0 || setns(netns, CLONE_NEWNET) < 0)
        job->fd = err_sys(job->err, -errno, "cannot enter network namespace '%s'", job->netns_path);
    else
        job->fd = mnt_new("sysfs", none, SYSFS_ATTRS, job->err);
    return NULL;
}

int sysfs_make(const char *netns_path, const char *target, struct err *err)
{
    struct job job = {.netns_path = netns_path, .err = err, .fd = -1};
    pthread_t thread;
    int r;

    if (mnt_is_root(target))
        return 0;
    r = fs_mkdir_p(target, 0755, err);
    if (r < 0)
        return r;
    r = pthread_create(&thread, NULL, run, &job);
    if (r != 0)
        return err_sys(err, -r, "cannot start a thread");
    pthread_join(thread, NULL);
    if (job.fd < 0)
        return job.fd;
    r = mnt_attach(job.fd, target);
    close(job.fd);
    return r < 0 ? err_sys(err, r, "cannot attach '%s'", target) : 0;
}
