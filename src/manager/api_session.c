/*
 * Sessions over HTTP: list, show, hold, release, stop, ssh.
 */
#include "base/clock.h"
#include "manager/api.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "wire/session.h"

#define LIST_DEFAULT 100
#define LIST_MAX 1000

/* --- list and show ------------------------------------------------------------------------ */

/* For one that waits with its place in the queue. */
static json_t *session_json(struct manager *m, struct session *s)
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

struct listing {
    json_t *list;
    uint64_t last;
    bool live_only;
};

static int list_one(void *arg, const struct store_doc *doc)
{
    struct listing *l = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;
    _cleanup_(session_freep) struct session *s = NULL;
    struct err err;

    if (json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, &err) < 0 ||
        session_from_json_stored(body, &s, &err) < 0)
        return -EIO;
    json_array_append_new(l->list, session_to_json_public(s));
    l->last = doc->num;
    return 0;
}

/* The store has them in order; for those that live, memory knows more. */
static void freshen(struct manager *m, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        struct session *s = map_get(&m->sessions, json_str_or(o, "id", ""));
        if (s)
            json_array_set_new(list, i, session_json(m, s));
    }
}

void api_session_list(struct call *c)
{
    struct store_filter f = {.kind = "session"};
    struct listing l = {.list = json_array()};
    const char *state = request_query(c->rq, "state");
    enum session_state ignored;
    struct err err = ERR_INIT;
    uint64_t limit;
    json_t *body;

    if (!call_query_u64(c, "limit", LIST_DEFAULT, LIST_MAX, &limit) ||
        !call_query_u64(c, "before", 0, INT64_MAX, &f.before_num)) {
        json_decref(l.list);
        return;
    }
    if (state && session_state_parse(state, &ignored) < 0) {
        json_decref(l.list);
        reply_error(c, 400, "bad_query",
            "'state' must be pending, preparing, starting, running, stopping or ended");
        return;
    }
    f.limit = limit ? (uint32_t)limit : LIST_DEFAULT;
    f.state = state;
    f.name = request_query(c->rq, "name");
    if (!state && !call_query_flag(c, "ended"))
        f.not_state = "ended";
    if (!call_is_admin(c) || !call_query_flag(c, "all"))
        f.owner = c->user->name;
    if (store_list(c->m->store, &f, list_one, &l, &err) < 0) {
        json_decref(l.list);
        reply_err(c, &err);
        return;
    }
    freshen(c->m, l.list);
    body = json_object();
    if (json_array_size(l.list) == f.limit)
        json_set_u64(body, "next", l.last);
    else
        json_object_set_new(body, "next", json_null());
    json_object_set_new(body, "sessions", l.list);
    reply_json(c, 200, body);
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
        reply_json(c, 200, session_json(c->m, s));
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
