/*
 * The shell around the scheduler: tells it what has changed since the last pass, runs one at the
 * end of a turn in which somebody wanted one, and turns placements into assignments.
 */
#include "base/clock.h"
#include "base/log.h"
#include "manager/depends.h"
#include "manager/first_use.h"
#include "manager/launch.h"
#include "manager/overlay.h"
#include "manager/state.h"

void pass_want(struct manager *m)
{
    m->pass_wanted = true;
}

void pass_session_changed(struct manager *m, const char *id)
{
    map_set(&m->changed_sessions, id, m);
}

void pass_node_changed(struct manager *m, const char *name)
{
    map_set(&m->changed_nodes, name, m);
}

/* --- what is free --------------------------------------------------------------------------- */

static struct sched_withheld withheld_on(const struct mnode *n)
{
    struct sched_withheld all = {0};

    map_for_each (q, &n->quarantined) {
        const struct sched_withheld *held = q->value;
        resources_add(&all.sum, &held->sum);
        all.gpus |= held->gpus;
    }
    return all;
}

static void take(struct node_usage *u, const struct session *s, const struct container *c)
{
    struct resources each = s->each;

    each.gpus = c->gpu_count;
    resources_sub(&u->free, &each);
}

struct node_usage *pass_usage(struct manager *m, size_t *ret_count)
{
    size_t count = 0;
    struct node_usage *nodes = xnew_array(struct node_usage, map_count(&m->nodes));
    struct map by_name;

    map_init(&by_name);
    map_for_each (e, &m->nodes) {
        struct mnode *n = e->value;
        struct node_usage *u = &nodes[count++];
        struct sched_withheld held = withheld_on(n);

        map_set(&by_name, e->key, u);
        u->node = &n->node;
        u->free = n->node.capacity;
        resources_sub(&u->free, &held.sum);
    }
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        for (uint32_t i = 0; i < s->size; i++) {
            const struct container *c = &s->containers[i];
            struct node_usage *u = container_holds(c) ? map_get(&by_name, c->node) : NULL;
            if (u)
                take(u, s, c);
        }
    }
    map_done(&by_name, NULL);
    *ret_count = count;
    return nodes;
}

/* --- telling the scheduler -------------------------------------------------------------------- */

static void tell_node(struct manager *m, const char *name)
{
    const struct mnode *n = map_get(&m->nodes, name);
    struct sched_withheld held;

    if (!n) {
        sched_node_remove(&m->sched, name);
        return;
    }
    held = withheld_on(n);
    sched_node_put(&m->sched, &n->node, &held);
}

static void tell_session(struct manager *m, const char *id)
{
    const struct session *s = map_get(&m->sessions, id);

    if (s && !first_use_waits(s))
        sched_session_put(&m->sched, s, clock_real_usec());
    else
        sched_session_remove(&m->sched, id);
}

/* Nodes first: sessions are on them. */
static void tell_changes(struct manager *m)
{
    map_for_each (e, &m->changed_nodes)
        tell_node(m, e->key);
    map_for_each (e, &m->changed_sessions)
        tell_session(m, e->key);
    map_done(&m->changed_nodes, NULL);
    map_done(&m->changed_sessions, NULL);
    map_init(&m->changed_nodes);
    map_init(&m->changed_sessions);
}

/* --- what comes of it ---------------------------------------------------------------------------
 */

static void place_container(struct session *s, uint32_t rank, const struct sched_share *share)
{
    struct container *c = &s->containers[rank];
    uint32_t n = 0;

    STR_SET(c->node, share->node);
    c->gpu_count = (uint32_t)__builtin_popcountll(share->gpus);
    free(c->gpus);
    c->gpus = xnew_array(uint32_t, c->gpu_count);
    for (uint32_t i = 0; i < NODE_GPUS_MAX; i++)
        if (share->gpus & (UINT64_C(1) << i))
            c->gpus[n++] = i;
    c->ip = s->subnet + 2 + rank;
    c->end = END_NONE;
    c->text[0] = '\0';
    container_state_move(&c->state, CONTAINER_ASSIGNED, NULL);
}

/* It waits, then, until one is free; the scheduler is told so. */
static void no_network(struct manager *m, struct session *s, const struct err *err)
{
    pass_session_changed(m, s->id);
    if (str_eq(s->reason_code, "no_network"))
        return;
    log_err("session %s (%llu) cannot start: %s", s->id, (unsigned long long)s->num, err_text(err));
    STR_SET(s->reason_code, "no_network");
    str_copy(s->reason, sizeof(s->reason), err_text(err));
    session_save(m, s);
}

static void place_session(struct manager *m, const struct sched_start *start)
{
    struct session *s = map_get(&m->sessions, start->session);
    struct err err = ERR_INIT;
    bool several = false;

    if (overlay_assign(m, s, &err) < 0) {
        no_network(m, s, &err);
        return;
    }
    for (uint32_t i = 0; i < s->size; i++) {
        place_container(s, i, &start->shares[i]);
        several |= !str_eq(start->shares[i].node, start->shares[0].node);
    }
    s->placed_mode = several ? MODE_MULTI_NODE : MODE_SINGLE_NODE;
    launch_placed(m, s);
}

void pass_reason(struct manager *m, struct session *s, struct sched_reason *ret)
{
    if (first_use_waits(s)) {
        *ret = (struct sched_reason){.code = "image", .slurm = "Resources"};
        first_use_reason(m, s, ret->text, sizeof(ret->text));
    } else {
        sched_explain(&m->sched, s, ret);
    }
    STR_SET(s->reason_code, ret->code);
    STR_SET(s->reason, ret->text);
}

static void note_reason(struct manager *m, const char *id)
{
    struct session *s = map_get(&m->sessions, id);
    struct sched_reason why;

    pass_reason(m, s, &why);
    session_save(m, s);
}

static void make_leave(struct manager *m, const struct sched_victim *v, uint64_t now_usec)
{
    struct session *s = map_get(&m->sessions, v->session);
    struct session *for_whom = map_get(&m->sessions, v->for_session);

    if (for_whom->claimed_usec != now_usec) {
        for_whom->claimed_usec = now_usec;
        session_save(m, for_whom);
    }
    launch_preempt(m, s, for_whom);
}

/* Others leave for somebody no longer than the scheduler says. */
static void note_claims(struct manager *m)
{
    map_for_each (e, &m->sessions) {
        struct session *s = e->value;
        if (s->state != SESSION_PENDING || !s->claimed_usec || sched_claimed(&m->sched, s->id))
            continue;
        s->claimed_usec = 0;
        session_save(m, s);
    }
}

static void run(struct manager *m)
{
    uint64_t now = clock_real_usec();
    struct sched_result result;

    tell_changes(m);
    sched_run(&m->sched, now, &result);
    for (size_t i = 0; i < result.started_count; i++)
        place_session(m, &result.started[i]);
    for (size_t i = 0; i < result.victim_count; i++)
        make_leave(m, &result.victims[i], now);
    note_claims(m);
    for (size_t i = 0; i < result.news_count; i++)
        note_reason(m, result.news[i]);
    m->pass_count++;
    m->pass_usec = now;
    m->pass_wake_usec = result.wake_usec;
    sched_result_done(&result);
}

void pass_tick(struct manager *m, uint64_t now_usec)
{
    if (m->pass_wake_usec && now_usec >= m->pass_wake_usec)
        pass_want(m);
}

bool pass_try(struct manager *m, const struct session *s, struct sched_start *ret_start,
    struct sched_reason *ret_reason)
{
    tell_changes(m);
    return sched_try(&m->sched, s, clock_real_usec(), ret_start, ret_reason);
}

size_t pass_would_move(
    struct manager *m, const struct session *longer, struct sched_moved *ret, size_t max)
{
    tell_changes(m);
    return sched_would_move(&m->sched, longer, clock_real_usec(), ret, max);
}

static void pass_at_turn_end(uv_check_t *check)
{
    struct manager *m = check->data;

    if (m->depends_wanted) {
        m->depends_wanted = false;
        depends_look(m);
    }
    if (!m->pass_wanted)
        return;
    m->pass_wanted = false;
    run(m);
}

void pass_start(struct manager *m)
{
    uv_check_init(m->loop, &m->pass_check);
    m->pass_check.data = m;
    uv_check_start(&m->pass_check, pass_at_turn_end);
    uv_unref((uv_handle_t *)&m->pass_check);
    pass_want(m);
}
