/*
 * Sessions over HTTP: create, and dry run. Checks that need the manager's knowledge (image,
 * volumes, group, what can never fit) are here; those of the request alone are the model's.
 */
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/accounts.h"
#include "manager/api.h"
#include "manager/depends.h"
#include "manager/first_use.h"
#include "manager/launch.h"
#include "manager/sshkeys.h"
#include "manager/state.h"
#include "sched/sched.h"
#include "wire/session.h"

#define IDEMPOTENCY_KEY_MAX 64

static int check_image(struct manager *m, struct session *s, struct err *err)
{
    char name[IMAGE_REF_MAX + 1];
    const struct image *i;

    if (image_ref_normal(s->image, name, err) < 0)
        return err_prefix(err, "'image'");
    i = map_get(&m->images, name);
    return i ? first_use_take(s, i, err) : first_use_check(m, s, err);
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
    if (!s->time_limit_usec && s->kind == KIND_DEBUG && !s->finish_usec)
        s->time_limit_usec = m->sched.options.lease_usec;
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
    s->estimate_usec = estimator_guess(&m->estimator, s);
    STR_SET(s->reason_code, "queued");
    STR_SET(s->reason, "waits for the scheduler");
    session_add(m, s);
    depends_note(m, s);
    m->depends_wanted |= s->depends != NULL;
    session_save(m, s);
    pass_want(m);
    first_use_begin(m, s);
    log_info("session %s (%llu): submitted by %s, %u x %u.%03u CPUs", s->id,
        (unsigned long long)s->num, s->owner, s->size, s->each.cpu_milli / 1000,
        s->each.cpu_milli % 1000);
    return 0;
}

static json_t *dry_placement(const struct sched_start *start)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < start->size; i++) {
        json_t *o = api_share_json(&start->shares[i]);
        char name[16];

        container_name_make(i, name);
        json_set_str(o, "name", name);
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
    api_set_time(body, "planned_start", why.start_usec);
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
        r = depends_check(c->m, c->user, s, &err);
    if (r == 0)
        r = account_choose(c->m, c->user, s, &err);
    if (r == 0)
        r = check_request(c->m, s, &err);
    if (r < 0) {
        reply_err(c, &err);
        return;
    }
    if (s->qos == QOS_HIGH && !call_is_operator(c)) {
        reply_error(c, 403, "forbidden", "'qos' high is for operators");
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
