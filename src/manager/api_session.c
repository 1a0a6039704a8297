/*
 * Sessions over HTTP: show, hold, release, stop, ssh.
 */
#include "base/clock.h"
#include "manager/api.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "wire/session.h"

/* --- show ------------------------------------------------------------------------------- */

json_t *call_session_json(struct manager *m, struct session *s)
{
    json_t *o = session_to_json_public(s);
    struct sched_reason why;

    if (s->state != SESSION_PENDING)
        return o;
    sched_brief(&m->sched, s, &why);
    json_set_u64(o, "position", why.position);
    api_set_time(o, "planned_start", why.start_usec);
    return o;
}

struct session *call_session(struct call *c, struct session **ret_loaded)
{
    struct session *s;
    struct err err = ERR_INIT;

    if (session_find(c->m, c->user, c->params[0], &s, ret_loaded, &err) == 0)
        return s;
    reply_err(c, &err);
    return NULL;
}

void api_session_show(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);

    if (s)
        reply_json(c, 200, call_session_json(c->m, s));
    session_free(loaded);
}

/* --- hold and release ----------------------------------------------------------------------- */

/* The session, if it waits; else the answer that it does not. */
static struct session *call_waiting(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);

    if (s && s->state != SESSION_PENDING) {
        reply_error(c, 409, "wrong_state", "the session is %s; only one that waits can be held",
            session_state_name(s->state));
        s = NULL;
    }
    session_free(loaded);
    return s;
}

static void set_hold(struct call *c, struct session *s, enum session_hold hold)
{
    s->hold = hold;
    session_save(c->m, s);
    pass_want(c->m);
    reply_committed(c, 200, session_to_json_public(s));
}

void api_session_hold(struct call *c)
{
    struct session *s = call_waiting(c);

    if (s && s->hold == HOLD_OPERATOR)
        reply_committed(c, 200, session_to_json_public(s)); /* the stronger one */
    else if (s)
        set_hold(c, s, str_eq(s->owner, c->user->name) ? HOLD_USER : HOLD_OPERATOR);
}

void api_session_release(struct call *c)
{
    struct session *s = call_waiting(c);

    if (s && s->hold == HOLD_OPERATOR && !call_is_operator(c))
        reply_error(c, 403, "forbidden", "an operator holds the session, and has to release it");
    else if (s)
        set_hold(c, s, HOLD_NONE);
}

struct stopped {
    struct call *c;
    char id[UUID_TEXT_LEN + 1];
};

/* One that was pending has ended with the stop, and is in the store only. */
static void reply_stopped(void *arg)
{
    struct stopped *st = arg;
    struct session *s, *loaded = NULL;
    struct err err = ERR_INIT;

    if (session_find(st->c->m, st->c->user, st->id, &s, &loaded, &err) < 0)
        reply_err(st->c, &err);
    else
        reply_json(st->c, 202, session_to_json_public(s));
    session_free(loaded);
    free(st);
}

void api_session_stop(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);
    struct stopped *st;

    if (!s)
        return;
    if (loaded) { /* over already: asking twice is no mistake */
        reply_json(c, 200, session_to_json_public(s));
        session_free(loaded);
        return;
    }
    st = xnew(struct stopped);
    st->c = c;
    STR_SET(st->id, s->id);
    launch_stop(c->m, s, RESULT_CANCELLED, "cancelled", json_bool_or(c->body, "now", false),
        "stopped by %s", c->user->name);
    store_after(c->m->store, reply_stopped, st);
}

void api_session_ssh(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);
    json_t *body;

    if (!s)
        return;
    if (!str_eq(s->owner, c->user->name)) {
        reply_error(c, 403, "forbidden", "only the owner may enter a session over SSH");
    } else if (s->state != SESSION_RUNNING && s->state != SESSION_STARTING) {
        reply_error(c, 409, "wrong_state", "the session is %s, not running; see 'muster why %s'",
            session_state_name(s->state), c->params[0]);
    } else {
        body = json_object();
        json_set_str(body, "id", s->id);
        json_set_str(body, "user", "work");
        json_set_str(body, "container", "main1");
        json_set_str(body, "private_key", s->ssh_private);
        json_set_str(body, "host_public_key", s->ssh_host_public);
        reply_json(c, 200, body);
    }
    session_free(loaded);
}
