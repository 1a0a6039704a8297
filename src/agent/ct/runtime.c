/*
 * Starting and removing containers. A start is repeated by a later agent until it says yes, so it
 * first looks at what is there:
 *
 *   nothing, or a part that never became a container   remove it, start
 *   running                                            nothing to do
 *   ended before the barrier                           remove it, start
 *   ended after the barrier                            -EEXIST: a command is never started twice
 */
#include "agent/ct/runtime.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/ct/cgroup.h"
#include "agent/ct/conmon.h"
#include "agent/ct/guest.h"
#include "agent/ct/mnt.h"
#include "agent/ct/oci.h"
#include "agent/ct/paths.h"
#include "agent/ct/seccomp.h"
#include "agent/ct/seccomp_bpf.h"
#include "agent/ct/state.h"
#include "agent/ct/sysfs.h"
#include "agent/ct/volume.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/strv.h"

#define CREATE_WAIT_USEC (30 * USEC_PER_SEC)
#define KILL_WAIT_USEC (10 * USEC_PER_SEC)
#define LOG_WAIT_USEC (10 * USEC_PER_SEC)
#define CGROUP_WAIT_USEC (2 * USEC_PER_SEC)

int runtime_open(struct runtime *rt, struct err *err)
{
    int r = seccomp_load(rt->seccomp, oci_capabilities, &rt->filter, err);

    if (r < 0)
        return r;
    r = seccomp_bpf(rt->filter, &rt->filter_bpf, err);
    if (r == -ENOTSUP)
        r = 0; /* the runtime compiles it */
    return r < 0 ? err_prefix(err, "seccomp profile '%s'", rt->seccomp) : 0;
}

void runtime_close(struct runtime *rt)
{
    json_decref(TAKE_PTR(rt->filter));
    free(TAKE_PTR(rt->filter_bpf));
}

/* Run the OCI runtime with its fixed arguments and these. */
static int run_runtime(
    const struct runtime *rt, const char *verb, const char *option, const char *id, struct err *err)
{
    const char *argv[] = {rt->shim, rt->crun, "--root", rt->root, "--cgroup-manager=cgroupfs", verb,
        option, id, NULL};
    struct proc p = {.argv = argv};

    return proc_run(&p, NULL, err);
}

static int write_config(const struct runtime *rt, const struct assignment *a,
    const struct assigned_container *c, const char *netns_path, const struct runtime_extra *extra,
    struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    char path[CT_PATH_MAX];
    int r = runtime_config(rt, a, c, netns_path, extra, &doc, err);

    if (r == 0)
        r = fs_mkdir_p(ct_run_path(&rt->dirs, c->id, "bundle", path), 0700, err);
    if (r < 0)
        return r;
    text = json_text(doc);
    ct_run_path(&rt->dirs, c->id, "bundle/config.json", path);
    return fs_write(path, text, strlen(text), 0600, err);
}

/* Mount points of GPU files: the runtime cannot make them in a root of another uid. */
static int make_extra_points(const struct runtime *rt, const struct assignment *a, const char *id,
    const struct runtime_extra *extra, struct err *err)
{
    _cleanup_(guest_done) struct guest g = {.root = -1};
    int r = 0;

    if (!extra || !extra->mounts)
        return 0;
    r = guest_open(&rt->dirs, &a->user, id, &g, err);
    for (char **m = extra->mounts; r == 0 && *m; m++) {
        const char *colon = strchr(*m, ':');
        _cleanup_free_ char *source = NULL;
        _cleanup_close_ int dir = -1;
        struct stat st;

        if (!colon || colon[1] != '/')
            return err_set(err, -EINVAL, "'%.100s' is not SOURCE:TARGET", *m);
        source = xstrndup(*m, (size_t)(colon - *m));
        if (stat(source, &st) < 0)
            return err_sys(err, -errno, "cannot mount '%.100s' in the container", source);
        if (volume_covers(a, colon + 1))
            return err_set(
                err, -EINVAL, "a volume covers '%.100s', which the GPUs need", colon + 1);
        if (S_ISDIR(st.st_mode))
            r = MIN_OF(dir = guest_dir(&g, colon + 1, err), 0);
        else
            r = guest_mount_file(&g, colon + 1, err);
    }
    return r;
}

static int create(const struct runtime *rt, const struct assignment *a,
    const struct assigned_container *c, const char *netns_path, const struct runtime_extra *extra,
    struct err *err)
{
    char path[CT_PATH_MAX];
    pid_t pid;
    int r;

    r = write_config(rt, a, c, netns_path, extra, err);
    if (r == 0)
        r = make_extra_points(rt, a, c->id, extra, err);
    if (r == 0)
        r = sysfs_make(netns_path, ct_run_path(&rt->dirs, c->id, "sys", path), err);
    if (r == 0)
        r = conmon_create(rt, c->id, c->name, &pid, err);
    if (r == 0)
        r = state_write_init(rt, c->id, pid, err);
    return r < 0 ? r : crash_point("container.after_create", err);
}

static void pause_5_msec(void)
{
    struct timespec t = {.tv_nsec = 5 * 1000 * 1000};

    nanosleep(&t, NULL);
}

/* conmon and the runtime go on when an agent dies while they create: wait until they are done. */
static void wait_for_creation(const struct runtime *rt, const char *id)
{
    uint64_t deadline = clock_mono_usec() + CREATE_WAIT_USEC;

    while (conmon_is_creating(rt, id) && clock_mono_usec() < deadline)
        pause_5_msec();
}

static bool has_run(const struct runtime *rt, const char *id)
{
    struct init_record record;

    return rootfs_read_record(&rt->dirs, id, &record, NULL) == 0 &&
        (record.started || record.start_failed);
}

/* Whether there is a container to go on with; what is no use is taken away. */
static int look(const struct runtime *rt, const struct assignment *a, const char *id,
    bool *ret_lives, struct err *err)
{
    struct runtime_state s;
    int r;

    wait_for_creation(rt, id);
    r = runtime_state(rt, a->session, id, &s, err);
    if (r < 0)
        return r;
    if (has_run(rt, id)) {
        if (!s.running)
            return err_set(err, -EEXIST, "the container has run and ended");
        *ret_lives = true;
        return 0;
    }
    *ret_lives = s.running && s.conmon_pid > 0;
    if (*ret_lives || (!s.exists && !s.exit_known && s.conmon_pid == 0))
        return 0;
    return runtime_remove(rt, a->session, id, err);
}

int runtime_start(const struct runtime *rt, const struct assignment *a,
    const struct assigned_container *c, const char *netns_path, const struct runtime_extra *extra,
    struct err *err)
{
    bool lives = false;
    int r = ct_check_id("container", c->id, err);

    if (r == 0)
        r = ct_check_id("session", a->session, err);
    if (r == 0)
        r = look(rt, a, c->id, &lives, err);
    if (r == 0 && !lives)
        r = create(rt, a, c, netns_path, extra, err);
    return r;
}

static int remove_files(const struct runtime *rt, const char *id, struct err *err)
{
    static const char *const files[] = {"pid", "conmon.pid", "init", "sync"};
    char path[CT_PATH_MAX];
    int r;

    if (unlink(conmon_exit_path(rt, id, path)) < 0 && errno != ENOENT)
        return err_sys(err, -errno, "cannot remove '%s'", path);
    r = fs_remove_tree(ct_run_path(&rt->dirs, id, "persist", path), err);
    if (r == 0)
        r = fs_remove_tree(ct_run_path(&rt->dirs, id, "bundle", path), err);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
        if (unlink(ct_run_path(&rt->dirs, id, files[i], path)) < 0 && errno != ENOENT)
            r = err_sys(err, -errno, "cannot remove '%s'", path);
    return r;
}

/* The runtime's own way, and by hand what it left or does not know any more. */
static int forget(const struct runtime *rt, const char *id, struct err *err)
{
    char path[CT_PATH_MAX];

    if (!state_exists(rt, id))
        return 0;
    (void)run_runtime(rt, "delete", "--force", id, NULL);
    snprintf(path, sizeof(path), "%s/%s", rt->root, id);
    return fs_remove_tree(path, err);
}

int runtime_remove(
    const struct runtime *rt, const char *session_id, const char *container_id, struct err *err)
{
    _cleanup_free_ char *group = NULL;
    int r = ct_check_id("container", container_id, err);

    if (r == 0)
        r = ct_check_id("session", session_id, err);
    if (r < 0)
        return r;
    group = oci_cgroup(rt, session_id, container_id);
    wait_for_creation(rt, container_id);
    (void)runtime_kill(rt, container_id, SIGKILL, NULL);
    r = cgroup_kill(group, KILL_WAIT_USEC, err);
    if (r < 0)
        return r;
    conmon_wait(rt, container_id, LOG_WAIT_USEC);
    r = forget(rt, container_id, err);
    if (r == 0)
        r = cgroup_remove(group, CGROUP_WAIT_USEC, err);
    return r < 0 ? r : remove_files(rt, container_id, err);
}

int runtime_remove_session(const struct runtime *rt, const char *session_id, struct err *err)
{
    _cleanup_free_ char *group = NULL;
    int r = ct_check_id("session", session_id, err);

    if (r < 0)
        return r;
    group = xasprintf("%s/%s", rt->cgroup, session_id);
    return cgroup_remove_empty(group, err);
}
