/*
 * Sessions on this node: takes orders, decides the next step, reports. The steps themselves are
 * jobs in worker threads (start.c, remove.c); what ends by itself is noticed by watch.c.
 */
#include "agent/sess.h"

#include <signal.h>

#include "agent/link.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/strv.h"

#define RETRY_USEC (2 * USEC_PER_SEC)

static uint32_t free_edge_index(struct agent *ag)
{
    for (uint32_t i = 0;; i++) {
        bool used = false;
        map_for_each (e, &ag->sessions)
            used |= ((struct sess *)e->value)->edge_index == i;
        if (!used)
            return i;
    }
}

struct sess *sess_new(struct agent *ag, struct assignment *a)
{
    struct sess *s = xnew(struct sess);

    s->agent = ag;
    s->a = a;
    s->edge_index = free_edge_index(ag);
    s->cts = xnew_array(struct ct, a->container_count);
    for (uint32_t i = 0; i < a->container_count; i++) {
        struct ct *c = &s->cts[i];
        c->sess = s;
        c->spec = &a->containers[i];
        STR_SET(c->report.session, a->session);
        STR_SET(c->report.container, c->spec->id);
        STR_SET(c->report.name, c->spec->name);
        c->report.attempt = a->attempt;
        c->report.state = CONTAINER_ASSIGNED;
    }
    map_set(&ag->sessions, a->session, s);
    return s;
}

void sess_free(struct sess *s)
{
    assert(s->jobs == 0);
    map_remove(&s->agent->sessions, s->a->session);
    for (uint32_t i = 0; i < s->a->container_count; i++)
        runtime_extra_done(&s->cts[i].extra);
    assignment_free(s->a);
    assignment_free(s->next);
    free(s->cts);
    free(s);
}

/* --- reports ------------------------------------------------------------------------------ */

void ct_report(struct ct *c, enum container_state state)
{
    if (state < c->report.state)
        return;
    c->report.state = state;
    link_report(c->sess->agent, &c->report);
}

void ct_ended(struct ct *c, enum container_end end, int code, const char *text)
{
    if (c->report.state == CONTAINER_EXITED)
        return;
    c->report.end = end;
    c->report.exit_code = code;
    c->report.ended_usec = clock_real_usec();
    str_copy(c->report.text, sizeof(c->report.text), text ? text : "");
    log_info("session %s: %s ended (%s %d)%s%s", c->sess->a->session, c->spec->name,
        container_end_name(end), code, text && text[0] ? ": " : "", text ? text : "");
    ct_report(c, CONTAINER_EXITED);
    spec_write(c->sess, NULL);
    sess_work(c->sess);
}

/* --- stopping ----------------------------------------------------------------------------- */

static void ct_stop(struct ct *c, bool kill_now)
{
    struct agent *ag = c->sess->agent;

    if (c->report.state == CONTAINER_EXITED || !c->pid)
        return;
    if (kill_now && !c->killed) {
        c->killed = true;
        runtime_kill(&ag->rt, c->spec->id, SIGKILL, NULL);
    } else if (!kill_now && !c->stop_sent) {
        c->stop_sent = true;
        runtime_kill(&ag->rt, c->spec->id, SIGTERM, NULL);
    }
}

static void sess_stop(struct sess *s)
{
    uint64_t now = clock_mono_usec();

    atomic_store(&s->cancel, true);
    if (!s->kill_at_usec)
        s->kill_at_usec = now + s->a->grace_usec;
    if (s->a->kill_now)
        s->kill_at_usec = now;
    for (uint32_t i = 0; i < s->a->container_count; i++)
        ct_stop(&s->cts[i], now >= s->kill_at_usec);
}

static bool any_alive(const struct sess *s)
{
    for (uint32_t i = 0; i < s->a->container_count; i++)
        if (s->cts[i].pid && s->cts[i].report.state != CONTAINER_EXITED)
            return true;
    return false;
}

bool sess_is_idle(const struct sess *s)
{
    return s->jobs == 0;
}

/* The one place that decides what comes next. Called after everything that changed. */
void sess_work(struct sess *s)
{
    if (s->quarantined)
        return;
    if (s->a->phase == PHASE_STOP || s->remove_wanted || s->next) {
        sess_stop(s);
        if (s->jobs == 0 && !any_alive(s) && !s->removing)
            remove_session(s);
        return;
    }
    if (s->a->phase == PHASE_RUN && s->jobs == 0)
        start_barrier(s);
}

/* --- orders ------------------------------------------------------------------------------- */

static bool phase_forward(struct sess *s, struct assignment *a)
{
    bool news = a->phase > s->a->phase || (a->kill_now && !s->a->kill_now);

    if (!news)
        return false;
    s->a->phase = MAX_OF(a->phase, s->a->phase);
    s->a->kill_now |= a->kill_now;
    STR_SET(s->a->stop_reason, a->stop_reason);
    return true;
}

static void report_all(struct sess *s)
{
    for (uint32_t i = 0; i < s->a->container_count; i++)
        link_report(s->agent, &s->cts[i].report);
}

static void assign_known(struct sess *s, struct assignment *a)
{
    struct err err = ERR_INIT;

    s->quarantined = false;
    if (a->attempt > s->a->attempt) {
        assignment_free(s->next);
        s->next = a;
        sess_work(s);
        return;
    }
    if (a->attempt == s->a->attempt && phase_forward(s, a) && spec_write(s, &err) < 0)
        log_err("session %s: %s", s->a->session, err_text(&err));
    else if (a->attempt == s->a->attempt)
        report_all(s);
    assignment_free(a);
    crash_point("agent.after_phase", NULL);
    sess_work(s);
}

void sess_assign(struct agent *ag, struct assignment *a)
{
    struct sess *s = map_get(&ag->sessions, a->session);
    struct err err = ERR_INIT;

    if (!str_eq(a->boot_id, ag->boot_id)) {
        log_warning("session %s: order for another boot of this node refused", a->session);
        assignment_free(a);
        return;
    }
    if (s) {
        assign_known(s, a);
        return;
    }
    if (a->phase == PHASE_STOP) { /* nothing is here */
        link_session_removed(ag, a->session, a->attempt);
        assignment_free(a);
        return;
    }
    if (a->phase == PHASE_RUN) {
        /* Its barrier was opened and it is gone from here: never run it a second time. */
        log_warning("session %s: told to run what is not here; reported as removed", a->session);
        link_session_removed(ag, a->session, a->attempt);
        assignment_free(a);
        return;
    }
    s = sess_new(ag, a);
    log_info("session %s (%llu): %u containers to prepare", a->session, (unsigned long long)a->num,
        a->container_count);
    if (spec_write(s, &err) < 0)
        log_err("session %s: %s", a->session, err_text(&err));
    crash_point("agent.after_spec", NULL);
    start_session(s);
}

void sess_remove(struct agent *ag, const char *session_id)
{
    struct sess *s = map_get(&ag->sessions, session_id);

    if (!s) {
        link_session_removed(ag, session_id, 0);
        return;
    }
    log_warning("session %s: the manager does not know it; removing", session_id);
    s->quarantined = false;
    s->remove_wanted = true;
    sess_work(s);
}

void sess_quarantine(struct agent *ag, const char *session_id)
{
    struct sess *s = map_get(&ag->sessions, session_id);

    if (!s || s->quarantined)
        return;
    log_warning(
        "session %s: the manager's store is new or restored and does not know it; left alone",
        session_id);
    s->quarantined = true;
    spec_write(s, NULL);
}

struct ct *sess_container(struct agent *ag, const char *container_id)
{
    map_for_each (e, &ag->sessions) {
        struct sess *s = e->value;
        for (uint32_t i = 0; i < s->a->container_count; i++)
            if (str_eq(s->cts[i].spec->id, container_id))
                return &s->cts[i];
    }
    return NULL;
}

/* --- the clock ---------------------------------------------------------------------------- */

void sess_fence(struct agent *ag)
{
    map_for_each (e, &ag->sessions) {
        struct sess *s = e->value;
        if (s->a->kind != KIND_TRAIN || s->quarantined || s->removing)
            continue;
        for (uint32_t i = 0; i < s->a->container_count; i++) {
            struct ct *c = &s->cts[i];
            if (!c->pid || c->report.state == CONTAINER_EXITED || c->killed)
                continue;
            log_warning(
                "session %s: no manager for too long; ending %s", s->a->session, c->spec->name);
            str_copy(c->report.text, sizeof(c->report.text),
                "the node was cut off from the manager for too long and ended it");
            c->report.end = END_NODE_LOST;
            c->killed = true;
            runtime_kill(&ag->rt, c->spec->id, SIGKILL, NULL);
        }
    }
}

void sess_tick(struct agent *ag, uint64_t now_usec)
{
    map_for_each (e, &ag->sessions) {
        struct sess *s = e->value;
        if (s->retry_at_usec && now_usec >= s->retry_at_usec) {
            s->retry_at_usec = 0;
            sess_work(s);
        } else if (s->kill_at_usec && now_usec >= s->kill_at_usec) {
            sess_work(s);
        }
    }
}
