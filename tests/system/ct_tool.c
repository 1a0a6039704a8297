/*
 * A driver of src/agent/ct for system tests: each call does what an agent would do, in a process of
 * its own, so that an agent's death between two steps is the end of one call.
 *
 * usage: ct_tool CONFIG VERB [ARG...] [then VERB [ARG...]]...
 *
 * "then" is for calls of which no death between them is of interest: with the sanitizers, a process
 * costs ten times what most verbs do.
 *
 * CONFIG is a JSON file: {"run", "state", "blobs", "guest", "crun", "conmon", "cgroup", "seccomp",
 * "gpus", "pids_max", "assignment": {...}}; the assignment is as in wire/assignment.h. Containers
 * are given by their index in it. Answers are JSON on stdout; errors are text on stderr and exit 1.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/ct/feature.h"
#include "agent/ct/gpu.h"
#include "agent/ct/mountns.h"
#include "agent/ct/rootfs.h"
#include "agent/ct/runtime.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/strv.h"

struct tool {
    json_t *config;
    struct runtime rt;
    struct assignment *a;
    const char *gpu_spec;
    struct gpu *gpus;
    uint32_t gpu_count;
};

static const struct assigned_container *container(const struct tool *t, const char *index)
{
    uint64_t i;

    assert(str_to_u64(index, UINT32_MAX, &i) == 0 && i < t->a->container_count);
    return &t->a->containers[i];
}

static void netns_path(const struct tool *t, const char *id, char path[384])
{
    snprintf(path, 384, "%s/netns/%s", t->rt.dirs.run, id);
}

static void print(json_t *doc)
{
    _cleanup_free_ char *text = json_text(doc);

    puts(text);
    json_decref(doc);
}

static int inject(const struct tool *t, const struct assigned_container *c, struct runtime_extra *x,
    struct err *e)
{
    return gpu_inject(
        t->gpu_spec, t->rt.dirs.gpu_dev, t->gpus, t->gpu_count, c->gpus, c->gpu_count, x, e);
}

/* A network namespace, pinned as a file, as edge.h would. */
static void *make_netns(void *path)
{
    if (unshare(CLONE_NEWNET) < 0 ||
        mount("/proc/thread-self/ns/net", path, NULL, MS_BIND, NULL) < 0)
        perror(path);
    return NULL;
}

static int do_netns(struct tool *t, char **args, struct err *err)
{
    char path[384], folder[384];
    pthread_t thread;
    int r;

    netns_path(t, container(t, args[0])->id, path);
    snprintf(folder, sizeof(folder), "%s/netns", t->rt.dirs.run);
    r = fs_mkdir_p(folder, 0700, err);
    if (r < 0 || fs_exists(path))
        return r;
    r = fs_write(path, "", 0, 0600, err);
    if (r == 0) {
        assert(pthread_create(&thread, NULL, make_netns, path) == 0);
        pthread_join(thread, NULL);
    }
    return r;
}

static int do_netns_remove(struct tool *t, char **args, struct err *err)
{
    char path[384];

    netns_path(t, container(t, args[0])->id, path);
    umount2(path, MNT_DETACH);
    unlink(path);
    return 0;
}

static int do_make(struct tool *t, char **args, struct err *err)
{
    _cleanup_(runtime_extra_done) struct runtime_extra x = {0};
    const struct assigned_container *c = container(t, args[0]);
    int r = inject(t, c, &x, err);

    return r < 0 ? r : rootfs_make(&t->rt.dirs, t->a, c, x.env, err);
}

/* Of a start only: the filter of system calls is much work for a call that asks for a state. */
static int prepare(
    struct tool *t, const struct assigned_container *c, struct runtime_extra *x, struct err *err)
{
    int r = t->rt.filter ? 0 : runtime_open(&t->rt, err);

    return r < 0 ? r : inject(t, c, x, err);
}

static int do_start(struct tool *t, char **args, struct err *err)
{
    _cleanup_(runtime_extra_done) struct runtime_extra x = {0};
    const struct assigned_container *c = container(t, args[0]);
    char netns[384];
    int r = prepare(t, c, &x, err);

    netns_path(t, c->id, netns);
    return r < 0 ? r : runtime_start(&t->rt, t->a, c, netns, &x, err);
}

static int do_config(struct tool *t, char **args, struct err *err)
{
    _cleanup_(runtime_extra_done) struct runtime_extra x = {0};
    const struct assigned_container *c = container(t, args[0]);
    json_t *doc;
    int r = prepare(t, c, &x, err);

    if (r == 0)
        r = runtime_config(&t->rt, t->a, c, "/run/netns/x", &x, &doc, err);
    if (r == 0)
        print(doc);
    return r;
}

static int do_state(struct tool *t, char **args, struct err *err)
{
    struct runtime_state s;
    int r = runtime_state(&t->rt, t->a->session, container(t, args[0])->id, &s, err);

    if (r == 0)
        print(json_pack("{s:b, s:b, s:I, s:I, s:I, s:b, s:i, s:b}", "exists", s.exists, "running",
            s.running, "pid", (json_int_t)s.pid, "start_time", (json_int_t)s.start_time,
            "conmon_pid", (json_int_t)s.conmon_pid, "exit_known", s.exit_known, "exit_code",
            s.exit_code, "oom", s.oom));
    return r;
}

static int do_record(struct tool *t, char **args, struct err *err)
{
    struct init_record rec;
    int r = rootfs_read_record(&t->rt.dirs, container(t, args[0])->id, &rec, err);

    if (r == 0)
        print(json_pack("{s:b, s:b, s:b, s:b, s:i, s:s}", "started", rec.started, "start_failed",
            rec.start_failed, "exited", rec.exited, "signalled", rec.signalled, "code", rec.code,
            "text", rec.text));
    return r;
}

static int do_barrier(struct tool *t, char **args, struct err *err)
{
    return rootfs_open_barrier(&t->rt.dirs, container(t, args[0])->id, err);
}

static int do_kill(struct tool *t, char **args, struct err *err)
{
    uint64_t signo;

    assert(str_to_u64(args[1], 64, &signo) == 0);
    return runtime_kill(&t->rt, container(t, args[0])->id, (int)signo, err);
}

static int do_remove(struct tool *t, char **args, struct err *err)
{
    return runtime_remove(&t->rt, t->a->session, container(t, args[0])->id, err);
}

static int do_unmake(struct tool *t, char **args, struct err *err)
{
    return rootfs_remove(&t->rt.dirs, container(t, args[0])->id, err);
}

static int do_session_remove(struct tool *t, char **args, struct err *err)
{
    return runtime_remove_session(&t->rt, t->a->session, err);
}

static int do_blob_gc(struct tool *t, char **args, struct err *err)
{
    return blob_unmount_unused(&t->rt.dirs, err);
}

static int do_list(struct tool *t, char **args, struct err *err)
{
    _cleanup_(strv_freep) char **roots = NULL, **known = NULL;
    json_t *doc = json_object();
    int r = rootfs_list(&t->rt.dirs, &roots, err);

    if (r == 0)
        r = runtime_list(&t->rt, &known, err);
    json_set_strv(doc, "roots", roots);
    json_set_strv(doc, "runtime", known);
    print(doc);
    return r;
}

static int do_gpus(struct tool *t, char **args, struct err *err)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < t->gpu_count; i++)
        json_array_append_new(list,
            json_pack("{s:i, s:s, s:s}", "index", (int)t->gpus[i].index, "model", t->gpus[i].model,
                "uuid", t->gpus[i].uuid));
    print(list);
    return 0;
}

static int wait_for(pid_t pid)
{
    int status;

    assert(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* exec INDEX work|root tty|pipe WORD...: exits as the program does. Stdin is the terminal, or
 * /dev/null as the agent's mount namespace has it. */
static int do_exec(struct tool *t, char **args, struct err *err)
{
    const struct assigned_container *c = container(t, args[0]);
    _cleanup_(strv_freep) char **env = strv_copy(c->env), **argv = NULL;
    _cleanup_free_ char *id = xasprintf("t%d", (int)getpid());
    struct exec_spec spec = {
        .root = str_eq(args[1], "root"),
        .tty = str_eq(args[2], "tty"),
        .command = args[3] ? args + 3 : NULL,
    };
    pid_t pid;
    int r;

    strv_env_set(&env, "TERM", "xterm");
    spec.env = env;
    r = runtime_exec_argv(&t->rt, c->id, id, &spec, &argv, err);
    if (r < 0)
        return r;
    if (!spec.tty)
        dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
    pid = fork();
    if (pid == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    r = wait_for(pid);
    runtime_exec_done(&t->rt, id);
    exit(r);
}

/* Run something in the agent's mount namespace. */
static int do_inside(struct tool *t, char **args, struct err *err)
{
    execvp(args[0], args);
    return err_sys(err, -errno, "execvp");
}

/* bench INDEX: make and start, each timed, in usec. */
static int do_bench(struct tool *t, char **args, struct err *err)
{
    uint64_t start = clock_mono_usec(), made;
    int r = do_make(t, args, err);

    made = clock_mono_usec();
    if (r == 0)
        r = do_start(t, args, err);
    if (r == 0)
        print(json_pack("{s:I, s:I}", "make", (json_int_t)(made - start), "start",
            (json_int_t)(clock_mono_usec() - made)));
    return r;
}

static const struct verb {
    const char *name;
    size_t args;
    int (*fn)(struct tool *t, char **args, struct err *err);
} verbs[] = {
    /* clang-format off */
    { "netns", 1, do_netns },
    { "netns-remove", 1, do_netns_remove },
    { "make", 1, do_make },
    { "start", 1, do_start },
    { "config", 1, do_config },
    { "state", 1, do_state },
    { "record", 1, do_record },
    { "barrier", 1, do_barrier },
    { "kill", 2, do_kill },
    { "remove", 1, do_remove },
    { "unmake", 1, do_unmake },
    { "session-remove", 0, do_session_remove },
    { "blob-gc", 0, do_blob_gc },
    { "list", 0, do_list },
    { "gpus", 0, do_gpus },
    { "exec", 3, do_exec },
    { "inside", 1, do_inside },
    { "bench", 1, do_bench },
    /* clang-format on */
};

static void read_runtime(struct tool *t)
{
    json_t *c = t->config;
    struct runtime *rt = &t->rt;

    STR_SET(rt->dirs.run, json_str_or(c, "run", ""));
    STR_SET(rt->dirs.state, json_str_or(c, "state", ""));
    STR_SET(rt->dirs.blobs, json_str_or(c, "blobs", ""));
    STR_SET(rt->dirs.guest, json_str_or(c, "guest", ""));
    snprintf(rt->dirs.gpu_dev, sizeof(rt->dirs.gpu_dev), "%.200s/dev", rt->dirs.run);
    snprintf(rt->root, sizeof(rt->root), "%.200s/crun", rt->dirs.run);
    STR_SET(rt->crun, json_str_or(c, "crun", "/usr/bin/crun"));
    STR_SET(rt->shim, json_str_or(c, "shim", ""));
    STR_SET(rt->conmon, json_str_or(c, "conmon", "/usr/bin/conmon"));
    STR_SET(rt->cgroup, json_str_or(c, "cgroup", "muster/test"));
    STR_SET(rt->seccomp, json_str_or(c, "seccomp", "/usr/share/containers/seccomp.json"));
    rt->pids_max = json_u64_or(c, "pids_max", 32768);
    t->gpu_spec = json_str_or(c, "gpus", "none");
    feature_forbid((unsigned)json_u64_or(c, "forbid", 0));
}

static int setup(struct tool *t, const char *path, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r = fs_read(path, 1 << 24, &text, &len, err);

    if (r == 0)
        r = json_parse(text, len, 1 << 24, &t->config, err);
    if (r < 0)
        return r;
    read_runtime(t);
    r = assignment_from_json(json_object_get(t->config, "assignment"), &t->a, err);
    if (r == 0)
        r = mountns_enter(t->rt.dirs.run, err);
    if (r == 0)
        r = gpu_discover(t->gpu_spec, t->rt.dirs.gpu_dev, "testnode", &t->gpus, &t->gpu_count, err);
    return r;
}

static const struct verb *verb_of(char **words, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (str_eq(words[0], verbs[i].name) && strv_len(words + 1) >= verbs[i].args)
            return &verbs[i];
    err_set(err, -EINVAL, "no verb '%s'", words[0]);
    return NULL;
}

static int run(struct tool *t, char **words, struct err *err)
{
    const struct verb *verb = verb_of(words, err);
    int r = verb ? verb->fn(t, words + 1, err) : -EINVAL;

    if (r < 0)
        return r;
    words += 1 + verb->args;
    return str_eq(words[0], "then") && words[1] ? run(t, words + 1, err) : 0;
}

static void tool_done(struct tool *t)
{
    json_decref(t->config);
    runtime_close(&t->rt);
    assignment_free(t->a);
    free(t->gpus);
}

int main(int argc, char **argv)
{
    _cleanup_(tool_done) struct tool t = {0};
    struct err err = ERR_INIT;
    int r;

    if (argc < 3)
        return 2;
    /* The one call from outside. */
    if (str_eq(argv[2], "ns-remove"))
        r = mountns_remove(argv[1], &err);
    else
        r = setup(&t, argv[1], &err);
    if (r == 0 && !str_eq(argv[2], "ns-remove"))
        r = run(&t, argv + 2, &err);
    if (r < 0)
        fprintf(stderr, "%s\n", err_text(&err));
    return r < 0;
}
