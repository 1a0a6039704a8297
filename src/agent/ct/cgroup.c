/*
 * Control groups. On v1 (and hybrid, which counts as v1) every mounted hierarchy has a folder for
 * the group. Limits are set by the runtime; this looks, kills and cleans up.
 */
#include "agent/ct/cgroup.h"

#include <dirent.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "agent/ct/runtime.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/strv.h"

#define BASE "/sys/fs/cgroup"
#define CGROUP_PATH_MAX 640
#define FILE_MAX (1 << 20)
#define DEPTH_MAX 16

static bool is_fs(const char *path, long magic)
{
    struct statfs sf;

    return statfs(path, &sf) == 0 && sf.f_type == magic;
}

enum cgroup_layout cgroup_layout(void)
{
    if (is_fs(BASE, CGROUP2_SUPER_MAGIC))
        return CGROUP_V2;
    return is_fs(BASE "/unified", CGROUP2_SUPER_MAGIC) ? CGROUP_HYBRID : CGROUP_V1;
}

/* Roots of the hierarchies. Heap. */
static char **roots(void)
{
    char **v = NULL;
    struct dirent *e;
    DIR *dir;

    if (cgroup_layout() == CGROUP_V2) {
        strv_push(&v, BASE);
        return v;
    }
    dir = opendir(BASE);
    while (dir && (e = readdir(dir))) {
        _cleanup_free_ char *path = xasprintf(BASE "/%s", e->d_name);

        /* "cpu" may be a link to "cpu,cpuacct". */
        if (e->d_type == DT_DIR && e->d_name[0] != '.' && is_fs(path, CGROUP_SUPER_MAGIC))
            strv_push(&v, path);
    }
    if (dir)
        closedir(dir);
    return v;
}

bool cgroup_counts_swap(void)
{
    return cgroup_layout() == CGROUP_V2 || fs_exists(BASE "/memory/memory.memsw.limit_in_bytes");
}

bool cgroup_oom_killed(const char *group)
{
    bool v2 = cgroup_layout() == CGROUP_V2;
    char path[CGROUP_PATH_MAX];
    _cleanup_free_ char *text = NULL;
    const char *at;

    snprintf(path, sizeof(path), "%s/%s/%s", v2 ? BASE : BASE "/memory", group,
        v2 ? "memory.events" : "memory.oom_control");
    if (fs_read(path, 4096, &text, NULL, NULL) < 0)
        return false;
    /* "oom_kill 1", at the start of a line: there are oom_kill_disable and oom_group_kill too. */
    for (at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (str_starts(at, "oom_kill "))
            return at[strlen("oom_kill ")] != '0';
    return false;
}

bool cgroup_holds(const char *group, pid_t pid)
{
    _cleanup_free_ char *text = NULL, *want = xasprintf(":/%s", group);
    char path[64];
    size_t n = strlen(want);

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (fs_read(path, FILE_MAX, &text, NULL, NULL) < 0)
        return false;
    for (const char *at = text; (at = strstr(at, want)); at++)
        if (at[n] == '\n' || at[n] == '/')
            return true;
    return false;
}

/* Call fn for the folder and those below it, the innermost first. */
static int each_below(const char *dir, int depth, int (*fn)(const char *dir, void *arg), void *arg)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int r = 0;

    if (!d)
        return errno == ENOENT ? 0 : -errno;
    while (r == 0 && depth < DEPTH_MAX && (e = readdir(d))) {
        _cleanup_free_ char *path = xasprintf("%s/%s", dir, e->d_name);

        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            r = each_below(path, depth + 1, fn, arg);
    }
    closedir(d);
    return r < 0 ? r : fn(dir, arg);
}

static int each_folder(const char *group, int (*fn)(const char *dir, void *arg), void *arg)
{
    _cleanup_(strv_freep) char **hierarchies = roots();
    int r = 0;

    for (size_t i = 0; r == 0 && hierarchies && hierarchies[i]; i++) {
        _cleanup_free_ char *dir = xasprintf("%s/%s", hierarchies[i], group);

        r = each_below(dir, 0, fn, arg);
    }
    return r;
}

static void thaw(const char *dir)
{
    char path[CGROUP_PATH_MAX];

    snprintf(path, sizeof(path), "%s/freezer.state", dir);
    (void)fs_write_existing(path, "THAWED", NULL);
    snprintf(path, sizeof(path), "%s/cgroup.freeze", dir);
    (void)fs_write_existing(path, "0", NULL);
}

/* Kill what is in one folder and count it. */
static int kill_folder(const char *dir, void *arg)
{
    _cleanup_free_ char *text = NULL;
    char path[CGROUP_PATH_MAX];
    unsigned *count = arg;
    int r;

    snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    r = fs_read(path, FILE_MAX, &text, NULL, NULL);
    if (r < 0)
        return r == -ENOENT || r == -ENODEV ? 0 : r;
    for (char *at = text, *end; *at; at = end + (*end == '\n')) {
        long pid = strtol(at, &end, 10);

        if (end == at)
            break;
        /* 0: a process that this namespace cannot see; another pass will not help either. */
        if (pid > 0)
            kill((pid_t)pid, SIGKILL);
        (*count)++;
    }
    if (*count > 0)
        thaw(dir);
    return 0;
}

static void pause_msec(long msec)
{
    struct timespec t = {.tv_nsec = msec * 1000 * 1000};

    nanosleep(&t, NULL);
}

int cgroup_kill(const char *group, uint64_t timeout_usec, struct err *err)
{
    uint64_t deadline = clock_mono_usec() + timeout_usec;
    unsigned count;
    int r;

    do {
        count = 0;
        r = each_folder(group, kill_folder, &count);
        if (r < 0)
            return err_sys(err, r, "cannot look into control group '%s'", group);
        if (count == 0)
            return 0;
        pause_msec(1);
    } while (clock_mono_usec() < deadline);
    return err_set(err, -ETIMEDOUT, "%u processes of control group '%s' do not die", count, group);
}

static int remove_folder(const char *dir, void *arg)
{
    uint64_t deadline = *(uint64_t *)arg;

    /* The kernel lets go of the last process a little after it is gone from the list. */
    while (rmdir(dir) < 0) {
        if (errno == ENOENT)
            return 0;
        if (errno != EBUSY || clock_mono_usec() >= deadline)
            return -errno;
        pause_msec(1);
    }
    return 0;
}

int cgroup_remove(const char *group, uint64_t timeout_usec, struct err *err)
{
    uint64_t deadline = clock_mono_usec() + timeout_usec;
    int r = each_folder(group, remove_folder, &deadline);

    return r < 0 ? err_sys(err, r, "cannot remove control group '%s'", group) : 0;
}

int cgroup_remove_empty(const char *group, struct err *err)
{
    _cleanup_(strv_freep) char **hierarchies = roots();
    int r = 0;

    for (size_t i = 0; hierarchies && hierarchies[i]; i++) {
        _cleanup_free_ char *dir = xasprintf("%s/%s", hierarchies[i], group);

        if (rmdir(dir) < 0 && errno != ENOENT)
            r = -errno;
    }
    return r < 0 ? err_sys(err, r, "cannot remove control group '%s'", group) : 0;
}

int cgroup_children(const char *group, char ***ret, struct err *err)
{
    _cleanup_(strv_freep) char **hierarchies = roots(), **names = NULL;

    for (size_t i = 0; hierarchies && hierarchies[i]; i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", hierarchies[i], group);
        DIR *dir = opendir(path);
        struct dirent *e;

        if (!dir && errno != ENOENT)
            return err_sys(err, -errno, "cannot open '%s'", path);
        while (dir && (e = readdir(dir)))
            if (e->d_type == DT_DIR && e->d_name[0] != '.' && !strv_has(names, e->d_name))
                strv_push(&names, e->d_name);
        if (dir)
            closedir(dir);
    }
    *ret = TAKE_PTR(names);
    return 0;
}
