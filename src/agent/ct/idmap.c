/*
 * A user namespace exists as long as somebody holds its descriptor, so the process that was born in
 * it can go at once. The cache has a fixed size; a namespace that falls out of it lives on in the
 * mounts that use it.
 */
#include "agent/ct/idmap.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fs.h"

#define CACHE_SIZE 64

struct entry {
    uint32_t uid, sub_base;
    int fd; /* 0: free */
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry cache[CACHE_SIZE];
static size_t cache_next; /* the oldest one, replaced next */

uint32_t idmap_outside(const struct user *u, uint32_t inside)
{
    struct id_extent map[USER_EXTENTS];

    user_id_map(u, map);
    for (size_t i = 0; i < USER_EXTENTS; i++)
        if (inside >= map[i].inside && inside - map[i].inside < map[i].count)
            return map[i].outside + (inside - map[i].inside);
    return UINT32_MAX;
}

/* A child in a new user namespace that lives until its end of the pipe is closed. No exit signal:
 * the program's SIGCHLD handling does not see it. It calls nothing but read and _exit, since other
 * threads may hold any lock. */
static int spawn_holder(const int pipe_fds[2], pid_t *ret)
{
    struct clone_args args = {.flags = CLONE_NEWUSER};
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    char byte;

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        close(pipe_fds[1]);
        while (read(pipe_fds[0], &byte, 1) < 0)
            ;
        _exit(0);
    }
    *ret = (pid_t)pid;
    return 0;
}

static int write_map(pid_t pid, const char *file, const struct user *u, struct err *err)
{
    struct id_extent map[USER_EXTENTS];
    char path[64], text[128] = "";
    size_t n = 0;

    user_id_map(u, map);
    for (size_t i = 0; i < USER_EXTENTS; i++)
        n += (size_t)snprintf(
            text + n, sizeof(text) - n, "%u %u %u\n", map[i].inside, map[i].outside, map[i].count);
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return fs_write_existing(path, text, err);
}

static int open_mapped(pid_t pid, const struct user *u, int *ret_fd, struct err *err)
{
    char path[64];
    int fd, r;

    r = write_map(pid, "uid_map", u, err);
    if (r == 0)
        r = write_map(pid, "gid_map", u, err);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "cannot open a new user namespace");
    *ret_fd = fd;
    return 0;
}

static int make(const struct user *u, int *ret_fd, struct err *err)
{
    int pipe_fds[2], r;
    pid_t pid = 0;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    r = spawn_holder(pipe_fds, &pid);
    if (r < 0)
        err_sys(err, r, "cannot make a user namespace");
    else
        r = open_mapped(pid, u, ret_fd, err);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return r;
}

static struct entry *lookup(const struct user *u)
{
    for (size_t i = 0; i < CACHE_SIZE; i++)
        if (cache[i].fd > 0 && cache[i].uid == u->uid && cache[i].sub_base == u->sub_base)
            return &cache[i];
    return NULL;
}

static int cached(const struct user *u, int *ret_fd, struct err *err)
{
    struct entry *e = lookup(u);
    int fd = -1, r;

    if (!e) {
        r = make(u, &fd, err);
        if (r < 0)
            return r;
        e = &cache[cache_next++ % CACHE_SIZE];
        if (e->fd > 0)
            close(e->fd);
        *e = (struct entry){u->uid, u->sub_base, fd};
    }
    fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return err_sys(err, -errno, "cannot duplicate a descriptor");
    *ret_fd = fd;
    return 0;
}

int idmap_userns(const struct user *u, int *ret_fd, struct err *err)
{
    int r;

    pthread_mutex_lock(&cache_lock);
    r = cached(u, ret_fd, err);
    pthread_mutex_unlock(&cache_lock);
    return r;
}
