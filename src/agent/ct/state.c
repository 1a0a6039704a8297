/*
 * What is known of a container, from files and /proc, without asking a program: it is asked often.
 * A pid alone proves nothing; the start time beside it does, and until that was written (an agent
 * may die in between) the control group does.
 */
#include "agent/ct/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "agent/ct/cgroup.h"
#include "agent/ct/conmon.h"
#include "agent/ct/oci.h"
#include "agent/ct/paths.h"
#include "base/fs.h"
#include "base/strv.h"

#define INIT_FILE "init"
#define OOM_FILE "persist/oom"

bool state_exists(const struct runtime *rt, const char *id)
{
    char path[CT_PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", rt->root, id);
    return fs_exists(path);
}

int state_write_init(const struct runtime *rt, const char *id, pid_t pid, struct err *err)
{
    char path[CT_PATH_MAX], text[64];
    uint64_t start;
    int n;

    /* It may be dead already: then no later process is taken for it. */
    if (proc_start_time(pid, &start) < 0)
        start = 0;
    n = snprintf(text, sizeof(text), "%d %ju\n", (int)pid, (uintmax_t)start);
    return fs_write(ct_run_path(&rt->dirs, id, INIT_FILE, path), text, (size_t)n, 0600, err);
}

static int read_number(const char *path, uint64_t *ret)
{
    _cleanup_free_ char *text = NULL;
    int r = fs_read(path, 64, &text, NULL, NULL);

    if (r < 0)
        return r;
    text[strcspn(text, "\n")] = '\0';
    return str_to_u64(text, UINT32_MAX, ret);
}

static bool is_zombie(pid_t pid)
{
    _cleanup_free_ char *text = NULL;
    char path[64];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(path, 4096, &text, NULL, NULL) < 0)
        return true;
    at = strrchr(text, ')');
    return !at || strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0;
}

/* "PID START" as written by state_write_init. */
static int read_init(const struct runtime *rt, const char *id, pid_t *ret_pid, uint64_t *ret_start)
{
    _cleanup_free_ char *text = NULL;
    char path[CT_PATH_MAX];
    uintmax_t start;
    int pid;

    if (fs_read(ct_run_path(&rt->dirs, id, INIT_FILE, path), 64, &text, NULL, NULL) < 0)
        return -ENOENT;
    if (sscanf(text, "%d %ju", &pid, &start) != 2)
        return -EINVAL;
    *ret_pid = pid;
    *ret_start = start;
    return 0;
}

pid_t state_init(const struct runtime *rt, const char *id, uint64_t *ret_start)
{
    uint64_t known, now;
    pid_t pid;

    if (read_init(rt, id, &pid, &known) < 0)
        return 0;
    if (proc_start_time(pid, &now) < 0 || now != known || is_zombie(pid))
        return 0;
    *ret_start = now;
    return pid;
}

/* An agent died between the container's creation and state_write_init: the runtime's own pid file,
 * if that process is in the container's group. */
static void adopt(const struct runtime *rt, const char *session_id, const char *id)
{
    _cleanup_free_ char *group = oci_cgroup(rt, session_id, id);
    char path[CT_PATH_MAX];
    uint64_t pid;

    if (fs_exists(ct_run_path(&rt->dirs, id, INIT_FILE, path)))
        return;
    if (read_number(ct_run_path(&rt->dirs, id, "pid", path), &pid) < 0 || pid == 0)
        return;
    if (cgroup_holds(group, (pid_t)pid))
        (void)state_write_init(rt, id, (pid_t)pid, NULL);
}

int runtime_state(const struct runtime *rt, const char *session_id, const char *container_id,
    struct runtime_state *ret, struct err *err)
{
    _cleanup_free_ char *group = NULL;
    struct runtime_state s = {0};
    char path[CT_PATH_MAX];
    uint64_t code;
    int r = ct_check_id("container", container_id, err);

    if (r == 0)
        r = ct_check_id("session", session_id, err);
    if (r < 0)
        return r;
    group = oci_cgroup(rt, session_id, container_id);
    s.exists = state_exists(rt, container_id);
    if (s.exists)
        adopt(rt, session_id, container_id);
    s.pid = state_init(rt, container_id, &s.start_time);
    s.running = s.pid > 0;
    s.conmon_pid = conmon_pid(rt, container_id);
    if (read_number(conmon_exit_path(rt, container_id, path), &code) == 0) {
        s.exit_known = true;
        s.exit_code = (int)code;
    }
    s.oom = cgroup_oom_killed(group) ||
        fs_exists(ct_run_path(&rt->dirs, container_id, OOM_FILE, path));
    *ret = s;
    return 0;
}

int runtime_kill(const struct runtime *rt, const char *container_id, int signo, struct err *err)
{
    _cleanup_close_ int fd = -1;
    uint64_t start;
    pid_t pid;
    int r = ct_check_id("container", container_id, err);

    if (r < 0)
        return r;
    pid = state_init(rt, container_id, &start);
    fd = pid > 0 ? pidfd_open(pid, 0) : -1;
    /* Asked again: the descriptor is of the process that was meant. */
    if (fd < 0 || state_init(rt, container_id, &start) != pid)
        return err_set(err, -ESRCH, "the container does not run");
    if (pidfd_send_signal(fd, signo, NULL, 0) < 0)
        return err_sys(err, -errno, "cannot send signal %d to the container", signo);
    return 0;
}

static void add_valid(char ***to, const char *name)
{
    if (uuid_is_valid(name) && !strv_has(*to, name))
        strv_push(to, name);
}

static int add_known(const struct runtime *rt, char ***ids, struct err *err)
{
    DIR *dir = opendir(rt->root);
    struct dirent *e;

    if (!dir)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "cannot open '%s'", rt->root);
    while ((e = readdir(dir)))
        add_valid(ids, e->d_name);
    closedir(dir);
    return 0;
}

static int add_grouped(const struct runtime *rt, const char *session, char ***ids, struct err *err)
{
    _cleanup_free_ char *group = xasprintf("%s/%s", rt->cgroup, session);
    _cleanup_(strv_freep) char **names = NULL;
    int r = cgroup_children(group, &names, err);

    strv_for_each (name, names)
        add_valid(ids, *name);
    return r;
}

int runtime_list(const struct runtime *rt, char ***ret, struct err *err)
{
    _cleanup_(strv_freep) char **ids = NULL, **sessions = NULL;
    int r = add_known(rt, &ids, err);

    if (r == 0)
        r = cgroup_children(rt->cgroup, &sessions, err);
    for (size_t i = 0; r == 0 && sessions && sessions[i]; i++)
        if (uuid_is_valid(sessions[i]))
            r = add_grouped(rt, sessions[i], &ids, err);
    if (r == 0)
        *ret = TAKE_PTR(ids);
    return r;
}
