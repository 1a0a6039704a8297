/*
 * The link. One WebSocket, dialled by the agent, kept up by trying again with growing pauses and
 * the next manager's address. Orders of another cluster or of an older epoch than any seen are
 * refused, since a lease is not a lock.
 */
#include "agent/link.h"

#include "agent/resolv.h"
#include "agent/sess.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/work.h"
#include "model/ip.h"

#define KNOWN_MAX (8 << 20)
#define PAUSE_FIRST_USEC (100 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (5 * USEC_PER_SEC)
#define SILENT_BEATS 3

struct link {
    struct ws *ws;
    bool open, welcomed;
    size_t manager; /* index of the address in use */
    char said[160]; /* why there was no link, as it was logged last */
    uint64_t pause_usec, dial_at_usec, heard_usec;
};

const char *link_manager(const struct agent *ag)
{
    return ag->config.manager[ag->link->manager];
}

int link_connect(struct agent *ag, const char *path, const struct ws_events *events, void *arg,
    struct ws **ret, struct err *err)
{
    const char *base = link_manager(ag), *rest = strstr(base, "://") + 3; /* config.c checked it */
    _cleanup_free_ char *token = NULL;
    _cleanup_free_ char *url = xasprintf("%s://%.*s%s", str_starts(base, "https:") ? "wss" : "ws",
        (int)strcspn(rest, "/"), rest, path);
    struct ws_connect_opts opts = {.url = url};
    int r = identity_for_ws(ag, &opts, &token, err);

    return r < 0 ? r : ws_connect(ag->net, &opts, events, arg, ret, err);
}

/* --- what is known of the manager --------------------------------------------------------- */

static void remember(struct agent *ag)
{
    _cleanup_free_ char *path = xasprintf("%s/manager.json", ag->config.state_dir), *text = NULL;
    _cleanup_(json_decrefp) json_t *o = json_object();
    struct err err;

    json_set_str(o, "cluster", ag->cluster);
    json_set_u64(o, "epoch", ag->seen_epoch);
    json_set_u64(o, "fence_usec", ag->fence_usec);
    json_set_strv(o, "peers", ag->node_net.peers);
    json_set_strv(o, "blocked", ag->node_net.blocked);
    text = json_text(o);
    if (fs_write_atomic(path, text, strlen(text), 0600, &err) < 0)
        log_err("%s", err_text(&err));
}

/* Strings of a list, each if it is such an address or network. */
static char **recall_list(const json_t *list, bool (*valid)(const char *))
{
    char **v = NULL;
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (json_is_string(item) && valid(json_string_value(item)))
            strv_push(&v, json_string_value(item));
    return v;
}

void link_recall(struct agent *ag)
{
    _cleanup_free_ char *path = xasprintf("%s/manager.json", ag->config.state_dir), *text = NULL;
    _cleanup_(json_decrefp) json_t *o = NULL;
    size_t len;

    if (fs_read(path, KNOWN_MAX, &text, &len, NULL) < 0 ||
        json_parse(text, len, KNOWN_MAX, &o, NULL) < 0)
        return;
    str_copy(ag->cluster, sizeof(ag->cluster), json_str_or(o, "cluster", ""));
    ag->seen_epoch = json_u64_or(o, "epoch", 0);
    ag->fence_usec = json_u64_or(o, "fence_usec", 0);
    ag->node_net.peers = recall_list(json_object_get(o, "peers"), ip_is_valid);
    ag->node_net.blocked = recall_list(json_object_get(o, "blocked"), cidr_is_valid);
}

/* When a manager was last heard, for the next agent of this boot: restarting an agent must not put
 * off the moment at which it ends its train sessions. */
static void write_contact(const struct agent *ag)
{
    _cleanup_free_ char *path = xasprintf("%s/contact", ag->config.run_dir);
    char text[24];
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)ag->contact_usec);

    fs_write(path, text, (size_t)n, 0600, NULL);
}

static void read_contact(struct agent *ag)
{
    _cleanup_free_ char *path = xasprintf("%s/contact", ag->config.run_dir), *text = NULL;
    uint64_t usec, now = clock_mono_usec();

    ag->contact_usec = now;
    if (fs_read(path, 24, &text, NULL, NULL) == 0 && str_to_u64(text, now, &usec) == 0)
        ag->contact_usec = usec;
}

/* --- out ---------------------------------------------------------------------------------- */

static void say(struct agent *ag, const struct link_message *m)
{
    _cleanup_free_ char *text = NULL;

    if (!ag->link || !ag->link->open)
        return;
    text = link_text(m);
    ws_send_text(ag->link->ws, text);
}

void link_report(struct agent *ag, const struct report *r)
{
    say(ag, &(struct link_message){.type = LINK_REPORT, .report = *r});
}

void link_session_removed(struct agent *ag, const char *session, uint32_t attempt)
{
    struct link_message m = {.type = LINK_SESSION_REMOVED, .removed.attempt = attempt};

    STR_SET(m.removed.session, session);
    say(ag, &m);
}

static void fill_held(
    struct link_session *to, const struct sess *s, const struct assigned_container *c)
{
    size_t cap = to->gpu_count;

    resources_add(&to->held, &s->a->each);
    to->gpus = xgrow(to->gpus, &cap, to->gpu_count + c->gpu_count, sizeof(*to->gpus));
    for (uint32_t i = 0; i < c->gpu_count; i++)
        to->gpus[to->gpu_count++] = c->gpus[i];
}

static void fill_session(struct link_session *to, const struct sess *s)
{
    STR_SET(to->session, s->a->session);
    to->attempt = s->a->attempt;
    to->phase = s->a->phase;
    STR_SET(to->cluster, s->a->cluster);
    to->epoch = s->a->epoch;
    STR_SET(to->incarnation, s->a->incarnation);
    to->revision = s->a->revision;
    for (uint32_t i = 0; i < s->a->container_count; i++)
        fill_held(to, s, &s->a->containers[i]);
    to->container_count = s->a->container_count;
    to->containers = xnew_array(struct report, to->container_count);
    for (uint32_t i = 0; i < to->container_count; i++)
        to->containers[i] = s->cts[i].report;
}

static void say_hello(struct agent *ag)
{
    struct link_message m = {.type = LINK_HELLO};
    struct link_hello *h = &m.hello;

    STR_SET(h->version, MUSTER_VERSION);
    STR_SET(h->node, ag->config.name);
    STR_SET(h->cluster, ag->cluster);
    h->seen_epoch = ag->seen_epoch;
    STR_SET(h->boot_id, ag->boot_id);
    h->capacity = ag->capacity;
    h->gpus = xmemdup(ag->gpus, ag->gpu_count * sizeof(*ag->gpus));
    STR_SET(h->addr_mgmt, ag->config.addr_mgmt);
    STR_SET(h->addr_fabric, ag->config.addr_fabric);
    h->fabric_mtu = MIN_OF(ag->node_net.fabric_mtu, UINT16_MAX); /* that of lo is more */
    h->inventory = xnew_array(struct link_session, map_count(&ag->sessions));
    map_for_each (e, &ag->sessions)
        fill_session(&h->inventory[h->inventory_count++], e->value);
    say(ag, &m);
    link_message_done(&m);
}

/* --- in ----------------------------------------------------------------------------------- */

struct net_job {
    struct node_net *net;
};

static int net_job_run(void *arg, struct err *err)
{
    return node_net_setup(((struct net_job *)arg)->net, err);
}

static void net_job_done(void *arg, int result, const struct err *err)
{
    if (result < 0)
        log_err("network of the node: %s", err_text(err));
    free(arg);
}

static bool strv_same(char *const *a, char *const *b)
{
    size_t n = strv_len(a);

    if (strv_len(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return true;
}

/* Old lists are left to threads that may be reading them: they change when nodes come and go. */
static bool take_addresses(struct agent *ag, const struct link_welcome *w)
{
    struct net_job *j;

    if (strv_same(ag->node_net.peers, w->peers) && strv_same(ag->node_net.blocked, w->blocked))
        return false;
    ag->node_net.peers = strv_copy(w->peers);
    ag->node_net.blocked = strv_copy(w->blocked);
    j = xnew(struct net_job);
    j->net = &ag->node_net;
    work_start(ag->loop, net_job_run, net_job_done, j);
    resolv_check(w->blocked);
    return true;
}

static bool is_ours(struct agent *ag, const char *cluster, uint64_t epoch)
{
    if (str_eq(cluster, ag->cluster) && epoch >= ag->seen_epoch)
        return true;
    log_warning("order of cluster %s, epoch %llu refused: the last known is %s, %llu", cluster,
        (unsigned long long)epoch, ag->cluster, (unsigned long long)ag->seen_epoch);
    return false;
}

static void take_welcome(struct agent *ag, const struct link_welcome *w)
{
    bool addresses;

    if (str_eq(w->cluster, ag->cluster) && w->epoch < ag->seen_epoch) {
        log_warning("a manager of an older epoch (%llu, seen %llu) was refused",
            (unsigned long long)w->epoch, (unsigned long long)ag->seen_epoch);
        ws_close(ag->link->ws, 1008, "older epoch");
        return;
    }
    addresses = take_addresses(ag, w);
    if (!str_eq(w->cluster, ag->cluster) || w->epoch != ag->seen_epoch ||
        w->fence_usec != ag->fence_usec || addresses) {
        STR_SET(ag->cluster, w->cluster);
        ag->seen_epoch = w->epoch;
        ag->fence_usec = w->fence_usec;
        remember(ag);
    }
    ag->heartbeat_usec = w->heartbeat_usec;
    if (!ag->link->welcomed)
        log_info("joined cluster %s, epoch %llu, as %s", w->cluster, (unsigned long long)w->epoch,
            ag->config.name);
    ag->link->welcomed = true;
    ag->link->pause_usec = PAUSE_FIRST_USEC;
    ag->fenced = false;
}

static void dispatch(struct agent *ag, struct link_message *m)
{
    struct link_message pong = {.type = LINK_PONG};

    switch (m->type) {
    case LINK_WELCOME:
        take_welcome(ag, &m->welcome);
        break;
    case LINK_PING:
        write_contact(ag);
        pong.ping = m->ping;
        say(ag, &pong);
        break;
    case LINK_ASSIGN:
        if (is_ours(ag, m->assignment->cluster, m->assignment->epoch))
            sess_assign(ag, TAKE_PTR(m->assignment));
        break;
    case LINK_REMOVE:
        if (is_ours(ag, m->order.cluster, m->order.epoch))
            sess_remove(ag, m->order.session);
        break;
    case LINK_QUARANTINE:
        if (is_ours(ag, m->order.cluster, m->order.epoch))
            sess_quarantine(ag, m->order.session);
        break;
    case LINK_OPEN_STREAM:
        stream_open(ag, &m->stream);
        break;
    default:
        break;
    }
}

static void on_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct agent *ag = arg;
    struct link_message *m = NULL;
    struct err err = ERR_INIT;

    ag->link->heard_usec = ag->contact_usec = clock_mono_usec();
    if (binary || link_parse(data, len, LINK_MANAGER, &m, &err) < 0) {
        log_err("the manager's message was not understood: %s", err_text(&err));
        return;
    }
    dispatch(ag, m);
    link_message_free(m);
}

/* --- the connection ----------------------------------------------------------------------- */

static void on_open(struct ws *ws, void *arg)
{
    struct agent *ag = arg;

    ag->link->open = true;
    ag->link->heard_usec = clock_mono_usec();
    say_hello(ag);
}

/* Once for each reason: it is tried again every few seconds. */
static void say_closed(struct agent *ag, unsigned code, const char *text)
{
    struct link *l = ag->link;
    char why[sizeof(l->said)];

    if (code == 401 || code == 403)
        text = "it does not take this node: it was removed, or its certificate revoked; join again "
               "('muster node add'), or see the agents' token";
    snprintf(why, sizeof(why), "%u%s%s", code, text[0] ? ": " : "", text);
    if (l->open || !str_eq(why, l->said))
        log_warning("no link to the manager at %s (%s); trying again", link_manager(ag), why);
    STR_SET(l->said, why);
}

static void on_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct agent *ag = arg;
    struct link *l = ag->link;

    if (!l) /* link_stop was called */
        return;
    say_closed(ag, status ? status : code, text);
    l->ws = NULL;
    l->open = l->welcomed = false;
    l->dial_at_usec = clock_mono_usec() + l->pause_usec;
    l->pause_usec = MIN_OF(l->pause_usec * 2, PAUSE_MAX_USEC);
    l->manager = (l->manager + 1) % strv_len(ag->config.manager);
}

static const struct ws_events link_events = {
    .opened = on_open,
    .message = on_message,
    .closed = on_closed,
};

static void dial(struct agent *ag)
{
    struct link *l = ag->link;
    struct err err = ERR_INIT;

    l->dial_at_usec = 0;
    if (link_connect(ag, "/v1/agent/link", &link_events, ag, &l->ws, &err) == 0)
        return;
    log_err("%s", err_text(&err));
    l->ws = NULL;
    l->dial_at_usec = clock_mono_usec() + PAUSE_MAX_USEC;
}

void link_start(struct agent *ag)
{
    ag->link = xnew(struct link);
    ag->link->pause_usec = PAUSE_FIRST_USEC;
    read_contact(ag);
    if (!ag->heartbeat_usec)
        ag->heartbeat_usec = 5 * USEC_PER_SEC;
    dial(ag);
}

void link_stop(struct agent *ag)
{
    struct link *l = TAKE_PTR(ag->link);

    if (l && l->ws)
        ws_close(l->ws, 1001, "the agent stops");
    free(l);
}

void link_tick(struct agent *ag, uint64_t now_usec)
{
    struct link *l = ag->link;

    if (l->dial_at_usec && now_usec >= l->dial_at_usec) {
        dial(ag);
    } else if (l->open && now_usec > l->heard_usec + SILENT_BEATS * ag->heartbeat_usec) {
        l->heard_usec = now_usec;
        ws_close(l->ws, 1001, "the manager is silent");
    }
    if (!l->open && ag->fence_usec && now_usec > ag->contact_usec + ag->fence_usec && !ag->fenced) {
        log_warning("cut off from every manager for too long: train sessions are ended");
        ag->fenced = true;
        sess_fence(ag);
    }
}
