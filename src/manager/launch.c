/*
 * A session's way from placed to ended. Holds no state of its own: what was ordered is in the
 * session, and what the agents report decides the next step. Rules kept here:
 *
 * - the barrier is ordered only when every container is ready, and the order is durable before an
 *   agent hears of it (STARTING), so a command is started at most once;
 * - before STARTING a failure of the machines sends the session back to pending, at most
 *   launch.attempts times; from STARTING on nothing is retried;
 * - resources are free only when the agent said that nothing is left, or its node is lost.
 */
#include "manager/launch.h"

#include <arpa/inet.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/accounts.h"
#include "manager/depends.h"
#include "manager/links.h"
#include "manager/overlay.h"
#include "manager/state.h"

#define LEASE_LOOK_USEC (2 * USEC_PER_SEC) /* does somebody wait by now? */
#define STOP_MARGIN_USEC (60 * USEC_PER_SEC)

/* --- telling the nodes -------------------------------------------------------------------- */

static enum phase phase_of(const struct session *s)
{
    switch (s->state) {
    case SESSION_PREPARING:
        return PHASE_PREPARE;
    case SESSION_STARTING:
    case SESSION_RUNNING:
        return PHASE_RUN;
    default:
        return PHASE_STOP;
    }
}

static void fill_peers(struct manager *m, struct assignment *a, const struct session *s)
{
    bool several = false;

    a->peer_count = s->size;
    a->peers = xnew_array(struct assigned_peer, s->size);
    for (uint32_t i = 0; i < s->size; i++) {
        const struct container *c = &s->containers[i];
        const struct mnode *n = map_get(&m->nodes, c->node);
        STR_SET(a->peers[i].name, c->name);
        STR_SET(a->peers[i].node, c->node);
        STR_SET(a->peers[i].fabric, n ? n->node.addr_fabric : "");
        a->peers[i].ip = c->ip;
        several |= !str_eq(c->node, s->containers[0].node);
    }
    a->vni = several ? s->vni : 0;
}

static void fill_mounts(struct manager *m, struct assignment *a, const struct session *s)
{
    a->mounts = xnew_array(struct assigned_mount, s->mount_count);
    for (uint32_t i = 0; i < s->mount_count; i++) {
        const struct volume *v = volume_find(m, s->owner, s->mounts[i].volume);
        struct assigned_mount *to = &a->mounts[a->mount_count++];
        to->source = v
            ? volume_path(m, v)
            : xasprintf("%s/%s/%s", m->config.volumes_dir, s->owner, s->mounts[i].volume);
        to->target = xstrdup(s->mounts[i].path);
        to->read_only = s->mounts[i].read_only;
    }
}

static const struct image *image_of(struct manager *m, const struct session *s)
{
    map_for_each (e, &m->images) {
        const struct image *i = e->value;
        if (str_eq(i->id, s->image_id))
            return i;
    }
    return NULL;
}

static void fill_image(struct assignment *a, const struct image *i)
{
    a->stop_signal = i->stop_signal ? i->stop_signal : 15;
    a->layer_count = i->layer_count;
    a->layers = xmemdup(i->layers, i->layer_count * sizeof(*i->layers));
    if (!a->workdir[0])
        STR_SET(a->workdir, i->workdir);
}

static void fill_container(struct assignment *a, const struct session *s, const struct container *c,
    const struct image *image)
{
    struct assigned_container *to = &a->containers[a->container_count++];

    STR_SET(to->id, c->id);
    STR_SET(to->name, c->name);
    to->rank = c->rank;
    to->gpu_count = c->gpu_count;
    to->gpus = xmemdup(c->gpus, c->gpu_count * sizeof(*c->gpus));
    to->env = session_environment(s, c, image ? image->env : NULL, NULL);
    if (image && (s->on == ON_ALL || container_is_main(c)))
        image_command(image, s->command, s->kind == KIND_TRAIN, &to->command, NULL);
}

struct assignment *launch_assignment(
    struct manager *m, const struct session *s, const struct mnode *n)
{
    const struct user *user = map_get(&m->users, s->owner);
    const struct image *image = image_of(m, s);
    struct assignment *a = xnew(struct assignment);

    STR_SET(a->cluster, m->cluster);
    a->epoch = m->epoch;
    STR_SET(a->incarnation, m->incarnation);
    a->revision = store_revision(m->store);
    STR_SET(a->boot_id, n->node.boot_id);
    STR_SET(a->session, s->id);
    a->num = s->num;
    a->attempt = s->attempt;
    a->phase = phase_of(s);
    if (a->phase == PHASE_STOP)
        STR_SET(a->stop_reason, s->reason);
    a->kill_now = s->stop_now;
    if (user)
        a->user = *user;
    a->kind = s->kind;
    a->each = s->each;
    a->shm = s->shm;
    a->grace_usec = session_grace(s);
    a->stop_signal = 15;
    STR_SET(a->workdir, s->workdir);
    STR_SET(a->image_id, s->image_id);
    fill_mounts(m, a, s);
    if (image)
        fill_image(a, image);
    a->subnet = s->subnet;
    fill_peers(m, a, s);
    a->ssh_private = xstrdup(s->ssh_private);
    a->ssh_public = xstrdup(s->ssh_public);
    a->ssh_host_private = xstrdup(s->ssh_host_private);
    a->ssh_host_public = xstrdup(s->ssh_host_public);
    a->hosts = session_hosts(s);
    a->hostfile = session_hostfile(s);
    a->containers = xnew_array(struct assigned_container, s->size);
    for (uint32_t i = 0; i < s->size; i++)
        if (str_eq(s->containers[i].node, n->node.name))
            fill_container(a, s, &s->containers[i], image);
    return a;
}

static void tell_node(struct manager *m, const struct session *s, struct mnode *n)
{
    struct assignment *a = launch_assignment(m, s, n);

    link_send(n, &(struct link_message){.type = LINK_ASSIGN, .assignment = a});
    assignment_free(a);
}

static bool on_node(const struct session *s, const struct mnode *n)
{
    for (uint32_t i = 0; i < s->size; i++)
        if (str_eq(s->containers[i].node, n->node.name) && container_holds(&s->containers[i]))
            return true;
    return false;
}

/* Durable, and nobody was told yet. */
static void crash_before_telling(const struct session *s)
{
    if (s->state == SESSION_PREPARING)
        crash_point("place.after_commit", NULL);
    else if (s->state == SESSION_STARTING)
        crash_point("barrier.after_commit", NULL);
    else if (s->state == SESSION_STOPPING)
        crash_point("stop.after_commit", NULL);
}

static void tell_dirty(void *arg)
{
    struct manager *m = arg;

    map_for_each (d, &m->dirty) {
        const struct session *s = map_get(&m->sessions, d->key);
        if (!s || s->state == SESSION_PENDING)
            continue;
        crash_before_telling(s);
        map_for_each (e, &m->nodes) {
            struct mnode *n = e->value;
            if (n->link && on_node(s, n))
                tell_node(m, s, n);
        }
    }
    map_done(&m->dirty, NULL);
    map_init(&m->dirty);
}

void launch_tell(struct manager *m, const struct session *s)
{
    if (map_count(&m->dirty) == 0)
        store_after(m->store, tell_dirty, m);
    map_set(&m->dirty, s->id, m);
}

/* --- moving ------------------------------------------------------------------------------- */

static void move(struct manager *m, struct session *s, enum session_state next, uint64_t deadline)
{
    struct err err;
    int r = session_state_move(s, next, clock_real_usec(), &err);

    assert(r == 0);
    s->deadline_usec = deadline;
    log_info("session %s (%llu): %s%s%s", s->id, (unsigned long long)s->num,
        session_state_name(s->state), s->reason[0] ? ": " : "", s->reason);
}

static void set_reason(struct session *s, const char *code, const char *fmt, va_list ap)
{
    str_copy(s->reason_code, sizeof(s->reason_code), code);
    vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
}

uint64_t launch_last_start(const struct session *s)
{
    return s->finish_usec > s->time_limit_usec ? s->finish_usec - s->time_limit_usec
                                               : s->finish_usec;
}

void launch_placed(struct manager *m, struct session *s)
{
    uint64_t now = clock_real_usec();

    s->attempt++;
    s->placed_usec = now;
    s->claimed_usec = 0;
    STR_SET(s->reason_code, "");
    STR_SET(s->reason, "");
    move(m, s, SESSION_PREPARING, now + m->config.prepare_usec);
    session_save(m, s);
    launch_tell(m, s);
}

static void end(struct manager *m, struct session *s)
{
    move(m, s, SESSION_ENDED, 0);
    s->ended_usec = s->state_usec;
    estimator_learn(&m->estimator, s);
    account_charge(m, s, s->ended_usec);
    session_save(m, s);
    depends_ended(m);
    session_forget(m, s);
    session_free(s);
    pass_want(m);
}

/* Everything of this attempt is removed: wait again. */
static void wait_again(struct manager *m, struct session *s)
{
    account_charge(m, s, clock_real_usec());
    for (uint32_t i = 0; i < s->size; i++) {
        struct container *c = &s->containers[i];
        container_state_move(&c->state, CONTAINER_WAITING, NULL);
        c->node[0] = '\0';
        c->gpu_count = 0;
        c->ip = 0;
        c->end = END_NONE;
        c->exit_code = 0;
        c->started_usec = c->ended_usec = 0;
    }
    s->placed_usec = 0;
    overlay_free(m, s);
    s->stop_now = false;
    s->leaves_for = s->preempt_at_usec = 0;
    move(m, s, SESSION_PENDING, launch_last_start(s));
    session_save(m, s);
    pass_want(m);
}

/* It was asked for: the only way in which what a user's command did is done again. */
static void try_again(struct manager *m, struct session *s)
{
    s->retried++;
    log_info("session %s (%llu): %s (%s); tried again, %u of %u", s->id, (unsigned long long)s->num,
        session_result_name(s->result), s->reason, s->retried, s->retry_max);
    s->result = RESULT_NONE;
    s->exit_code = 0;
    s->started_usec = 0;
    wait_again(m, s);
}

static void finish_if_removed(struct manager *m, struct session *s)
{
    if (s->state != SESSION_STOPPING)
        return;
    for (uint32_t i = 0; i < s->size; i++)
        if (container_holds(&s->containers[i]))
            return;
    if (session_tries_again(s))
        try_again(m, s);
    else if (s->result == RESULT_NONE)
        wait_again(m, s);
    else
        end(m, s);
}

static void stop_va(struct manager *m, struct session *s, enum session_result result,
    const char *code, bool now, const char *fmt, va_list ap)
{
    if (s->state == SESSION_STOPPING) {
        /* The first reason stays, but somebody's cancel ends a start that would be tried again. */
        if (s->result == RESULT_NONE && result != RESULT_NONE) {
            s->result = result;
            set_reason(s, code, fmt, ap);
        }
        s->stop_now |= now;
        session_save(m, s);
        launch_tell(m, s);
        return;
    }
    s->result = result;
    set_reason(s, code, fmt, ap);
    if (s->state == SESSION_PENDING) {
        end(m, s);
        return;
    }
    s->stop_now |= now;
    move(m, s, SESSION_STOPPING, clock_real_usec() + session_grace(s) + STOP_MARGIN_USEC);
    session_save(m, s);
    launch_tell(m, s);
    finish_if_removed(m, s);
}

void launch_stop(struct manager *m, struct session *s, enum session_result result, const char *code,
    bool now, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    stop_va(m, s, result, code, now, fmt, ap);
    va_end(ap);
}

/* Its scheduler has chosen it: it has the cluster's grace to leave, whatever its own is. */
void launch_preempt(struct manager *m, struct session *s, const struct session *for_whom)
{
    char until[CLOCK_TEXT_MAX];

    s->leaves_for = for_whom->num;
    s->preempt_at_usec = clock_real_usec() + m->sched.options.preempt.grace_usec;
    log_info("session %s (%llu): leaves for session %llu", s->id, (unsigned long long)s->num,
        (unsigned long long)for_whom->num);
    launch_stop(m, s, s->requeue ? RESULT_NONE : RESULT_PREEMPTED, "preempted", false,
        "it borrows what session %llu (%s%s%s) has a right to, and leaves by %s",
        (unsigned long long)for_whom->num, for_whom->owner, for_whom->account[0] ? " for " : "",
        for_whom->account, clock_format(s->preempt_at_usec, until));
}

/* A start that failed for the machines' reasons, before any command ran. */
static void start_failed(struct manager *m, struct session *s, const char *code, const char *why)
{
    if (s->attempt < m->config.start_attempts)
        launch_stop(m, s, RESULT_NONE, code, true, "start %u failed, will be tried again: %s",
            s->attempt, why);
    else
        launch_stop(
            m, s, RESULT_FAILED, code, true, "%u starts failed; the last: %s", s->attempt, why);
}

/* --- what agents report ------------------------------------------------------------------- */

static int session_exit_code(const struct container *c)
{
    switch (c->end) {
    case END_EXIT:
        return c->exit_code;
    case END_SIGNAL:
        return 128 + c->exit_code;
    case END_OOM:
        return 137;
    case END_START_FAILED:
        return c->exit_code ? c->exit_code : 127;
    default:
        return 1;
    }
}

static bool runs_command(
    const struct manager *m, const struct session *s, const struct container *c)
{
    return s->has_command && (s->on == ON_ALL || container_is_main(c));
}

static bool ended_well(const struct manager *m, const struct session *s, const struct container *c)
{
    return runs_command(m, s, c) && c->end == END_EXIT && c->exit_code == 0;
}

static const char *end_code(const struct container *c)
{
    switch (c->end) {
    case END_OOM:
        return "out_of_memory";
    case END_SIGNAL:
        return "killed";
    case END_START_FAILED:
        return "command_failed_to_start";
    case END_MONITOR_LOST:
        return "monitor_lost";
    case END_NODE_LOST:
        return "node_lost";
    default:
        return "exited";
    }
}

/* A container has died while the session ran (or was about to). True when that ends the session,
 * which may be gone then: with nothing left to remove it is over at once. */
static bool container_died(struct manager *m, struct session *s, const struct container *c)
{
    char what[320];

    if (s->on_failure == FAIL_TOLERANT && !container_is_main(c))
        return false;
    s->exit_code = session_exit_code(c);
    container_end_describe(c, what, sizeof(what));
    launch_stop(m, s, c->end == END_NODE_LOST ? RESULT_LOST : RESULT_FAILED, end_code(c), false,
        "%s %s", c->name, what);
    return true;
}

static void check_ends(struct manager *m, struct session *s)
{
    uint32_t commands = 0, done = 0;

    for (uint32_t i = 0; i < s->size; i++) {
        const struct container *c = &s->containers[i];
        bool over = c->state == CONTAINER_EXITED || c->state == CONTAINER_REMOVED;
        commands += runs_command(m, s, c);
        if (!over)
            continue;
        if (ended_well(m, s, c)) {
            done++;
            continue;
        }
        if (container_died(m, s, c))
            return;
        done += runs_command(m, s, c); /* tolerated */
    }
    if (commands > 0 && done == commands)
        launch_stop(m, s, RESULT_SUCCEEDED, "done", false, "%s",
            commands == 1 ? "the command ended" : "the commands ended");
}

static bool all_in(const struct session *s, enum container_state at_least)
{
    for (uint32_t i = 0; i < s->size; i++)
        if (s->containers[i].state < at_least)
            return false;
    return true;
}

static void progress_preparing(struct manager *m, struct session *s)
{
    for (uint32_t i = 0; i < s->size; i++) {
        const struct container *c = &s->containers[i];
        if (c->state == CONTAINER_EXITED || c->state == CONTAINER_REMOVED) {
            char why[480], what[320];
            snprintf(why, sizeof(why), "%s on %s %s", c->name, c->node,
                container_end_describe(c, what, sizeof(what)));
            start_failed(m, s, "start_failed", why);
            return;
        }
    }
    if (!all_in(s, CONTAINER_READY))
        return;
    move(m, s, SESSION_STARTING, clock_real_usec() + m->config.start_usec);
    session_save(m, s);
    launch_tell(m, s);
}

static void progress_starting(struct manager *m, struct session *s)
{
    uint64_t limit;

    if (!all_in(s, CONTAINER_RUNNING))
        return;
    s->started_usec = clock_real_usec();
    limit = session_may_run(s, s->started_usec);
    move(m, s, SESSION_RUNNING, limit == UINT64_MAX ? 0 : s->started_usec + limit);
    m->depends_wanted = true;
    session_save(m, s);
}

/* s may be gone afterwards. */
static void progress(struct manager *m, struct session *s)
{
    if (s->state == SESSION_PREPARING) {
        progress_preparing(m, s);
        return;
    }
    if (s->state == SESSION_STARTING)
        progress_starting(m, s);
    if (s->state == SESSION_STARTING || s->state == SESSION_RUNNING)
        check_ends(m, s);
}

static bool take_report(struct container *c, const struct report *r)
{
    struct err err;

    if (r->state < c->state || r->state == CONTAINER_REMOVED)
        return false;
    if (r->state == c->state && str_eq(r->text, c->text))
        return false;
    if (container_state_move(&c->state, r->state, &err) < 0) {
        log_warning("container %s: %s", c->id, err_text(&err));
        return false;
    }
    c->end = r->end;
    c->exit_code = r->exit_code;
    c->started_usec = r->started_usec;
    c->ended_usec = r->ended_usec;
    STR_SET(c->text, r->text);
    return true;
}

void launch_report(struct manager *m, struct mnode *n, const struct report *r)
{
    struct session *s = map_get(&m->sessions, r->session);
    struct container *c = s ? session_container(s, r->name) : NULL;
    bool ended;

    if (!c || s->attempt != r->attempt || !str_eq(c->node, n->node.name) ||
        !str_eq(c->id, r->container))
        return; /* of an attempt that is over; hello and removal deal with leftovers */
    if (!take_report(c, r))
        return;
    ended = c->state == CONTAINER_EXITED;
    enum session_state before = s->state;
    progress(m, s);
    s = map_get(&m->sessions, r->session);
    /* Progress within a state is for people who look; it is written down when it must survive. */
    if (s && s->state == before && ended)
        session_save(m, s);
}

/* Containers of it are no more: the end of a stop, or a failure. */
static void removed_some(struct manager *m, struct session *s)
{
    if (s->state == SESSION_STOPPING) {
        session_save(m, s);
        finish_if_removed(m, s);
    } else {
        progress(m, s);
    }
}

void launch_removed(
    struct manager *m, struct mnode *n, const char *session, uint32_t attempt, const char *why)
{
    struct session *s = map_get(&m->sessions, session);

    map_remove(&n->cleaning, session);
    free(map_remove(&n->quarantined, session));
    pass_node_changed(m, n->node.name);
    if (!s || s->attempt != attempt || s->state == SESSION_PENDING)
        return;
    for (uint32_t i = 0; i < s->size; i++) {
        struct container *c = &s->containers[i];
        if (!str_eq(c->node, n->node.name))
            continue;
        if (c->end == END_NONE) {
            c->end = s->state == SESSION_STOPPING ? END_STOPPED : END_NODE_LOST;
            STR_SET(c->text, c->end == END_NODE_LOST ? why : "");
        }
        container_state_move(&c->state, CONTAINER_REMOVED, NULL);
    }
    removed_some(m, s);
    pass_want(m);
}

void launch_node_lost(struct manager *m, struct mnode *n, const char *why)
{
    /* progress may end sessions, which leaves a hole in the map; that is safe here. */
    map_for_each (e, &m->sessions) {
        struct session *s = e->value;
        bool concerned = false;
        for (uint32_t i = 0; i < s->size; i++) {
            struct container *c = &s->containers[i];
            if (!str_eq(c->node, n->node.name) || !container_holds(c))
                continue;
            concerned = true;
            c->end = END_NODE_LOST;
            str_copy(c->text, sizeof(c->text), why);
            container_state_move(&c->state, CONTAINER_REMOVED, NULL);
        }
        if (concerned)
            removed_some(m, s);
    }
    pass_want(m);
}

/* A node comes and goes: its sessions say so, and change nothing else. */
/* "n1, n3": the session's nodes that cannot be reached; "" when there is none. */
static void unreachable_nodes(struct manager *m, const struct session *s, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    map_for_each (e, &m->nodes) {
        const struct mnode *n = e->value;

        if (n->node.state != NODE_UNREACHABLE || !on_node(s, n) || used >= size)
            continue;
        used += (size_t)snprintf(
            text + used, size - used, "%s%s", used > 0 ? ", " : "", n->node.name);
    }
}

/* The node's state has changed: what its sessions say of it. */
void launch_node_reachable(struct manager *m, const struct mnode *n)
{
    char names[200], reason[sizeof(((struct session *)0)->reason)];

    map_for_each (e, &m->sessions) {
        struct session *s = e->value;
        bool said = str_eq(s->reason_code, "node_unreachable");

        if (!on_node(s, n) || s->state == SESSION_STOPPING)
            continue;
        unreachable_nodes(m, s, names, sizeof(names));
        reason[0] = '\0';
        if (names[0])
            snprintf(
                reason, sizeof(reason), "node %s is unreachable; what runs there is kept", names);
        if (!said && !names[0])
            continue;
        STR_SET(s->reason_code, names[0] ? "node_unreachable" : "");
        STR_SET(s->reason, reason);
        session_save(m, s);
    }
}

/* --- the clock ---------------------------------------------------------------------------- */

static void describe_late(const struct session *s, char *text, size_t size)
{
    for (uint32_t i = 0; i < s->size; i++) {
        const struct container *c = &s->containers[i];
        if (c->state >= CONTAINER_READY)
            continue;
        snprintf(text, size, "%s on %s was not ready in time (%s%s%s)", c->name, c->node,
            container_state_name(c->state), c->text[0] ? ": " : "", c->text);
        return;
    }
    snprintf(text, size, "not ready in time");
}

/* A lease that is over is enforced only if somebody waits for what it holds, and not unannounced.
 * True: the session goes on. */
static bool lease_goes_on(struct manager *m, struct session *s, uint64_t now)
{
    uint64_t wanted = sched_wanted_by(&m->sched, s->id);
    char until[CLOCK_TEXT_MAX];

    if (s->kind != KIND_DEBUG || (s->finish_usec && now >= s->finish_usec))
        return false;
    if (wanted && s->lease_notice_usec)
        return false;
    s->deadline_usec = now + (wanted ? m->sched.options.lease_notice_usec : LEASE_LOOK_USEC);
    s->lease_notice_usec = wanted ? now : 0;
    if (!wanted)
        return true;
    STR_SET(s->reason_code, "lease");
    snprintf(s->reason, sizeof(s->reason),
        "its lease is over, and session %llu waits for what it holds: it ends at %s, unless it is "
        "extended",
        (unsigned long long)wanted, clock_format(s->deadline_usec, until));
    session_save(m, s);
    return true;
}

static void deadline_passed(struct manager *m, struct session *s, uint64_t now)
{
    char text[400];

    switch (s->state) {
    case SESSION_PENDING:
        launch_stop(m, s, RESULT_CANCELLED, "finish_by", false,
            "it could not be over by %s any more", clock_format(s->finish_usec, text));
        break;
    case SESSION_PREPARING:
        describe_late(s, text, sizeof(text));
        start_failed(m, s, "start_timeout", text);
        break;
    case SESSION_STARTING:
        launch_stop(m, s, RESULT_FAILED, "start_timeout", true,
            "the commands did not start in time after the barrier was opened");
        break;
    case SESSION_RUNNING:
        if (lease_goes_on(m, s, now))
            break;
        if (s->finish_usec && now >= s->finish_usec) {
            launch_stop(m, s, RESULT_TIMEOUT, "finish_by", false, "it had to be over by %s",
                clock_format(s->finish_usec, text));
            break;
        }
        duration_format(s->time_limit_usec, text);
        if (s->kind == KIND_DEBUG) {
            launch_stop(m, s, RESULT_TIMEOUT, "lease", false,
                "its lease of %s was over, and others waited for what it held", text);
            break;
        }
        launch_stop(m, s, RESULT_TIMEOUT, "time_limit", false, "its time limit of %s passed", text);
        break;
    case SESSION_STOPPING:
        /* Nothing is free until the agent says so: ask again. */
        log_warning("session %s: still not removed everywhere; asking again", s->id);
        s->deadline_usec = now + STOP_MARGIN_USEC;
        launch_tell(m, s);
        break;
    default:
        break;
    }
}

void launch_tick(struct manager *m, uint64_t now_usec)
{
    map_for_each (e, &m->sessions) {
        struct session *s = e->value;
        if (s->deadline_usec && now_usec >= s->deadline_usec)
            deadline_passed(m, s, now_usec);
    }
}
