/*
 * How long and how much of a container's log is kept. Conmon appends for as long as the container
 * lives; what is over logs.max is given back to the file system from the front, as a hole, so that
 * offsets stay true and conmon notices nothing. Logs of containers that are gone are removed
 * logs.keep after their last line. Blocks: a worker job soon after the
 * agent's start, and every half minute.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/sess.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "base/work.h"

#define BLOCK 4096

struct keep {
    struct agent *agent;
    char **live; /* ids of containers that are here */
};

/* Allocated bytes beyond the maximum, from the front of the file. */
static void shorten(int dir, const char *name, const struct stat *st, uint64_t max)
{
    uint64_t size = (uint64_t)st->st_size, give = size > max ? (size - max) / BLOCK * BLOCK : 0;
    _cleanup_close_ int fd = -1;

    if (give == 0 || (uint64_t)st->st_blocks * 512 <= max + 64 * BLOCK)
        return;
    fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)give) < 0)
        log_warning("log %s: cannot be shortened: %s", name, strerror(errno));
}

static void look_at(struct keep *k, int dir, const char *name, uint64_t now)
{
    const struct agent_config *c = &k->agent->config;
    struct stat st;
    uint64_t changed;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    shorten(dir, name, &st, c->log_max);
    changed = (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC;
    if (!strv_has(k->live, name) && now > changed + c->log_keep_usec)
        unlinkat(dir, name, 0);
}

static int keep_run(void *arg, struct err *err)
{
    struct keep *k = arg;
    _cleanup_free_ char *path = xasprintf("%s/log", k->agent->config.state_dir);
    DIR *d = opendir(path);
    struct dirent *e;

    if (!d)
        return err_sys(err, -errno, "cannot read '%s'", path);
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            look_at(k, dirfd(d), e->d_name, clock_real_usec());
    closedir(d);
    return 0;
}

static void keep_done(void *arg, int result, const struct err *err)
{
    struct keep *k = arg;

    if (result < 0)
        log_warning("logs: %s", err_text(err));
    strv_free(k->live);
    free(k);
}

void logkeep_start(struct agent *ag)
{
    struct keep *k = xnew(struct keep);

    k->agent = ag;
    map_for_each (e, &ag->sessions) {
        const struct sess *s = e->value;
        for (uint32_t i = 0; i < s->a->container_count; i++)
            strv_push(&k->live, s->cts[i].spec->id);
    }
    work_start(ag->loop, keep_run, keep_done, k);
}
