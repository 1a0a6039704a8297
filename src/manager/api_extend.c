/* More time for a running session. */
#include "base/clock.h"
#include "manager/api.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "wire/session.h"

#define MOVED_MAX 20

static json_t *moved_json(const struct sched_moved *moved, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *o = json_object();

        json_set_u64(o, "num", moved[i].num);
        api_set_time(o, "start", moved[i].from);
        api_set_time(o, "start_then", moved[i].to);
        json_array_append_new(list, o);
    }
    return list;
}

/* Granted; the lease counts anew. */
static void grant(struct call *c, struct session *s, uint64_t limit)
{
    s->time_limit_usec = limit;
    s->deadline_usec = s->started_usec + session_may_run(s, s->started_usec);
    if (s->lease_notice_usec) {
        s->lease_notice_usec = 0;
        STR_SET(s->reason_code, "");
        STR_SET(s->reason, "");
    }
    session_save(c->m, s);
    pass_want(c->m);
    reply_committed(c, 200, session_to_json_public(s));
}

static bool may_extend(struct call *c, const struct session *s)
{
    if (s->state != SESSION_RUNNING)
        reply_error(c, 409, "wrong_state", "the session is %s; only one that runs can be extended",
            session_state_name(s->state));
    else if (!s->time_limit_usec)
        reply_error(c, 409, "wrong_state", "the session has no time limit");
    else if (s->kind != KIND_DEBUG && !call_is_operator(c))
        reply_error(c, 403, "forbidden", "only operators extend 'train' sessions");
    else
        return true;
    return false;
}

/* The new limit, from now on if it is over already. */
static int read_limit(
    const struct call *c, const struct session *s, uint64_t now, uint64_t *ret, struct err *err)
{
    const char *text = json_str_or(c->body, "time", "");
    const struct group *g = map_get(&c->m->groups, s->group);
    uint64_t more, ran = now > s->started_usec ? now - s->started_usec : 0;
    int r = duration_parse(text, &more, err);

    if (r < 0)
        return err_prefix(err, "'time'");
    *ret = MAX_OF(s->time_limit_usec, ran) + more;
    if (g && g->time_max_usec && *ret > g->time_max_usec && !call_is_operator(c))
        return err_set(
            err, -EINVAL, "group '%s' allows no session longer than its 'time_max'", s->group);
    return 0;
}

/* True: answered that others would start later. */
static bool refuse_delay(struct call *c, const struct session *s, uint64_t limit)
{
    struct sched_moved moved[MOVED_MAX];
    struct session longer = *s; /* shallow: to be asked about */
    size_t count;

    longer.time_limit_usec = limit;
    count = pass_would_move(c->m, &longer, moved, MOVED_MAX);
    if (count == 0)
        return false;
    reply_error_more(c, 409, "would_delay",
        "sessions that wait would start later; ask them, or extend with 'force'", "moved",
        moved_json(moved, count));
    return true;
}

static void extend(struct call *c, struct session *s)
{
    struct err err = ERR_INIT;
    uint64_t limit = 0;

    if (!may_extend(c, s))
        return;
    if (read_limit(c, s, clock_real_usec(), &limit, &err) < 0)
        reply_err(c, &err);
    else if (json_bool_or(c->body, "force", false) || !refuse_delay(c, s, limit))
        grant(c, s, limit);
}

void api_session_extend(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);

    if (s)
        extend(c, s);
    session_free(loaded);
}
