/*
 * The queue and the plan over HTTP: who waits in which order and by which points, and what is to
 * end and start when. Everybody may see how much is before them, only names of one's own.
 */
#include "base/clock.h"
#include "manager/api.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "wire/node.h"

#define QUEUE_DEFAULT 1000
#define QUEUE_MAX 100000

/* What is said of any session. */
static json_t *brief_json(const struct call *c, const struct session *s)
{
    bool named = user_may_see(c->user, s->owner);
    json_t *o = json_object();

    json_set_u64(o, "num", s->num);
    json_set_str(o, "name", named ? s->name : NULL);
    json_set_str(o, "owner", named ? s->owner : NULL);
    json_set_str(o, "kind", session_kind_name(s->kind));
    json_set_u64(o, "size", s->size);
    json_object_set_new(o, "each", resources_to_json_public(&s->each));
    json_set_str(o, "group", s->group);
    return o;
}

static json_t *waiting_json(const struct call *c, const struct session *s)
{
    json_t *o = brief_json(c, s), *points = json_object();
    struct order_factors f;
    struct sched_reason why;
    int64_t priority = sched_factors(&c->m->sched, s->id, clock_real_usec(), &f);

    sched_brief(&c->m->sched, s, &why);
    json_set_u64(o, "position", why.position);
    json_object_set_new(o, "priority", json_integer(priority));
    json_object_set_new(points, "work", json_integer(f.work));
    json_object_set_new(points, "expansion", json_integer(f.expansion));
    json_object_set_new(points, "age", json_integer(f.age));
    json_object_set_new(points, "fair", json_integer(f.fair));
    json_object_set_new(points, "nice", json_integer(f.nice));
    json_object_set_new(o, "points", points);
    json_set_str(o, "qos", session_qos_name(s->qos));
    json_set_str(o, "code", why.code);
    json_set_str(o, "slurm", why.slurm);
    api_set_time(o, "planned_start", why.start_usec);
    api_set_time(o, "submitted", s->submitted_usec);
    return o;
}

struct waiting {
    const struct session *session;
    uint32_t position;
};

static int by_position(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    return x->position < y->position ? -1 : x->position > y->position;
}

void api_queue(struct call *c)
{
    _cleanup_free_ struct waiting *list = NULL;
    json_t *body, *out;
    uint64_t limit;
    size_t n = 0;

    if (!call_query_u64(c, "limit", QUEUE_DEFAULT, QUEUE_MAX, &limit))
        return;
    list = xnew_array(struct waiting, map_count(&c->m->sessions) + 1);
    map_for_each (e, &c->m->sessions) {
        const struct session *s = e->value;
        struct sched_reason why;

        if (s->state != SESSION_PENDING)
            continue;
        sched_brief(&c->m->sched, s, &why);
        list[n++] = (struct waiting){s, why.position};
    }
    qsort(list, n, sizeof(*list), by_position);
    out = json_array();
    for (size_t i = 0; i < MIN_OF(n, limit); i++)
        json_array_append_new(out, waiting_json(c, list[i].session));
    body = json_object();
    json_object_set_new(body, "queue", out);
    json_set_u64(body, "waiting", n);
    json_set_u64(body, "pass", c->m->pass_count);
    api_set_time(body, "checked", c->m->pass_usec);
    reply_json(c, 200, body);
}

/* --- the plan ----------------------------------------------------------------------------- */

static json_t *places_json(const struct sched_planned *p)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < p->size; i++)
        if (p->shares[i].node)
            json_array_append_new(list, api_share_json(&p->shares[i]));
    return list;
}

struct plan_call {
    const struct call *c;
    json_t *running, *planned;
};

static void add_planned(const struct sched_planned *p, void *arg)
{
    struct plan_call *call = arg;
    const struct session *s = map_get(&call->c->m->sessions, p->session);
    json_t *o;

    if (!s)
        return;
    o = brief_json(call->c, s);
    api_set_time(o, "start", p->start_usec);
    api_set_time(o, "end", p->end_usec);
    json_object_set_new(o, "places", places_json(p));
    json_array_append_new(p->runs ? call->running : call->planned, o);
}

static json_t *plan_nodes(struct manager *m)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < m->sched.book.node_count; i++) {
        const struct mnode *n = map_get(&m->nodes, m->sched.book.nodes[i].name);
        json_t *o;

        if (!n)
            continue;
        o = json_object();
        json_set_str(o, "name", n->node.name);
        json_set_str(o, "group", n->node.group);
        json_object_set_new(o, "capacity", resources_to_json_public(&n->node.capacity));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *estimates_json(const struct estimate_quality *q)
{
    json_t *o = json_object();

    json_set_u64(o, "sessions", q->count);
    json_set_u64(o, "within_2x", q->within_2x);
    json_set_u64(o, "took_less", q->below);
    json_set_u64(o, "took_more", q->above);
    json_set_u64(o, "limit_sessions", q->limit_count);
    json_set_u64(o, "limit_within_2x", q->limit_within_2x);
    return o;
}

void api_plan(struct call *c)
{
    struct plan_call call = {c, json_array(), json_array()};
    json_t *body = json_object();

    sched_plan(&c->m->sched, add_planned, &call);
    api_set_time(body, "now", clock_real_usec());
    json_object_set_new(body, "nodes", plan_nodes(c->m));
    json_object_set_new(body, "running", call.running);
    json_object_set_new(body, "planned", call.planned);
    json_object_set_new(body, "estimates", estimates_json(&c->m->estimator.quality));
    reply_json(c, 200, body);
}
