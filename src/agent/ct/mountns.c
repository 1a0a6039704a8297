/*
 * The pinned mount namespace. It is made by a child, since setns(2) and unshare(2) move the caller:
 * the child unshares, prepares, and waits while this process binds its ns/mnt file; then both are
 * done and this process enters like any later agent. A lock keeps two agents from making two.
 */
#include "agent/ct/mountns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "agent/ct/mnt.h"
#include "agent/ct/paths.h"
#include "base/fs.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

#define ANY_CPU (-1)
#define UNIFIED "/sys/fs/cgroup/unified"

static bool is_pinned(const char *pin)
{
    struct statfs sf;

    return statfs(pin, &sf) == 0 && sf.f_type == NSFS_MAGIC;
}

/* The folder is a private mount of its own: a namespace cannot be bound on a shared one. */
static int make_private(const char *dir, struct err *err)
{
    int r = fs_mkdir_p(dir, 0700, err);

    if (r < 0 || mnt_is_root(dir))
        return r;
    if (mount(dir, dir, NULL, MS_BIND, NULL) < 0 || mount(NULL, dir, NULL, MS_PRIVATE, NULL) < 0)
        return err_sys(err, -errno, "cannot bind '%s'", dir);
    return 0;
}

/*
 * crun(1) gives a container's standard streams to its user by fchown(2), and one of them is
 * /dev/null: the node's own would then belong to a user, who could change its mode for everybody.
 * On a read-only mount fchown says EROFS, which crun takes, and writing to a device works as ever.
 */
static int protect_null(void)
{
    const unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC;

    if (mount("/dev/null", "/dev/null", NULL, MS_BIND, NULL) < 0)
        return -1;
    return mount(NULL, "/dev/null", NULL, flags, NULL);
}

/* In the new namespace. crun(1) refuses a hybrid layout; without the second hierarchy it is v1. */
static int prepare(const char *dir)
{
    struct statfs sf;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return errno;
    if (umount2(dir, MNT_DETACH) < 0 || protect_null() < 0)
        return errno;
    if (statfs(UNIFIED, &sf) == 0 && sf.f_type == CGROUP2_SUPER_MAGIC &&
        umount2(UNIFIED, MNT_DETACH) < 0)
        return errno;
    return 0;
}

static void child(const char *dir, int cpu, int report, int wait)
{
    cpu_set_t set;
    int code;
    char byte;

    if (cpu != ANY_CPU) {
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
    code = prepare(dir);
    if (write(report, &code, sizeof(code)) == sizeof(code))
        while (read(wait, &byte, 1) < 0 && errno == EINTR)
            ;
    _exit(0);
}

/* Bind the child's namespace once it has reported. */
static int pin(pid_t pid, int report, const char *file, struct err *err)
{
    char source[64];
    int code = 0, r;

    if (read(report, &code, sizeof(code)) != sizeof(code))
        return err_set(err, -EIO, "the process of a new mount namespace died");
    if (code)
        return err_sys(err, -code, "cannot prepare a mount namespace");
    r = fs_write(file, "", 0, 0600, err);
    if (r < 0)
        return r;
    snprintf(source, sizeof(source), "/proc/%d/ns/mnt", (int)pid);
    if (mount(source, file, NULL, MS_BIND, NULL) < 0)
        return err_sys(err, -errno, "cannot pin a mount namespace at '%s'", file);
    return 0;
}

static int make_on(int cpu, const char *dir, const char *file, struct err *err)
{
    int report[2] = {-1, -1}, wait[2] = {-1, -1}, r;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) < 0 || pipe2(wait, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    pid = fork();
    if (pid == 0) {
        close(report[0]);
        close(wait[1]);
        child(dir, cpu, report[1], wait[0]);
    }
    close(report[1]);
    close(wait[0]);
    r = pid < 0 ? err_sys(err, -errno, "cannot fork") : pin(pid, report[0], file, err);
    close(report[0]);
    close(wait[1]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/*
 * A namespace can be bound only in one that is older, which the kernel tells by their ids. Since
 * 6.18 ids come from batches of each CPU, so that a new namespace may look older than ours: then
 * the batch of another CPU helps.
 */
static int make(const char *dir, const char *file, struct err *err)
{
    int r = make_on(ANY_CPU, dir, file, err), cpus = (int)sysconf(_SC_NPROCESSORS_CONF);

    for (int cpu = 0; r == -EINVAL && cpu < MIN_OF(cpus, CPU_SETSIZE); cpu++)
        r = make_on(cpu, dir, file, err);
    return r;
}

static int enter(const char *file, struct err *err)
{
    _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", file);
    if (setns(fd, CLONE_NEWNS) < 0)
        return err_sys(err, -errno, "cannot enter the mount namespace '%s'", file);
    return 0;
}

static int lock(const char *run_dir, int *ret_fd, struct err *err)
{
    char path[CT_PATH_MAX];
    int fd = open(ct_path(run_dir, "ns.lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR) {
            close(fd);
            return err_sys(err, -errno, "cannot lock '%s'", path);
        }
    }
    *ret_fd = fd;
    return 0;
}

/* In a child: entering a mount namespace, also one's own, leads to its root. */
static bool leaves_root(void)
{
    int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    struct statx before, after;

    return fd >= 0 && statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &before) == 0 &&
        setns(fd, CLONE_NEWNS) == 0 &&
        statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &after) == 0 &&
        (before.stx_ino != after.stx_ino || before.stx_mnt_id != after.stx_mnt_id);
}

int mountns_usable(struct err *err)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(leaves_root());
    if (pid < 0)
        return err_sys(err, -errno, "cannot fork");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(err, -EOPNOTSUPP,
        "this is a chroot(2), in which containers cannot be made; a mount namespace with a root of "
        "its own (pivot_root(2), systemd-nspawn(1)) would do");
}

int mountns_enter(const char *run_dir, struct err *err)
{
    _cleanup_close_ int locked = -1;
    char dir[CT_PATH_MAX], file[CT_PATH_MAX];
    int r;

    ct_path(run_dir, "ns", dir);
    ct_path(run_dir, "ns/mnt", file);
    r = lock(run_dir, &locked, err);
    if (r == 0)
        r = make_private(dir, err);
    if (r == 0 && !is_pinned(file))
        r = make(dir, file, err);
    return r < 0 ? r : enter(file, err);
}

bool mountns_is_pinned(const char *run_dir)
{
    char file[CT_PATH_MAX];

    return is_pinned(ct_path(run_dir, "ns/mnt", file));
}

int mountns_remove(const char *run_dir, struct err *err)
{
    char path[CT_PATH_MAX];
    int r = mnt_unmount_below(ct_path(run_dir, "ns", path), err);

    if (r == 0)
        r = fs_remove_tree(path, err);
    if (r == 0 && unlink(ct_path(run_dir, "ns.lock", path)) < 0 && errno != ENOENT)
        r = err_sys(err, -errno, "cannot remove '%s'", path);
    return r;
}
