/*
 * Agents that run nothing: each has a link to the manager, says at once that what it was told to do
 * is done, and that a command `true` has ended. So what the manager can do is measured, and not
 * what containers cost.
 *
 * Usage: bench_agents URL TOKEN-FILE COUNT; says "up" when all are welcome, and ends on SIGTERM.
 */
#include <signal.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "net/ws.h"
#include "wire/link.h"

#define GPUS 8
#define CPU_MILLI 128000
#define MEM (UINT64_C(1) << 40)
#define AGENTS_MAX 4000

struct agents {
    char *url, *token;
    uint32_t count, welcome;
    struct agent *list;
};

struct agent {
    struct agents *all;
    struct ws *ws;
    uint32_t number; /* from 1 */
    bool is_welcome;
};

static void say(const struct agent *ag, const struct link_message *m)
{
    _cleanup_free_ char *text = link_text(m);

    ws_send_text(ag->ws, text);
}

static void say_hello(const struct agent *ag)
{
    struct link_message m = {.type = LINK_HELLO};
    struct link_hello *h = &m.hello;

    STR_SET(h->version, MUSTER_VERSION);
    snprintf(h->node, sizeof(h->node), "n%05u", ag->number);
    snprintf(h->boot_id, sizeof(h->boot_id), "%08x-0000-4000-8000-000000000000", ag->number);
    snprintf(
        h->addr_mgmt, sizeof(h->addr_mgmt), "127.1.%u.%u", ag->number / 250, 1 + ag->number % 250);
    STR_SET(h->addr_fabric, h->addr_mgmt);
    h->fabric_mtu = 1500;
    h->capacity = (struct resources){.cpu_milli = CPU_MILLI, .gpus = GPUS, .mem = MEM};
    h->gpus = xnew_array(struct gpu, GPUS);
    for (uint32_t i = 0; i < GPUS; i++) {
        h->gpus[i] = (struct gpu){.index = i, .mem = UINT64_C(80) << 30, .healthy = true};
        STR_SET(h->gpus[i].model, "h100");
        snprintf(h->gpus[i].uuid, sizeof(h->gpus[i].uuid), "GPU-%u-%u", ag->number, i);
    }
    say(ag, &m);
    link_message_done(&m);
}

static void report(const struct agent *ag, const struct assignment *a,
    const struct assigned_container *c, enum container_state state)
{
    struct link_message m = {.type = LINK_REPORT};
    struct report *r = &m.report;

    STR_SET(r->session, a->session);
    STR_SET(r->container, c->id);
    STR_SET(r->name, c->name);
    r->attempt = a->attempt;
    r->state = state;
    r->end = state == CONTAINER_EXITED ? END_EXIT : END_NONE;
    r->started_usec = state >= CONTAINER_RUNNING ? clock_real_usec() : 0;
    r->ended_usec = state == CONTAINER_EXITED ? r->started_usec : 0;
    say(ag, &m);
}

static void removed(const struct agent *ag, const char *session, uint32_t attempt)
{
    struct link_message m = {.type = LINK_SESSION_REMOVED, .removed.attempt = attempt};

    STR_SET(m.removed.session, session);
    say(ag, &m);
}

static void take_assignment(const struct agent *ag, const struct assignment *a)
{
    if (a->phase == PHASE_STOP) {
        removed(ag, a->session, a->attempt);
        return;
    }
    for (uint32_t i = 0; i < a->container_count; i++) {
        const struct assigned_container *c = &a->containers[i];

        if (a->phase == PHASE_PREPARE) {
            report(ag, a, c, CONTAINER_READY);
            continue;
        }
        report(ag, a, c, CONTAINER_RUNNING);
        if (c->command && str_eq(c->command[0], "true"))
            report(ag, a, c, CONTAINER_EXITED);
    }
}

static void take_welcome(struct agent *ag)
{
    struct agents *all = ag->all;

    all->welcome += !ag->is_welcome;
    if (all->welcome == all->count && !ag->is_welcome) {
        puts("up");
        fflush(stdout);
    }
    ag->is_welcome = true;
}

static void on_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct agent *ag = arg;
    struct link_message *m = NULL, pong = {.type = LINK_PONG};
    struct err err = ERR_INIT;

    if (binary || link_parse(data, len, LINK_MANAGER, &m, &err) < 0) {
        fprintf(stderr, "bench_agents: %s\n", err_text(&err));
        exit(1);
    }
    if (m->type == LINK_WELCOME) {
        take_welcome(ag);
    } else if (m->type == LINK_ASSIGN) {
        take_assignment(ag, m->assignment);
    } else if (m->type == LINK_REMOVE) {
        removed(ag, m->order.session, 0);
    } else if (m->type == LINK_PING) {
        pong.ping = m->ping;
        say(ag, &pong);
    }
    link_message_free(m);
}

static void on_open(struct ws *ws, void *arg)
{
    say_hello(arg);
}

static void on_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    const struct agent *ag = arg;

    fprintf(
        stderr, "bench_agents: link %u was closed (%u, %u): %s\n", ag->number, code, status, text);
    exit(1);
}

static void on_signal(uv_signal_t *signal UNUSED, int number UNUSED)
{
    exit(0);
}

static int start(struct agents *all, struct net *net, struct err *err)
{
    static const struct ws_events events = {
        .opened = on_open, .message = on_message, .closed = on_closed};
    struct ws_connect_opts opts = {.url = all->url, .token = all->token};
    int r = 0;

    all->list = xnew_array(struct agent, all->count);
    for (uint32_t i = 0; r == 0 && i < all->count; i++) {
        all->list[i] = (struct agent){.all = all, .number = i + 1};
        r = ws_connect(net, &opts, &events, &all->list[i], &all->list[i].ws, err);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct net_limits limits = {.ws_message_max = LINK_TEXT_MAX};
    struct agents all = {0};
    struct err err = ERR_INIT;
    struct net *net = NULL;
    uv_signal_t term;
    uv_loop_t loop;
    uint64_t count;

    if (argc != 4 || str_to_u64(argv[3], AGENTS_MAX, &count) < 0) {
        fprintf(stderr, "usage: bench_agents URL TOKEN-FILE COUNT\n");
        return 2;
    }
    all.url = argv[1];
    all.count = (uint32_t)count;
    uv_loop_init(&loop);
    uv_signal_init(&loop, &term);
    uv_signal_start(&term, on_signal, SIGTERM);
    if (fs_read(argv[2], 4096, &all.token, NULL, &err) == 0)
        all.token[strcspn(all.token, "\r\n")] = '\0';
    if (!all.token || net_new(&loop, &limits, &net, &err) < 0 || start(&all, net, &err) < 0) {
        fprintf(stderr, "bench_agents: %s\n", err_text(&err));
        return 1;
    }
    return uv_run(&loop, UV_RUN_DEFAULT);
}
