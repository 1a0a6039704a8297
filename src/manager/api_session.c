/*
 * Sessions over HTTP: create (and dry run), list, show, stop, why, ssh. Checks that need the
 * manager's knowledge (image, volumes, group, what can never fit) are here; those of the request
 * alone are the model's.
 */
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/api.h"
#include "manager/launch.h"
#include "manager/overlay.h"
#include "manager/sshkeys.h"
#include "manager/state.h"
#include "sched/sched.h"
#include "wire/session.h"

#define IDEMPOTENCY_KEY_MAX 64
#define LIST_DEFAULT 100
#define LIST_MAX 1000

/* --- create ------------------------------------------------------------------------------- */

static int check_image(struct manager *m, struct session *s, struct err *err)
{
    char name[IMAGE_REF_MAX + 1], **command = NULL;
    const struct image *i;
    int r;

    if (image_ref_normal(s->image, name, err) < 0)
        return err_prefix(err, "'image'");
    i = map_get(&m->images, name);
    if (!i)
        return err_set(err, -ENOENT,
            "there is no image '%s'; see 'muster image ls', or import it with 'muster image "
            "import'",
            s->image);
    STR_SET(s->image_id, i->id);
    image_command(i, s->command, s->kind == KIND_TRAIN, &command, NULL);
    s->has_command = strv_len(command) > 0;
    r = session_request_check(s, s->has_command, err);
    if (r == 0)
        r = session_environment_check(s, i->env, command, err);
    strv_free(command);
    return r;
}

static int check_group(struct manager *m, struct session *s, struct err *err)
{
    const struct group *g = map_get(&m->groups, s->group);

    if (!g)
        return err_set(err, -ENOENT, "there is no group '%s'; see 'muster group ls'", s->group);
    if (s->kind == KIND_DEBUG ? !g->allow_debug : !g->allow_train)
        return err_set(
            err, -EACCES, "group '%s' takes no %s sessions", g->name, session_kind_name(s->kind));
    if (g->size_max && s->size > g->size_max)
        return err_set(err, -ERANGE, "group '%s' takes sessions of at most %u containers", g->name,
            g->size_max);
    if (!s->time_limit_usec)
        s->time_limit_usec = g->time_default_usec ? g->time_default_usec : g->time_max_usec;
    if (g->time_max_usec && s->time_limit_usec > g->time_max_usec) {
        char text[DURATION_TEXT_MAX];
        return err_set(err, -ERANGE, "the time limit of group '%s' is at most %s", g->name,
            duration_format(g->time_max_usec, text));
    }
    return 0;
}

static int check_volumes(struct manager *m, const struct session *s, struct err *err)
{
    for (uint32_t i = 0; i < s->mount_count; i++)
        if (!volume_find(m, s->owner, s->mounts[i].volume))
            return err_set(err, -ENOENT,
                "you have no volume '%s'; see 'muster volume ls', or make it with 'muster volume "
                "create %s'",
                s->mounts[i].volume, s->mounts[i].volume);
    return 0;
}

static int check_could_ever(
    struct manager *m, const struct session *s, uint32_t *ret_largest, struct err *err)
{
    const struct node **nodes = xnew_array(const struct node *, map_count(&m->nodes));
    size_t n = 0;
    int r;

    map_for_each (e, &m->nodes) {
        const struct mnode *node = e->value;
        if (str_eq(node->node.group, s->group))
            nodes[n++] = &node->node;
    }
    r = sched_could_ever(s, nodes, n, ret_largest, err);
    free(nodes);
    return r;
}

/* Everything but whether it fits the nodes. */
static int check_request(struct manager *m, struct session *s, struct err *err)
{
    int r = check_image(m, s, err);

    if (r == 0)
        r = check_group(m, s, err);
    if (r == 0)
        r = check_volumes(m, s, err);
    if (r == 0 && s->finish_usec && launch_last_start(s) <= clock_real_usec())
        r = err_set(err, -EINVAL,
            "'finish_by' is too soon: with its 'time_limit' it could not be over by then");
    return r;
}

static int make_keys(struct session *s, struct err *err)
{
    char comment[96];
    int r;

    snprintf(comment, sizeof(comment), "session-%llu", (unsigned long long)s->num);
    r = ssh_keypair_make(comment, &s->ssh_private, &s->ssh_public, err);
    if (r == 0)
        r = ssh_keypair_make(comment, &s->ssh_host_private, &s->ssh_host_public, err);
    return r;
}

static int accept_session(struct manager *m, struct session *s, struct err *err)
{
    uint64_t now = clock_real_usec();
    int r;

    r = overlay_assign(m, s, err);
    if (r < 0)
        return r;
    uuid_make(s->id);
    s->num = store_next(m->store, "session");
    if (!s->name[0])
        snprintf(s->name, sizeof(s->name), "session-%llu", (unsigned long long)s->num);
    r = make_keys(s, err);
    if (r < 0)
        return r;
    session_make_containers(s);
    s->master_port = SESSION_MASTER_PORT;
    s->state = SESSION_PENDING;
    s->submitted_usec = s->state_usec = now;
    s->deadline_usec = launch_last_start(s);
    STR_SET(s->reason_code, "queued");
    STR_SET(s->reason, "waits for the scheduler");
    map_set(&m->sessions, s->id, s);
    session_save(m, s);
    pass_want(m);
    log_info("session %s (%llu): submitted by %s, %u x %u.%03u CPUs", s->id,
        (unsigned long long)s->num, s->owner, s->size, s->each.cpu_milli / 1000,
        s->each.cpu_milli % 1000);
    return 0;
}

/* When it is planned to start, at the latest; null: not planned, or now. */
static void set_start(json_t *o, uint64_t usec)
{
    char time[CLOCK_TEXT_MAX];

    json_set_str(o, "planned_start", usec ? clock_format(usec, time) : NULL);
}

/* For one that waits with its place in the queue. */
static json_t *session_json(struct manager *m, struct session *s)
{
    struct sched_reason why;
    json_t *o;

    if (s->state != SESSION_PENDING)
        return session_to_json_public(s);
    pass_reason(m, s, &why);
    o = session_to_json_public(s);
    json_set_u64(o, "position", why.position);
    set_start(o, why.start_usec);
    return o;
}

static json_t *dry_placement(const struct sched_start *start)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < start->size; i++) {
        json_t *o = json_object(), *gpus = json_array();
        char name[16];
        container_name_make(i, name);
        json_set_str(o, "name", name);
        json_set_str(o, "node", start->shares[i].node);
        for (unsigned g = 0; g < NODE_GPUS_MAX; g++)
            if (start->shares[i].gpus & (UINT64_C(1) << g))
                json_array_append_new(gpus, json_integer(g));
        json_object_set_new(o, "gpus", gpus);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *dry_run(struct manager *m, const struct session *s)
{
    json_t *body = json_object();
    struct sched_reason why = {0};
    struct sched_start start;
    struct err err = ERR_INIT;
    uint32_t largest;
    bool fits;

    if (check_could_ever(m, s, &largest, &err) < 0) {
        json_set_bool(body, "possible", false);
        json_set_bool(body, "fits", false);
        json_set_str(body, "message", err_text(&err));
        json_set_u64(body, "largest", largest);
        json_object_set_new(body, "placement", json_array());
        return body;
    }
    fits = pass_try(m, s, &start, &why);
    json_set_bool(body, "possible", true);
    json_set_bool(body, "fits", fits);
    json_set_str(body, "message", fits ? "it would start now" : why.text);
    json_set_u64(body, "largest", fits ? s->size : why.largest);
    set_start(body, why.start_usec);
    json_object_set_new(body, "placement", dry_placement(&start));
    sched_start_done(&start);
    return body;
}

/* "OWNER/KEY", or NULL when there is none. -EINVAL for a bad one. */
static int idempotency_key(struct call *c, char **ret, struct err *err)
{
    const char *key = request_header(c->rq, "idempotency-key");

    *ret = NULL;
    if (!key)
        return 0;
    if (!key[0] || strlen(key) > IDEMPOTENCY_KEY_MAX || !str_is_clean(key, strlen(key)))
        return err_set(
            err, -EINVAL, "Idempotency-Key must be 1 to %d characters", IDEMPOTENCY_KEY_MAX);
    *ret = xasprintf("%s/%s", c->user->name, key);
    return 0;
}

static int request_doc(void *arg, const struct store_doc *doc)
{
    return str_copy(arg, UUID_TEXT_LEN + 1, doc->name);
}

/* The session that this key made: in memory when it is fresh, else in the store. */
static bool request_known(struct manager *m, const char *key, char id[UUID_TEXT_LEN + 1])
{
    const char *fresh = map_get(&m->idempotency, key);

    if (fresh)
        return str_copy(id, UUID_TEXT_LEN + 1, fresh) == 0;
    return store_get(m->store, "request", key, request_doc, id, NULL) == 0;
}

static void request_remember(struct manager *m, const char *key, const struct session *s)
{
    free(map_set(&m->idempotency, key, xstrdup(s->id)));
    store_put(m->store,
        &(struct store_doc){
            .kind = "request", .id = key, .name = s->id, .num = s->submitted_usec, .body = "{}"});
}

static bool answer_again(struct call *c, const char *key)
{
    char id[UUID_TEXT_LEN + 1];
    struct session *s, *loaded = NULL;
    struct err err = ERR_INIT;

    if (!key || !request_known(c->m, key, id))
        return false;
    if (session_find(c->m, c->user, id, &s, &loaded, &err) < 0)
        return false;
    reply_committed(c, 200, session_to_json_public(s));
    session_free(loaded);
    return true;
}

void api_session_create(struct call *c)
{
    _cleanup_(session_freep) struct session *s = session_new();
    _cleanup_free_ char *key = NULL;
    struct err err = ERR_INIT;
    uint32_t largest;
    int r;

    r = idempotency_key(c, &key, &err);
    if (r == 0 && answer_again(c, key))
        return;
    if (r == 0)
        r = session_request_from_json(c->body, s, &err);
    STR_SET(s->owner, c->user->name);
    if (r == 0)
        r = check_request(c->m, s, &err);
    if (r < 0) {
        reply_err(c, &err);
        return;
    }
    if (s->nice < 0 && !call_is_operator(c)) {
        reply_error(c, 403, "forbidden", "'nice' below 0 is for operators");
        return;
    }
    if (call_query_flag(c, "dry_run")) {
        session_make_containers(s);
        reply_json(c, 200, dry_run(c->m, s));
        return;
    }
    r = check_could_ever(c->m, s, &largest, &err);
    if (r < 0 && largest > 0)
        err_set(&err, err.code, "%.180s; the largest size that could run is %u", err_text(&err),
            largest);
    if (r == 0)
        r = accept_session(c->m, s, &err);
    if (r < 0) {
        reply_err(c, &err);
        return;
    }
    if (key)
        request_remember(c->m, key, s);
    reply_committed(c, 201, session_to_json_public(s));
    TAKE_PTR(s);
}

/* --- list and show ------------------------------------------------------------------------ */

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

/* The session of the route's first parameter, or the answer that there is none. */
static struct session *call_session(struct call *c, struct session **ret_loaded)
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

void api_session_stop(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);
    json_t *body;

    if (!s)
        return;
    if (loaded) { /* over already: asking twice is no mistake */
        reply_json(c, 200, session_to_json_public(s));
        session_free(loaded);
        return;
    }
    char id[UUID_TEXT_LEN + 1];
    STR_SET(id, s->id);
    launch_stop(c->m, s, RESULT_CANCELLED, "cancelled", json_bool_or(c->body, "now", false),
        "stopped by %s", c->user->name);
    s = map_get(&c->m->sessions, id);
    if (s) {
        body = session_to_json_public(s);
    } else { /* it was pending: ended in this turn */
        body = json_object();
        json_set_str(body, "id", id);
        json_set_str(body, "state", "ended");
        json_set_str(body, "result", "cancelled");
    }
    reply_committed(c, 202, body);
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

/* --- why ---------------------------------------------------------------------------------- */

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

static void why_pending(
    struct manager *m, const struct session *s, const struct sched_reason *why, json_t *lines)
{
    size_t count;
    struct node_usage *nodes = pass_usage(m, &count);
    char free_text[RESOURCES_TEXT_MAX], all_text[RESOURCES_TEXT_MAX];
    uint32_t ahead = why->position ? why->position - 1 : 0;

    if (why->position)
        add_line(lines, "%u session%s before it in the queue", ahead, ahead == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        const struct node *n = nodes[i].node;
        if (!str_eq(n->group, s->group))
            continue;
        add_line(lines, "node %s (%s%s): free %s of %s; %u of its containers fit", n->name,
            node_state_name(n->state), n->drained ? ", drained" : "",
            resources_format(&nodes[i].free, free_text), resources_format(&n->capacity, all_text),
            node_takes_work(n) ? MIN_OF(resources_times(&s->each, &nodes[i].free), s->size) : 0);
    }
    free(nodes);
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

void api_session_why(struct call *c)
{
    struct session *loaded = NULL, *s = call_session(c, &loaded);
    struct sched_reason why = {0};
    json_t *body, *lines;
    char time[CLOCK_TEXT_MAX];

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
    set_start(body, why.start_usec);
    if (s->state == SESSION_PENDING)
        why_pending(c->m, s, &why, lines);
    else
        why_containers(c->m, s, lines);
    json_object_set_new(body, "details", lines);
    json_set_str(body, "checked", c->m->pass_usec ? clock_format(c->m->pass_usec, time) : NULL);
    json_set_u64(body, "pass", c->m->pass_count);
    reply_json(c, 200, body);
    session_free(loaded);
}
