/*
 * Why a session waits, runs where it runs, or is over; and of one that waits, what else would start
 * earlier.
 */
#include "base/clock.h"
#include "manager/api.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "sched/what_if.h"

#define NODES_SHOWN 16 /* more are shown by classes */
#define CLASSES_MAX 32

static void add_line(json_t *lines, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void add_line(json_t *lines, const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    json_array_append_new(lines, json_string(text));
}

/* Nodes that are alike: of one capacity and GPU model, that take work or do not. */
struct node_class {
    const struct node *like;
    uint32_t nodes;
    struct resources free;
    uint64_t fits;
};

static bool is_like(const struct node_class *c, const struct node *n)
{
    const struct node *m = c->like;
    const char *model = n->capacity.gpus ? n->gpus[0].model : "";

    return m->state == n->state && m->drained == n->drained && m->capacity.mem == n->capacity.mem &&
        m->capacity.cpu_milli == n->capacity.cpu_milli && m->capacity.gpus == n->capacity.gpus &&
        str_eq(model, m->capacity.gpus ? m->gpus[0].model : "");
}

/* Classes are few; on a cluster of many the last one takes what is left. */
static struct node_class *class_of(struct node_class *list, uint32_t *count, const struct node *n)
{
    for (uint32_t i = 0; i < *count; i++)
        if (is_like(&list[i], n) || i + 1 == CLASSES_MAX)
            return &list[i];
    list[*count] = (struct node_class){.like = n};
    return &list[(*count)++];
}

static void add_class(json_t *lines, const struct node_class *c)
{
    char left[RESOURCES_TEXT_MAX], each[RESOURCES_TEXT_MAX];
    const struct node *n = c->like;

    resources_format(&c->free, left);
    resources_format(&n->capacity, each);
    if (c->nodes == 1)
        add_line(lines, "node %s (%s%s): free %s of %s; %llu of its containers fit", n->name,
            node_state_name(n->state), n->drained ? ", drained" : "", left, each,
            (unsigned long long)c->fits);
    else
        add_line(lines,
            "%u nodes like %s (%s%s, each %s): free %s together; %llu of its containers fit",
            c->nodes, n->name, node_state_name(n->state), n->drained ? ", drained" : "", each, left,
            (unsigned long long)c->fits);
}

static void why_nodes(struct manager *m, const struct session *s, json_t *lines)
{
    struct node_class list[CLASSES_MAX];
    uint32_t classes = 0;
    size_t count;
    _cleanup_free_ struct node_usage *nodes = pass_usage(m, &count);
    bool each = count <= NODES_SHOWN;

    for (size_t i = 0; i < count; i++) {
        const struct node *n = nodes[i].node;
        struct node_class one = {.like = n}, *c;

        if (!str_eq(n->group, s->group))
            continue;
        c = each ? &one : class_of(list, &classes, n);
        c->nodes++;
        resources_add(&c->free, &nodes[i].free);
        if (node_takes_work(n))
            c->fits += MIN_OF(resources_times(&s->each, &nodes[i].free), s->size);
        if (each)
            add_class(lines, &one);
    }
    for (uint32_t i = 0; i < classes; i++)
        add_class(lines, &list[i]);
}

static void why_pending(
    struct manager *m, const struct session *s, const struct sched_reason *why, json_t *lines)
{
    uint32_t ahead = why->position ? why->position - 1 : 0;

    if (why->position)
        add_line(lines, "%u session%s before it in the queue", ahead, ahead == 1 ? "" : "s");
    why_nodes(m, s, lines);
}

static void why_containers(struct manager *m, const struct session *s, json_t *lines)
{
    for (uint32_t i = 0; i < s->size; i++) {
        const struct container *c = &s->containers[i];
        const struct mnode *n = map_get(&m->nodes, c->node);
        bool away = n && n->node.state != NODE_UP;
        char end[320];
        add_line(lines, "%s%s%s: %s%s%s%s%s", c->name, c->node[0] ? " on " : "", c->node,
            container_state_name(c->state), c->end != END_NONE ? ", " : "",
            c->end != END_NONE ? container_end_describe(c, end, sizeof(end)) : "",
            away ? "; its node is " : "", away ? node_state_name(n->node.state) : "");
        if (c->text[0] && c->end == END_NONE)
            add_line(lines, "    %s", c->text);
    }
}

static void why_message(const struct session *s, json_t *body)
{
    char text[200];

    if (s->reason[0]) {
        json_set_str(body, "message", s->reason);
        return;
    }
    if (s->placed_usec)
        snprintf(text, sizeof(text), "placed %s",
            s->placed_mode == MODE_SINGLE_NODE
                ? "on one node, which could hold all of it"
                : "on the fewest nodes that could hold it, since no single one could");
    else
        snprintf(text, sizeof(text), "%s", session_state_name(s->state));
    json_set_str(body, "message", text);
}

/* --- what would start earlier ----------------------------------------------------------------- */

/* Tried in another thread: the queue may be long. */
struct question {
    uv_work_t work;
    struct call *call;
    json_t *body; /* all of the answer but this */
    struct what_if what_if;
};

static void ask(uv_work_t *work)
{
    struct question *q = work->data;

    what_if_run(&q->what_if);
}

static json_t *row_json(const struct what_if_row *r)
{
    json_t *o = json_object();

    switch (r->change) {
    case CHANGE_SIZE:
        json_set_u64(o, "size", r->value);
        break;
    case CHANGE_GPUS:
        json_set_u64(o, "gpus", r->value);
        break;
    case CHANGE_TIME:
        json_set_u64(o, "time_limit_usec", r->value);
        break;
    case CHANGE_MODEL:
        json_set_str(o, "gpu_model", r->model);
        break;
    case CHANGE_MODE:
        json_set_str(o, "mode", session_mode_name(MODE_MULTI_NODE));
        break;
    }
    return o;
}

static json_t *rows_json(const struct what_if *w)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < w->count; i++) {
        json_t *o = json_object();

        json_object_set_new(o, "change", row_json(&w->rows[i]));
        api_set_time(o, "start", w->rows[i].start_usec);
        json_set_bool(o, "now", w->rows[i].now);
        json_array_append_new(list, o);
    }
    return list;
}

static void answered(uv_work_t *work, int status)
{
    struct question *q = work->data;

    json_object_set_new(q->body, "what_if", rows_json(&q->what_if));
    reply_json(q->call, 200, q->body);
    what_if_done(&q->what_if);
    free(q);
}

/* Answers now when there is nothing to ask. */
static void reply_with_what_if(struct call *c, const struct session *s, json_t *body)
{
    struct question *q = xnew(struct question);

    if (s->state == SESSION_PENDING &&
        what_if_init(&q->what_if, &c->m->sched, s, clock_real_usec())) {
        q->call = c;
        q->body = body;
        q->work.data = q;
        if (uv_queue_work(c->m->loop, &q->work, ask, answered) == 0)
            return;
        what_if_done(&q->what_if);
    }
    free(q);
    json_object_set_new(body, "what_if", json_array());
    reply_json(c, 200, body);
}

void api_session_why(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);
    struct sched_reason why = {0};
    json_t *body, *lines;

    if (!s)
        return;
    body = json_object();
    lines = json_array();
    if (s->state == SESSION_PENDING)
        pass_reason(c->m, s, &why);
    json_set_str(body, "state", session_state_name(s->state));
    json_set_str(body, "result", session_result_name(s->result));
    json_set_str(body, "code", s->reason_code);
    why_message(s, body);
    json_set_str(body, "slurm", why.slurm);
    json_set_u64(body, "position", why.position);
    json_set_u64(body, "blocked_by", why.blocker);
    api_set_time(body, "planned_start", why.start_usec);
    if (s->state == SESSION_PENDING)
        why_pending(c->m, s, &why, lines);
    else
        why_containers(c->m, s, lines);
    json_object_set_new(body, "details", lines);
    api_set_time(body, "checked", c->m->pass_usec);
    json_set_u64(body, "pass", c->m->pass_count);
    reply_with_what_if(c, s, body);
    session_free(loaded);
}
