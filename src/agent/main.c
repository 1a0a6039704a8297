/*
 * muster-agent: puts the agent together. The mount namespace is entered before libuv makes a
 * thread; everything else is made in order and undone in reverse. Containers go on without it.
 */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "agent/ct/mountns.h"
#include "agent/ct/rundir.h"
#include "agent/join.h"
#include "agent/link.h"
#include "agent/sess.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/work.h"
#include "net/net.h"

#define TICK_MSEC 250
#define REPAIR_TICKS 20 /* 5 s; changes are heard of at once */
#define KEEP_TICKS 120  /* 30 s */
#define THREADS "64"

static void set(char *to, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void set(char *to, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(to, size, fmt, ap);
    va_end(ap);
}

static void fill_dirs(struct agent *ag)
{
    const struct agent_config *c = &ag->config;
    struct rootfs_dirs *d = &ag->rt.dirs;
    _cleanup_free_ char *shim = proc_beside("muster-runtime");

    set(d->run, sizeof(d->run), "%s", c->run_dir);
    set(d->state, sizeof(d->state), "%s", c->state_dir);
    set(d->blobs, sizeof(d->blobs), "%s", c->blobs_dir);
    set(d->guest, sizeof(d->guest), "%s", c->guest_dir);
    set(d->gpu_dev, sizeof(d->gpu_dev), "%s/dev", c->run_dir);
    set(ag->rt.crun, sizeof(ag->rt.crun), "%s", c->crun);
    set(ag->rt.shim, sizeof(ag->rt.shim), "%s", shim);
    set(ag->rt.conmon, sizeof(ag->rt.conmon), "%s", c->conmon);
    set(ag->rt.root, sizeof(ag->rt.root), "%s/crun", c->run_dir);
    set(ag->rt.cgroup, sizeof(ag->rt.cgroup), "%s", c->cgroup);
    set(ag->rt.seccomp, sizeof(ag->rt.seccomp), "%s", c->seccomp);
    ag->rt.pids_max = c->pids_max;
    set(ag->node_net.netns_dir, sizeof(ag->node_net.netns_dir), "%s/netns", c->run_dir);
    set(ag->node_net.tag, sizeof(ag->node_net.tag), "%s", c->tag);
    set(ag->node_net.fabric_addr, sizeof(ag->node_net.fabric_addr), "%s", c->addr_fabric);
    ag->node_net.uplink_base = 0xa9fe4000; /* 169.254.64.0 */
}

static int make_folders(struct agent *ag, struct err *err)
{
    const struct agent_config *c = &ag->config;
    /* clang-format off */
    const struct { const char *base, *name; mode_t mode; } folders[] = {
        { c->run_dir, "", 0711 }, { c->run_dir, "/netns", 0700 }, { c->run_dir, "/ct", 0711 },
        { c->run_dir, "/exec", 0700 }, { c->run_dir, "/exit", 0700 }, { c->run_dir, "/crun", 0700 },
        { c->run_dir, "/dev", 0755 }, { c->run_dir, "/blob", 0711 },
        { c->state_dir, "", 0711 }, { c->state_dir, "/sessions", 0700 }, { c->state_dir, "/ct", 0711 },
        { c->state_dir, "/log", 0700 }, { c->blobs_dir, "/sha256", 0711 },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        _cleanup_free_ char *path = xasprintf("%s%s", folders[i].base, folders[i].name);
        int r = fs_mkdir_p(path, folders[i].mode, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int find_capacity(struct agent *ag, struct err *err)
{
    const struct agent_config *c = &ag->config;
    struct sysinfo si;
    int r;

    ag->capacity.cpu_milli = (uint32_t)get_nprocs() * 1000;
    if (c->cpus) {
        r = cpus_parse(c->cpus, &ag->capacity.cpu_milli, err);
        if (r < 0)
            return r;
    }
    sysinfo(&si);
    uint64_t total = (uint64_t)si.totalram * si.mem_unit;
    ag->capacity.mem = c->mem ? c->mem : total > c->mem_reserved ? total - c->mem_reserved : 0;
    r = gpu_discover(c->gpu, ag->rt.dirs.gpu_dev, c->name, &ag->gpus, &ag->gpu_count, err);
    ag->capacity.gpus = ag->gpu_count;
    return r;
}

/* --- the filter, put back when somebody flushed it ---------------------------------------- */

static int repair_run(void *arg, struct err *err)
{
    struct agent *ag = arg;

    return node_net_repair(&ag->node_net, err);
}

static void repair_done(void *arg, int result, const struct err *err)
{
    struct agent *ag = arg;

    ag->nft_busy = false;
    if (result > 0)
        log_warning("the node's packet filter had been changed or flushed; it was put back");
    else if (result < 0)
        log_err("the node's packet filter cannot be checked: %s", err_text(err));
}

static void repair(struct agent *ag)
{
    if (ag->nft_busy)
        return;
    ag->nft_busy = true;
    work_start(ag->loop, repair_run, repair_done, ag);
}

static void nft_changed(uv_poll_t *p, int status, int events)
{
    struct agent *ag = p->data;

    node_net_drain(ag->nft_fd);
    repair(ag);
}

static int watch_filter(struct agent *ag, struct err *err)
{
    int r = node_net_watch(&ag->nft_fd, err);

    if (r < 0)
        return r;
    uv_poll_init(ag->loop, &ag->nft_poll, ag->nft_fd);
    ag->nft_poll.data = ag;
    return uv_poll_start(&ag->nft_poll, UV_READABLE, nft_changed);
}

/* --- run ---------------------------------------------------------------------------------- */

/* An idle agent gives back what its sessions needed: malloc keeps it otherwise. */
static void give_memory_back(const struct agent *ag)
{
    static bool busy;

    if (busy && map_count(&ag->sessions) == 0)
        malloc_trim(0);
    busy = map_count(&ag->sessions) > 0;
}

static void on_tick(uv_timer_t *t)
{
    struct agent *ag = t->data;
    static unsigned n;

    give_memory_back(ag);
    sess_tick(ag, clock_mono_usec());
    link_tick(ag, clock_mono_usec());
    identity_tick(ag, clock_real_usec());
    n++;
    if (n % REPAIR_TICKS == 0)
        repair(ag);
    if (n % KEEP_TICKS == 1) /* soon after a start, too */
        logkeep_start(ag);
}

static void on_signal(uv_signal_t *h, int signo)
{
    struct agent *ag = h->data;

    log_info("stopping on signal %d; containers go on", signo);
    uv_stop(ag->loop);
}

static int set_up(struct agent *ag, struct err *err)
{
    int r;

    r = proc_boot_id(ag->boot_id, err);
    if (r == 0)
        r = find_capacity(ag, err);
    if (r == 0)
        r = node_net_find_fabric(&ag->node_net, err);
    link_recall(ag);
    if (r == 0)
        r = node_net_setup(&ag->node_net, err);
    if (r == 0)
        r = watch_filter(ag, err);
    if (r == 0)
        r = net_new(ag->loop, &(struct net_limits){.ws_message_max = LINK_TEXT_MAX}, &ag->net, err);
    return r;
}

static int run(struct agent *ag, struct err *err)
{
    uv_signal_t term, intr;
    int r = set_up(ag, err);

    if (r == 0)
        r = sess_restore(ag, err);
    if (r < 0)
        return r;
    uv_timer_init(ag->loop, &ag->tick);
    ag->tick.data = term.data = intr.data = ag;
    uv_timer_start(&ag->tick, on_tick, TICK_MSEC, TICK_MSEC);
    uv_signal_init(ag->loop, &term);
    uv_signal_init(ag->loop, &intr);
    uv_signal_start(&term, on_signal, SIGTERM);
    uv_signal_start(&intr, on_signal, SIGINT);
    link_start(ag);
    log_info("node %s: ready with %zu sessions", ag->config.name, map_count(&ag->sessions));
    uv_run(ag->loop, UV_RUN_DEFAULT);
    ag->closing = true;
    link_stop(ag);
    return 0;
}

static int start(struct agent *ag, struct err *err)
{
    int r;

    if (access(ag->rt.shim, X_OK) < 0)
        return err_sys(err, -errno, "cannot run '%s', a part of muster-agent", ag->rt.shim);
    r = identity_open(ag, err);
    if (r == 0)
        r = mountns_usable(err);
    if (r == 0)
        r = runtime_open(&ag->rt, err);
    if (r == 0)
        r = rundir_make(ag->config.run_dir, err);
    if (r == 0)
        r = make_folders(ag, err);
    if (r == 0)
        r = mountns_enter(ag->config.run_dir, err);
    if (r < 0)
        return r;
    setenv("UV_THREADPOOL_SIZE", THREADS, 1);
    ag->loop = xnew(uv_loop_t);
    uv_loop_init(ag->loop);
    map_init(&ag->sessions);
    return run(ag, err);
}

static void print_help(void)
{
    printf(
        "Usage: muster-agent [OPTION]...\n"
        "       muster-agent join URL --token TOKEN --ca FINGERPRINT [OPTION]...\n\n"
        "The agent of a Muster node: runs the containers of sessions. 'join' makes this machine a\n"
        "node first: 'muster node add' prints the line.\n\nOptions:\n");
    opt_print_help(agent_options, stdout);
}

int main(int argc, char **argv)
{
    static struct agent ag; /* not on the stack: workers may still read it while the process ends */
    struct err err = ERR_INIT;
    enum log_level level = LOG_LEVEL_INFO;
    enum log_format format;
    int r;

    log_setup("muster-agent", level, LOG_FORMAT_AUTO);
    if (argc > 1 && str_eq(argv[1], "join"))
        return join_main(argc - 1, argv + 1);
    r = agent_config_read(&ag.config, argc, argv, &err);
    if (r < 0) {
        fprintf(stderr, "muster-agent: %s\n", err_text(&err));
        agent_config_done(&ag.config);
        return 2;
    }
    if (ag.config.help || ag.config.version) {
        if (ag.config.help)
            print_help();
        else
            puts("muster-agent " MUSTER_VERSION);
        agent_config_done(&ag.config);
        return 0;
    }
    log_level_parse(ag.config.log_level, &level);
    format = str_eq(ag.config.log_format, "json") ? LOG_FORMAT_JSON
        : str_eq(ag.config.log_format, "text")    ? LOG_FORMAT_TEXT
                                                  : LOG_FORMAT_AUTO;
    log_setup("muster-agent", level, format);
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_ARENA_MAX, 2); /* not one for each worker thread that ever ran */
    umask(0022);
    if (geteuid() != 0) {
        log_err("the agent needs to be root: it makes containers, mounts and networks");
        return 1;
    }
    fill_dirs(&ag);
    r = start(&ag, &err);
    if (r < 0)
        log_err("%s", err_text(&err));
    /* The process ends here with what it holds; containers and their monitors are on their own. */
    return r < 0 ? 1 : 0;
}
