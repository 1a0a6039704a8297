/*
 * musterd: puts the manager together. Everything is made here in order and undone in reverse; what
 * it does is in the files beside.
 */
#include <malloc.h>
#include <signal.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/proc.h"
#include "manager/api.h"
#include "manager/events.h"
#include "manager/first_use.h"
#include "manager/gateway.h"
#include "manager/joins.h"
#include "manager/launch.h"
#include "manager/links.h"
#include "manager/listen.h"
#include "manager/overlay.h"
#include "manager/state.h"

#define TICK_MSEC 250
#define FORGET_TICKS 2400 /* 10 minutes */

static void on_tick(uv_timer_t *t)
{
    struct manager *m = t->data;
    static unsigned n;

    launch_tick(m, clock_real_usec());
    pass_tick(m, clock_real_usec());
    nodes_tick(m, clock_real_usec());
    links_tick(m, clock_real_usec());
    gateway_tick(m, clock_mono_usec());
    events_tick(m, clock_mono_usec());
    listen_tick(m, clock_real_usec());
    joins_tick(m, clock_real_usec());
    if (n++ % FORGET_TICKS == 0)
        requests_forget_old(m, clock_real_usec());
}

static void store_failed(void *arg, const char *text)
{
    log_err("the store cannot be written: %s; what was acknowledged is safe; exiting", text);
    _exit(3);
}

static int make_folders(struct manager *m, struct err *err)
{
    static const char *const names[] = {"", "/blobs/sha256", "/tmp"};
    int r;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        _cleanup_free_ char *path = xasprintf("%s%s", m->config.state_dir, names[i]);
        r = fs_mkdir_p(path, 0711, err);
        if (r < 0)
            return r;
    }
    return fs_mkdir_p(m->config.volumes_dir, 0711, err);
}

static void on_signal(uv_signal_t *h, int signo)
{
    struct manager *m = h->data;

    log_info("stopping on signal %d; sessions go on", signo);
    uv_stop(m->loop);
}

static int open_store(struct manager *m, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/muster.db", m->config.state_dir);
    struct store_opts opts = {.path = path, .loop = m->loop, .fatal = store_failed, .arg = m};
    int r = store_open(&opts, &m->store, err);

    if (r == 0)
        r = state_load(m, err);
    if (r == 0)
        r = joins_load(m, err);
    if (r < 0)
        return r;
    store_on_commit(m->store, events_committed, m);
    return 0;
}

static int run(struct manager *m, struct err *err)
{
    uv_signal_t term, intr;
    uint32_t base, count;
    int r;

    r = overlay_parse(m->config.overlay, &base, &count, err);
    if (r == 0)
        r = make_folders(m, err);
    if (r == 0)
        r = open_store(m, err);
    if (r == 0 && m->config.new_ca)
        return joins_new_authority(m, err);
    if (r == 0)
        r = net_new(m->loop, NULL, &m->net, err);
    if (r == 0)
        r = listen_start(m, err);
    if (r < 0)
        return r;
    pass_start(m);
    first_use_resume(m);
    uv_timer_init(m->loop, &m->tick);
    m->tick.data = term.data = intr.data = m;
    uv_timer_start(&m->tick, on_tick, TICK_MSEC, TICK_MSEC);
    uv_signal_init(m->loop, &term);
    uv_signal_init(m->loop, &intr);
    uv_signal_start(&term, on_signal, SIGTERM);
    uv_signal_start(&intr, on_signal, SIGINT);
    log_info("cluster %s, epoch %llu: ready, %zu live sessions", m->cluster,
        (unsigned long long)m->epoch, map_count(&m->sessions));
    uv_run(m->loop, UV_RUN_DEFAULT);
    m->closing = true;
    uv_close((uv_handle_t *)&m->tick, NULL);
    uv_close((uv_handle_t *)&term, NULL);
    uv_close((uv_handle_t *)&intr, NULL);
    uv_close((uv_handle_t *)&m->pass_check, NULL);
    uv_run(m->loop, UV_RUN_NOWAIT);
    return 0;
}

static void print_help(void)
{
    printf("Usage: musterd [OPTION]...\n\n"
           "The manager of a Muster cluster: API, scheduler, store.\n\nOptions:\n");
    opt_print_help(manager_options, stdout);
}

int main(int argc, char **argv)
{
    struct manager m = {0};
    struct err err = ERR_INIT;
    enum log_level level = LOG_LEVEL_INFO;
    enum log_format format = LOG_FORMAT_AUTO;
    uv_loop_t loop;
    int r;

    log_setup("musterd", level, format);
    r = manager_config_read(&m.config, argc, argv, &err);
    if (r < 0) {
        fprintf(stderr, "musterd: %s\n", err_text(&err));
        manager_config_done(&m.config);
        return 2;
    }
    if (m.config.help) {
        print_help();
        manager_config_done(&m.config);
        return 0;
    }
    if (m.config.version) {
        puts("musterd " MUSTER_VERSION);
        manager_config_done(&m.config);
        return 0;
    }
    log_level_parse(m.config.log_level, &level);
    format = str_eq(m.config.log_format, "json") ? LOG_FORMAT_JSON
        : str_eq(m.config.log_format, "text")    ? LOG_FORMAT_TEXT
                                                 : LOG_FORMAT_AUTO;
    log_setup("musterd", level, format);
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_ARENA_MAX, 2); /* not one for each worker thread that ever ran */
    umask(0022);
    uv_loop_init(&loop);
    m.loop = &loop;
    list_init(&m.watchers);
    list_init(&m.waiters);
    if (!m.config.import_program)
        m.config.import_program = proc_beside("muster-import");
    r = run(&m, &err);
    if (r < 0)
        log_err("%s", err_text(&err));
    if (m.net)
        net_free(m.net);
    if (m.store)
        store_close(m.store);
    uv_run(&loop, UV_RUN_NOWAIT);
    joins_done(&m);
    pki_done(&m.pki);
    state_done(&m);
    manager_config_done(&m.config);
    return r < 0 ? 1 : 0;
}
