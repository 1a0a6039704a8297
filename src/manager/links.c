/*
 * Links of agents. A hello is answered by welcome and by every order that concerns the node, so
 * that nothing depends on what an earlier connection managed to say. A node takes work again only
 * when it has removed what it should not have.
 *
 * What the store does not know is removed when it belongs to this store's history (epoch.h), and
 * quarantined otherwise.
 */
#include "manager/links.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/epoch.h"
#include "manager/joins.h"
#include "manager/launch.h"
#include "manager/overlay.h"
#include "manager/settings.h"
#include "manager/state.h"

#define SILENT_BEATS 3

struct link {
    struct manager *m;
    struct mnode *n; /* NULL before hello */
    struct ws *ws;
    char as[NAME_MAX_LEN + 1]; /* the node that its certificate is for; "": it has the token */
    bool over;                 /* being closed: what still comes is not heard */
    uint64_t heard_usec, pinged_usec; /* monotonic */
    uint64_t seq;
};

static void link_say(struct link *l, const struct link_message *message)
{
    _cleanup_free_ char *text = link_text(message);

    ws_send_text(l->ws, text);
}

void link_send(struct mnode *n, const struct link_message *message)
{
    if (n->link)
        link_say(n->link, message);
}

/* --- welcome ------------------------------------------------------------------------------ */

/* An address as the CIDR of itself alone. */
static void block_address(char ***blocked, const char *address)
{
    strv_pushf(blocked, "%s/%d", address, strchr(address, ':') ? 128 : 32);
}

static void welcome(struct link *l)
{
    struct manager *m = l->m;
    struct link_message msg = {.type = LINK_WELCOME};
    struct link_welcome *w = &msg.welcome;

    STR_SET(w->cluster, m->cluster);
    w->epoch = m->epoch;
    w->heartbeat_usec = m->config.heartbeat_usec;
    w->fence_usec = m->config.fence_usec;
    w->blocked = strv_copy(m->config.blocked);
    overlay_block(m, &w->blocked);
    map_for_each (e, &m->nodes) {
        const struct mnode *n = e->value;
        if (!n->node.addr_mgmt[0]) /* has joined, and was not heard yet */
            continue;
        strv_push(&w->peers, n->node.addr_fabric);
        block_address(&w->blocked, n->node.addr_mgmt);
        if (!str_eq(n->node.addr_fabric, n->node.addr_mgmt))
            block_address(&w->blocked, n->node.addr_fabric);
    }
    link_say(l, &msg);
    strv_free(w->peers);
    strv_free(w->blocked);
}

static void tell_peers_now(void *arg)
{
    struct manager *m = arg;

    map_for_each (e, &m->nodes) {
        struct mnode *n = e->value;
        if (n->link)
            welcome(n->link);
    }
}

void links_tell_peers(struct manager *m)
{
    store_after(m->store, tell_peers_now, m);
}

/* --- node states -------------------------------------------------------------------------- */

static void node_set(struct manager *m, struct mnode *n, enum node_state state)
{
    char event[32];
    struct err err;

    if (n->node.state == state)
        return;
    if (node_state_move(&n->node.state, state, &err) < 0) {
        log_err("node %s: %s", n->node.name, err_text(&err));
        return;
    }
    snprintf(event, sizeof(event), "node.%s", node_state_name(state));
    log_info("node %s: %s", n->node.name, node_state_name(state));
    node_save(m, n, event);
    launch_node_reachable(m, n);
    pass_want(m);
}

static void up_if_clean(struct manager *m, struct mnode *n)
{
    if (n->link && map_count(&n->cleaning) == 0)
        node_set(m, n, NODE_UP);
}

bool node_has_kind(struct manager *m, const struct mnode *n, enum session_kind kind)
{
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        for (uint32_t i = 0; s->kind == kind && i < s->size; i++)
            if (str_eq(s->containers[i].node, n->node.name) && container_holds(&s->containers[i]))
                return true;
    }
    return false;
}

void node_declare_lost(struct manager *m, struct mnode *n, const char *why)
{
    log_warning("node %s: given up: %s", n->node.name, why);
    node_set(m, n, NODE_LOST);
    launch_node_lost(m, n, why);
}

static void end(struct link *l, const char *why)
{
    l->over = true;
    ws_close(l->ws, 1008, why);
}

void links_drop(struct manager *m, struct mnode *n, const char *why)
{
    struct link *l = TAKE_PTR(n->link);

    if (!l)
        return;
    log_warning("node %s: its link is closed: %s", n->node.name, why);
    l->n = NULL;
    end(l, why);
    if (n->node.state == NODE_UP)
        node_set(m, n, NODE_UNREACHABLE);
}

/* --- hello -------------------------------------------------------------------------------- */

/* An agent has heard of a later epoch than this store: it was restored from a copy. Go beyond, so
 * that our orders count. */
static void go_beyond(struct manager *m, const struct link_hello *h)
{
    struct err err = ERR_INIT;

    if (!str_eq(h->cluster, m->cluster) || h->seen_epoch <= m->epoch)
        return;
    log_warning("node %s has seen epoch %llu, the store says %llu: the store was restored", h->node,
        (unsigned long long)h->seen_epoch, (unsigned long long)m->epoch);
    if (epoch_begin(m, h->seen_epoch + 1, &err) < 0)
        log_err("%s", err_text(&err));
}

static void take_hello(struct manager *m, struct mnode *n, struct link_hello *h)
{
    struct node *node = &n->node;

    free(node->gpus);
    node->gpus = TAKE_PTR(h->gpus);
    node->capacity = h->capacity;
    STR_SET(node->addr_mgmt, h->addr_mgmt);
    STR_SET(node->addr_fabric, h->addr_fabric);
    node->fabric_mtu = h->fabric_mtu;
    STR_SET(node->boot_id, h->boot_id);
    STR_SET(node->version, h->version);
    node->seen_usec = clock_real_usec();
    settings_place_node(m, node);
}

struct mnode *node_for(struct manager *m, const char *name)
{
    struct mnode *n = map_get(&m->nodes, name);

    if (n)
        return n;
    n = xnew(struct mnode);
    STR_SET(n->node.name, name);
    STR_SET(n->node.group, "default");
    n->node.state = NODE_UNREACHABLE;
    map_init(&n->cleaning);
    map_init(&n->quarantined);
    map_set(&m->nodes, name, n);
    log_info("node %s: new", name);
    return n;
}

static bool is_on(const struct session *s, const struct mnode *n)
{
    for (uint32_t i = 0; i < s->size; i++)
        if (str_eq(s->containers[i].node, n->node.name) && container_holds(&s->containers[i]))
            return true;
    return false;
}

static void order(struct link *l, enum link_type type, const char *session)
{
    struct link_message msg = {.type = type};

    STR_SET(msg.order.cluster, l->m->cluster);
    msg.order.epoch = l->m->epoch;
    STR_SET(msg.order.session, session);
    link_say(l, &msg);
}

static void quarantine(struct mnode *n, const struct link_session *has)
{
    struct sched_withheld *h = xnew(struct sched_withheld);

    h->sum = has->held;
    for (uint32_t i = 0; i < has->gpu_count; i++)
        h->gpus |= UINT64_C(1) << has->gpus[i];
    free(map_set(&n->quarantined, has->session, h));
}

/* What the node has. */
static void reconcile_one(struct link *l, const struct link_session *has)
{
    struct manager *m = l->m;
    struct mnode *n = l->n;
    struct session *s = map_get(&m->sessions, has->session);

    if (s && s->attempt == has->attempt && is_on(s, n)) {
        for (uint32_t i = 0; i < has->container_count; i++)
            launch_report(m, n, &has->containers[i]);
        return;
    }
    if (epoch_is_ours(m, has->cluster, has->epoch, has->incarnation, has->revision)) {
        map_set(&n->cleaning, has->session, n);
        order(l, LINK_REMOVE, has->session);
        return;
    }
    log_warning(
        "node %s: session %s is unknown here and was not made under this store; quarantined",
        n->node.name, has->session);
    quarantine(n, has);
    order(l, LINK_QUARANTINE, has->session);
}

static bool in_inventory(const struct link_hello *h, const struct session *s)
{
    for (uint32_t i = 0; i < h->inventory_count; i++)
        if (str_eq(h->inventory[i].session, s->id) && h->inventory[i].attempt == s->attempt)
            return true;
    return false;
}

/* What it should have; why: it may not have it. */
static void reconcile_missing(
    struct link *l, const struct link_hello *h, struct session *s, const char *why)
{
    char id[UUID_TEXT_LEN + 1];

    if (!is_on(s, l->n))
        return;
    if (in_inventory(h, s) || s->state == SESSION_PREPARING) {
        launch_tell(l->m, s); /* a start is simply ordered again */
        return;
    }
    STR_SET(id, s->id);
    launch_removed(l->m, l->n, id, s->attempt, why);
}

void node_purge(struct manager *m, struct mnode *n)
{
    /* What they hold is free when the agent says that they are gone: launch_removed. */
    map_for_each (e, &n->quarantined)
        order(n->link, LINK_REMOVE, e->key);
}

/*
 * Another machine under this node's name, by a mistake in its configuration: what runs on the right
 * one would be taken for gone. A node that moved to another address is let in when its old link is
 * given up, unless it was booted anew meanwhile and sessions are held there.
 */
static const char *why_not(struct link *l, const struct mnode *n, const struct link_hello *h)
{
    if (!n)
        return l->as[0] ? "its certificate is another node's"
                        : "the node of that name has a certificate, and this agent shows none";
    if (!n->node.addr_mgmt[0] || str_eq(n->node.addr_mgmt, h->addr_mgmt))
        return NULL;
    if (n->link && n->link != l)
        return "a node of that name is connected from another address";
    if (!str_eq(n->node.boot_id, h->boot_id) &&
        (node_has_kind(l->m, n, KIND_TRAIN) || node_has_kind(l->m, n, KIND_DEBUG)))
        return "a node of that name with sessions had another address; see 'muster node lost'";
    return NULL;
}

static void hello(struct link *l, struct link_hello *h)
{
    struct manager *m = l->m;
    struct mnode *n = joins_speaks_for(m, l->as, h->node) ? node_for(m, h->node) : NULL;
    const char *missing, *refused = why_not(l, n, h);

    if (refused) {
        log_warning("an agent at %s that calls itself '%s' was refused: %s (%s)", h->addr_mgmt,
            h->node, refused, n ? n->node.addr_mgmt : l->as);
        end(l, refused);
        return;
    }
    if (n->link && n->link != l) {
        log_warning("node %s: connected a second time; the older connection is dropped", h->node);
        n->link->n = NULL;
        end(n->link, "this node connected again");
    }
    go_beyond(m, h);
    l->n = n;
    n->link = l;
    missing = n->node.boot_id[0] && !str_eq(n->node.boot_id, h->boot_id)
        ? "the node was rebooted"
        : "the node came back without it";
    take_hello(m, n, h);
    map_done(&n->cleaning, NULL);
    map_init(&n->cleaning);
    map_done(&n->quarantined, free);
    map_init(&n->quarantined);
    welcome(l);
    for (uint32_t i = 0; i < h->inventory_count; i++)
        reconcile_one(l, &h->inventory[i]);
    map_for_each (e, &m->sessions)
        reconcile_missing(l, h, e->value, missing);
    node_save(m, n, "node.hello");
    up_if_clean(m, n);
    links_tell_peers(m);
}

/* --- messages ----------------------------------------------------------------------------- */

static void dispatch(struct link *l, struct link_message *msg)
{
    if (msg->type == LINK_HELLO) {
        hello(l, &msg->hello);
        return;
    }
    if (!l->n) {
        ws_close(l->ws, 1008, "say hello first");
        return;
    }
    l->n->node.seen_usec = clock_real_usec();
    if (msg->type == LINK_REPORT) {
        launch_report(l->m, l->n, &msg->report);
    } else if (msg->type == LINK_SESSION_REMOVED) {
        launch_removed(l->m, l->n, msg->removed.session, msg->removed.attempt,
            "the node does not have it any more");
        up_if_clean(l->m, l->n);
    }
}

static void link_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct link *l = arg;
    struct link_message *msg = NULL;
    struct err err = ERR_INIT;

    if (l->over)
        return;
    l->heard_usec = clock_mono_usec();
    if (binary || link_parse(data, len, LINK_AGENT, &msg, &err) < 0) {
        log_warning("link of node %s: %s", l->n ? l->n->node.name : "(no hello yet)",
            binary ? "a binary message" : err_text(&err));
        ws_close(ws, 1008, "malformed message");
        return;
    }
    dispatch(l, msg);
    link_message_free(msg);
}

static void link_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct link *l = arg;

    if (l->n && l->n->link == l) {
        l->n->link = NULL;
        if (!l->m->closing) {
            log_warning("node %s: link closed (%u %s)", l->n->node.name, code, text);
            if (l->n->node.state == NODE_UP)
                node_set(l->m, l->n, NODE_UNREACHABLE);
        }
    }
    free(l);
}

static const struct ws_events link_events = {
    .message = link_message,
    .closed = link_closed,
};

void api_agent_link(struct call *c)
{
    struct link *l = xnew(struct link);
    struct request *rq;

    l->m = c->m;
    STR_SET(l->as, c->node);
    l->heard_usec = clock_mono_usec();
    rq = call_take_request(c);
    if (rq)
        l->ws = request_upgrade(rq, &link_events, l);
    if (!l->ws)
        free(l);
}

/* --- the clock ---------------------------------------------------------------------------- */

static void link_tick(struct link *l)
{
    uint64_t now = clock_mono_usec(), beat = l->m->config.heartbeat_usec;
    struct link_message ping = {.type = LINK_PING};

    if (now > l->heard_usec + SILENT_BEATS * beat) {
        ws_close(l->ws, 1001, "silent for too long");
        l->heard_usec = now;
        return;
    }
    if (now < l->pinged_usec + beat)
        return;
    l->pinged_usec = now;
    ping.ping.seq = ++l->seq;
    link_say(l, &ping);
}

/* The certificate was good when the link was made. */
static bool has_run_out(const struct manager *m, const struct link *l, uint64_t now_usec)
{
    const struct identity *id = map_get(&m->identities, l->as);

    return l->as[0] && (!id || now_usec > id->until_usec);
}

void links_tick(struct manager *m, uint64_t now_usec)
{
    map_for_each (e, &m->nodes) {
        struct mnode *n = e->value;
        if (n->link && has_run_out(m, n->link, now_usec)) {
            links_drop(m, n, "its certificate has run out");
        } else if (n->link) {
            link_tick(n->link);
        } else if (n->node.state == NODE_UNREACHABLE &&
            now_usec > n->node.seen_usec + m->config.lost_usec &&
            (node_has_kind(m, n, KIND_TRAIN) && !node_has_kind(m, n, KIND_DEBUG))) {
            char text[96], away[DURATION_TEXT_MAX];
            snprintf(text, sizeof(text), "the node was unreachable for more than %s",
                duration_format(m->config.lost_usec, away));
            node_declare_lost(m, n, text);
        }
    }
}
