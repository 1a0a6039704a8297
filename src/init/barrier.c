/*
 * inotify on the folder, a look at the file for the truth: events only say when to look.
 */
#include "init/barrier.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

void barrier_init(struct barrier *barrier, const char *dir, const char *path)
{
    barrier->path = path;
    barrier->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (barrier->fd >= 0 && inotify_add_watch(barrier->fd, dir, IN_CREATE | IN_MOVED_TO) < 0)
        barrier_done(barrier);
}

void barrier_done(struct barrier *barrier)
{
    if (barrier->fd >= 0)
        close(barrier->fd);
    barrier->fd = -1;
}

bool barrier_is_open(struct barrier *barrier)
{
    char events[4096];
    struct stat st;

    if (barrier->fd >= 0)
        while (read(barrier->fd, events, sizeof(events)) > 0)
            continue;
    return lstat(barrier->path, &st) == 0;
}
