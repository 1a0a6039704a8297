/*
 * Loading and saving the manager's nouns. Owns the documents' shape in the store: which columns a
 * kind fills, and which event its change makes. Decides nothing.
 */
#include "manager/state.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/strv.h"
#include "manager/accounts.h"
#include "manager/epoch.h"
#include "manager/history.h"
#include "manager/launch.h"
#include "manager/overlay.h"
#include "manager/secrets.h"
#include "manager/settings.h"
#include "manager/tokens.h"
#include "wire/node.h"
#include "wire/session.h"
#include "wire/user.h"

/* --- saving ------------------------------------------------------------------------------- */

void doc_put(struct manager *m, struct store_doc doc, json_t *body)
{
    _cleanup_free_ char *text = json_text(body);

    doc.body = text;
    store_put(m->store, &doc);
    json_decref(body);
}

static void emit(
    struct manager *m, const char *type, const char *subject, const char *owner, json_t *body)
{
    _cleanup_free_ char *text = json_text(body);

    store_event(m->store, type, subject, owner, text);
    json_decref(body);
}

void session_save(struct manager *m, const struct session *s)
{
    struct store_doc doc = {
        .kind = "session",
        .id = s->id,
        .name = s->name,
        .owner = s->owner,
        .state = session_state_name(s->state),
        .num = s->num,
        .class = session_kind_name(s->kind),
        .group = s->group,
        .submitted = s->submitted_usec,
        .ended = session_is_over(s) ? MAX_OF(s->ended_usec, (uint64_t)1) : 0,
    };
    char type[48];
    json_t *body = json_object();

    assert(session_check(s, NULL) == 0);
    doc_put(m, doc, session_to_json_stored(s));
    json_set_u64(body, "num", s->num);
    json_set_str(body, "name", s->name);
    json_set_str(body, "state", session_state_name(s->state));
    json_set_str(body, "result", session_result_name(s->result));
    json_set_str(body, "code", s->reason_code);
    json_set_str(body, "message", s->reason);
    json_set_u64(body, "attempt", s->attempt);
    snprintf(type, sizeof(type), "session.%s", session_state_name(s->state));
    emit(m, type, s->id, s->owner, body);
    pass_session_changed(m, s->id);
}

void node_save(struct manager *m, const struct mnode *n, const char *event)
{
    json_t *body = json_object();

    doc_put(m,
        (struct store_doc){
            .kind = "node", .id = n->node.name, .state = node_state_name(n->node.state)},
        node_to_json_stored(&n->node));
    json_set_str(body, "state", node_state_name(n->node.state));
    json_set_bool(body, "drained", n->node.drained);
    emit(m, event, n->node.name, "", body);
    pass_node_changed(m, n->node.name);
}

static void free_node(void *p)
{
    struct mnode *n = p;

    map_done(&n->cleaning, NULL);
    map_done(&n->quarantined, free);
    node_done(&n->node);
    free(n);
}

void node_forget(struct manager *m, struct mnode *n)
{
    store_del(m->store, "node", n->node.name);
    emit(m, "node.removed", n->node.name, "", json_object());
    pass_node_changed(m, n->node.name);
    map_remove(&m->nodes, n->node.name);
    free_node(n);
}

void group_save(struct manager *m, const struct group *g)
{
    doc_put(m, (struct store_doc){.kind = "group", .id = g->name}, group_to_json_stored(g));
    emit(m, "group.changed", g->name, "", json_object());
}

void user_save(struct manager *m, const struct user *u)
{
    doc_put(m, (struct store_doc){.kind = "user", .id = u->name}, user_to_json_stored(u));
    emit(m, "user.changed", u->name, u->name, json_object());
}

static char *volume_key(const char *owner, const char *name)
{
    return xasprintf("%s/%s", owner, name);
}

void volume_save(struct manager *m, const struct volume *v)
{
    _cleanup_free_ char *key = volume_key(v->owner, v->name);
    json_t *body = json_object();

    json_set_str(body, "name", v->name);
    json_set_str(body, "owner", v->owner);
    json_set_u64(body, "created_usec", v->created_usec);
    doc_put(m, (struct store_doc){.kind = "volume", .id = key, .owner = v->owner, .name = v->name},
        body);
    emit(m, "volume.created", v->name, v->owner, json_object());
}

void volume_forget(struct manager *m, struct volume *v)
{
    _cleanup_free_ char *key = volume_key(v->owner, v->name);

    store_del(m->store, "volume", key);
    emit(m, "volume.removed", v->name, v->owner, json_object());
    map_remove(&m->volumes, key);
    free(v);
}

void image_save(struct manager *m, const struct image *i, const char *event)
{
    doc_put(m, (struct store_doc){.kind = "image", .id = i->name}, image_to_json(i));
    if (event)
        emit(m, event, i->name, "", json_object());
}

void setting_save(struct manager *m, const char *id, json_t *body)
{
    doc_put(m, (struct store_doc){.kind = "setting", .id = id}, body);
    emit(m, "setting.changed", id, "", json_object());
}

void image_forget(struct manager *m, struct image *i)
{
    store_del(m->store, "image", i->name);
    emit(m, "image.removed", i->name, "", json_object());
    map_remove(&m->images, i->name);
    image_free(i);
}

static void token_save(struct manager *m, const struct token *t)
{
    json_t *body = json_object();

    json_set_str(body, "user", t->user);
    json_set_bool(body, "agent", t->agent);
    doc_put(m, (struct store_doc){.kind = "token", .id = t->hash, .owner = t->user}, body);
}

void token_issue(struct manager *m, const char *user, bool agent, char text[TOKEN_TEXT_MAX])
{
    struct token *t = xnew(struct token);

    token_make(TOKEN_PREFIX, text);
    token_hash(text, t->hash);
    STR_SET(t->user, user);
    t->agent = agent;
    map_set(&m->tokens, t->hash, t);
    token_save(m, t);
}

#define NUM_TEXT_MAX 24

static const char *num_key(uint64_t num, char text[NUM_TEXT_MAX])
{
    snprintf(text, NUM_TEXT_MAX, "%llu", (unsigned long long)num);
    return text;
}

void session_add(struct manager *m, struct session *s)
{
    char num[NUM_TEXT_MAX];

    map_set(&m->sessions, s->id, s);
    map_set(&m->nums, num_key(s->num, num), s);
    overlay_take(m, s);
}

void session_forget(struct manager *m, struct session *s)
{
    char num[NUM_TEXT_MAX];

    map_remove(&m->sessions, s->id);
    map_remove(&m->nums, num_key(s->num, num));
    overlay_free(m, s);
}

struct session *session_by_num(const struct manager *m, uint64_t num)
{
    char text[NUM_TEXT_MAX];

    return map_get(&m->nums, num_key(num, text));
}

struct by_num {
    uint64_t num;
    struct session *found;
};

static int take_num(void *arg, const struct store_doc *doc)
{
    struct by_num *b = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;

    if (doc->num == b->num && json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, NULL) == 0)
        (void)session_from_json_stored(body, &b->found, NULL);
    return 0;
}

struct session *session_load_num(struct manager *m, uint64_t num)
{
    struct store_filter f = {.kind = "session", .before_num = num + 1, .limit = 1};
    struct by_num b = {num, NULL};

    (void)store_list(m->store, &f, take_num, &b, NULL);
    return b.found;
}

/* --- loading ------------------------------------------------------------------------------ */

struct load {
    struct manager *m;
    struct err *err;
    int (*one)(struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err);
};

static int load_doc(void *arg, const struct store_doc *doc)
{
    struct load *l = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;
    int r = json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, l->err);

    if (r == 0)
        r = l->one(l->m, body, doc, l->err);
    if (r < 0)
        return err_prefix(l->err, "%s '%s' in the store", doc->kind, doc->id);
    return 0;
}

static int load_session(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct session *s = NULL;
    int r = session_from_json_stored(body, &s, err);

    if (r < 0)
        return r;
    s->waits_for_others = s->depends != NULL; /* that is looked at when all are loaded */
    session_add(m, s);
    pass_session_changed(m, s->id);
    return 0;
}

static int load_node(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct mnode *n = xnew(struct mnode);
    int r = node_from_json_stored(body, &n->node, err);

    if (r < 0) {
        free(n);
        return r;
    }
    /* Nobody is connected to a manager that has just started. */
    if (n->node.state == NODE_UP)
        n->node.state = NODE_UNREACHABLE;
    n->node.seen_usec = clock_real_usec();
    map_init(&n->cleaning);
    map_init(&n->quarantined);
    map_set(&m->nodes, n->node.name, n);
    pass_node_changed(m, n->node.name);
    return 0;
}

static int load_group(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct group *g = xnew(struct group);
    int r = group_from_json_stored(body, g, err);

    if (r < 0)
        free(g);
    else
        map_set(&m->groups, g->name, g);
    return r;
}

static int load_user(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct user *u = xnew(struct user);
    int r = user_from_json_stored(body, u, err);

    if (r < 0)
        free(u);
    else
        map_set(&m->users, u->name, u);
    return r;
}

static int load_token(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct token *t = xnew(struct token);

    if (str_copy(t->hash, sizeof(t->hash), doc->id) < 0 ||
        str_copy(t->user, sizeof(t->user), json_str_or(body, "user", "")) < 0) {
        free(t);
        return err_set(err, -EINVAL, "malformed");
    }
    t->agent = json_bool_or(body, "agent", false);
    map_set(&m->tokens, t->hash, t);
    return 0;
}

static int load_volume(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct volume *v = xnew(struct volume);

    if (str_copy(v->name, sizeof(v->name), json_str_or(body, "name", "")) < 0 ||
        str_copy(v->owner, sizeof(v->owner), json_str_or(body, "owner", "")) < 0) {
        free(v);
        return err_set(err, -EINVAL, "malformed");
    }
    v->created_usec = json_u64_or(body, "created_usec", 0);
    map_set(&m->volumes, doc->id, v);
    return 0;
}

static int load_image(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct image *i = NULL;
    int r = image_from_json(body, &i, err);

    if (r == 0)
        map_set(&m->images, i->name, i);
    return r;
}

static int load_secret(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    return secret_load(m, body, err);
}

static int load_kind(struct manager *m, const struct store_filter *filter,
    int (*one)(struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err),
    struct err *err)
{
    struct load l = {.m = m, .err = err, .one = one};

    return store_list(m->store, filter, load_doc, &l, err);
}

static int load_all(struct manager *m, struct err *err)
{
    /* clang-format off */
    const struct {
        struct store_filter filter;
        int (*one)(struct manager *, const json_t *, const struct store_doc *, struct err *);
    } kinds[] = {
        { { .kind = "setting" }, settings_load },
        { { .kind = "group" }, load_group },
        { { .kind = "user" }, load_user },
        { { .kind = "account" }, accounts_load },
        { { .kind = "use" }, accounts_load_use },
        { { .kind = "token" }, load_token },
        { { .kind = "volume" }, load_volume },
        { { .kind = "image" }, load_image },
        { { .kind = "secret" }, load_secret },
        { { .kind = "node" }, load_node },
        { { .kind = "session", .not_state = "ended" }, load_session },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        int r = load_kind(m, &kinds[i].filter, kinds[i].one, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int load_cluster(void *arg, const struct store_doc *doc)
{
    return str_copy(arg, UUID_TEXT_LEN + 1, doc->name);
}

/* The cluster's own document: its id, made once. */
static int cluster_open(struct manager *m, struct err *err)
{
    int r = store_get(m->store, "cluster", "self", load_cluster, m->cluster, err);

    if (r != -ENOENT)
        return r;
    uuid_make(m->cluster);
    store_put(m->store,
        &(struct store_doc){.kind = "cluster", .id = "self", .name = m->cluster, .body = "{}"});
    return 0;
}

static int write_token_file(
    struct manager *m, const char *file, const char *user, bool agent, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", m->config.state_dir, file);
    char text[TOKEN_TEXT_MAX + 1];
    size_t n;

    token_issue(m, user, agent, text);
    n = strlen(text);
    text[n] = '\n';
    return fs_write_atomic(path, text, n + 1, 0600, err);
}

static int first_start(struct manager *m, struct err *err)
{
    int r;

    if (!map_get(&m->groups, "default")) {
        struct group *g = xnew(struct group);
        STR_SET(g->name, "default");
        g->allow_debug = g->allow_train = true;
        map_set(&m->groups, g->name, g);
        group_save(m, g);
    }
    if (map_count(&m->users) > 0)
        return 0;
    struct user *u = xnew(struct user);
    STR_SET(u->name, "admin");
    u->role = ROLE_ADMIN;
    r = user_assign(u, (uint32_t)store_next(m->store, "user") - 1, err);
    if (r < 0) {
        free(u);
        return r;
    }
    map_set(&m->users, u->name, u);
    user_save(m, u);
    r = write_token_file(m, "admin.token", u->name, false, err);
    if (r == 0)
        r = write_token_file(m, "agent.token", "", true, err);
    return r;
}

int state_load(struct manager *m, struct err *err)
{
    int r;

    map_init(&m->sessions);
    map_init(&m->nums);
    map_init(&m->networks);
    map_init(&m->nodes);
    map_init(&m->groups);
    map_init(&m->users);
    map_init(&m->tokens);
    map_init(&m->volumes);
    map_init(&m->images);
    map_init(&m->imports);
    map_init(&m->secrets);
    map_init(&m->streams);
    map_init(&m->idempotency);
    map_init(&m->dirty);
    map_init(&m->accounts);
    map_init(&m->uses);
    map_init(&m->changed_sessions);
    map_init(&m->changed_nodes);
    sched_init(&m->sched);
    estimator_init(&m->estimator);
    r = cluster_open(m, err);
    if (r == 0)
        r = load_all(m, err);
    accounts_loaded(m);
    m->depends_wanted = true;
    if (r == 0)
        r = history_load(m, err);
    if (r == 0)
        r = first_start(m, err);
    if (r < 0)
        return r;
    return epoch_begin(m, 0, err);
}

static void free_session(void *p)
{
    session_free(p);
}

static void free_image(void *p)
{
    image_free(p);
}

void state_done(struct manager *m)
{
    sched_done(&m->sched);
    estimator_done(&m->estimator);
    accounts_done(m);
    settings_done(m);
    map_done(&m->changed_sessions, NULL);
    map_done(&m->changed_nodes, NULL);
    map_done(&m->nums, NULL);
    map_done(&m->networks, NULL);
    map_done(&m->sessions, free_session);
    map_done(&m->nodes, free_node);
    map_done(&m->groups, free);
    map_done(&m->users, free);
    map_done(&m->tokens, free);
    map_done(&m->volumes, free);
    map_done(&m->images, free_image);
    map_done(&m->imports, NULL);
    map_done(&m->secrets, secret_free);
    map_done(&m->streams, NULL);
    map_done(&m->idempotency, free);
    map_done(&m->dirty, NULL);
}

/* --- finding ------------------------------------------------------------------------------ */

bool user_may_see(const struct user *viewer, const char *owner)
{
    return viewer->role == ROLE_ADMIN || str_eq(viewer->name, owner);
}

#define ID_PREFIX_MIN 4

struct match {
    struct session *by_name, *by_prefix;
    struct session *other; /* of the same name, and as likely meant */
    unsigned prefixes;
};

/* By the name that was asked for: one's own before others'. */
static void match_name(struct match *mt, const struct user *viewer, struct session *s)
{
    bool own = str_eq(s->owner, viewer->name);
    bool had = mt->by_name && str_eq(mt->by_name->owner, viewer->name);

    if (mt->by_name && own == had)
        mt->other = s;
    else if (!mt->by_name || own) {
        mt->by_name = s;
        mt->other = NULL;
    }
}

static void match_one(
    struct match *mt, const struct user *viewer, const char *ref, struct session *s)
{
    if (!user_may_see(viewer, s->owner))
        return;
    if (str_eq(s->name, ref))
        match_name(mt, viewer, s);
    if (strlen(ref) >= ID_PREFIX_MIN && str_starts(s->id, ref)) {
        mt->by_prefix = s;
        mt->prefixes++;
    }
}

/* By the name or a prefix of the id. *ret NULL: it is none of those that live. */
static int look_for(const struct manager *m, const struct user *viewer, const char *ref,
    struct session **ret, struct err *err)
{
    struct match mt = {0};

    map_for_each (e, &m->sessions)
        match_one(&mt, viewer, ref, e->value);
    if (mt.other)
        return err_set(err, -ENOTUNIQ,
            "several sessions are called '%s' (%ju and %ju, say); give the number or the id", ref,
            (uintmax_t)mt.by_name->num, (uintmax_t)mt.other->num);
    if (!mt.by_name && mt.prefixes > 1)
        return err_set(err, -ENOTUNIQ, "'%s' fits several sessions; give more of the id", ref);
    *ret = mt.by_name ? mt.by_name : mt.by_prefix;
    return 0;
}

/* By the id or the number. */
static struct session *look_up(
    const struct manager *m, const struct user *viewer, const char *ref, uint64_t num)
{
    struct session *exact = map_get(&m->sessions, ref);

    if (exact && user_may_see(viewer, exact->owner))
        return exact;
    exact = num ? session_by_num(m, num) : NULL;
    return exact && user_may_see(viewer, exact->owner) ? exact : NULL;
}

struct ended_search {
    struct manager *m;
    const struct user *viewer;
    const char *ref;
    uint64_t num;
    struct session *found;
    unsigned prefixes;
    struct err *err;
};

static int ended_match(void *arg, const struct store_doc *doc)
{
    struct ended_search *e = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;
    bool prefix = strlen(e->ref) >= ID_PREFIX_MIN && str_starts(doc->id, e->ref);

    if (!user_may_see(e->viewer, doc->owner) || map_get(&e->m->sessions, doc->id))
        return 0;
    if (!prefix && !(e->num && doc->num == e->num) && !str_eq(doc->name, e->ref))
        return 0;
    if (e->found) { /* lists come newest first: only a second id prefix matters */
        e->prefixes += prefix;
        return 0;
    }
    if (json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, e->err) < 0)
        return -EIO;
    e->prefixes += prefix;
    return session_from_json_stored(body, &e->found, e->err);
}

static int find_ended(struct ended_search *e, struct session **ret, struct err *err)
{
    struct store_filter by_name = {.kind = "session", .name = e->ref, .limit = 1000};
    struct store_filter by_num = {.kind = "session", .before_num = e->num + 1, .limit = 1};
    struct store_filter any = {.kind = "session", .limit = 100000};
    int r = 0;

    if (uuid_is_valid(e->ref))
        r = store_get(e->m->store, "session", e->ref, ended_match, e, err);
    else if (e->num)
        r = store_list(e->m->store, &by_num, ended_match, e, err);
    if (r == -ENOENT)
        r = 0;
    if (r == 0 && !e->found)
        r = store_list(e->m->store, &by_name, ended_match, e, err);
    if (r == 0 && !e->found && strlen(e->ref) >= ID_PREFIX_MIN)
        r = store_list(e->m->store, &any, ended_match, e, err);
    if (r < 0)
        return r;
    if (e->prefixes > 1) {
        session_free(e->found);
        return err_set(err, -ENOTUNIQ, "'%s' fits several sessions; give more of the id", e->ref);
    }
    if (!e->found)
        return err_set(err, -ENOENT, "there is no session '%s'; see 'muster ls --ended'", e->ref);
    *ret = e->found;
    return 0;
}

int session_find(struct manager *m, const struct user *viewer, const char *ref,
    struct session **ret, struct session **ret_loaded, struct err *err)
{
    struct session *s;
    uint64_t num = 0;
    int r;

    *ret_loaded = NULL;
    if (strlen(ref) > NAME_MAX_LEN || !str_is_clean(ref, strlen(ref)))
        return err_set(err, -ENOENT, "that is no session's id, number or name");
    if (str_to_u64(ref, INT64_MAX - 1, &num) < 0)
        num = 0;
    s = look_up(m, viewer, ref, num);
    if (!s) {
        r = look_for(m, viewer, ref, &s, err);
        if (r < 0)
            return r;
    }
    if (!s) {
        struct ended_search e = {.m = m, .viewer = viewer, .ref = ref, .num = num, .err = err};
        r = find_ended(&e, &s, err);
        if (r < 0)
            return r;
        *ret_loaded = s;
    }
    *ret = s;
    return 0;
}

struct volume *volume_find(struct manager *m, const char *owner, const char *name)
{
    _cleanup_free_ char *key = volume_key(owner, name);

    return map_get(&m->volumes, key);
}

char *volume_path(const struct manager *m, const struct volume *v)
{
    return xasprintf("%s/%s/%s", m->config.volumes_dir, v->owner, v->name);
}

#define REQUEST_KEEP_USEC (24 * 60 * 60 * USEC_PER_SEC)
#define REQUEST_PAGE 1000

static int forget_request(void *arg, const struct store_doc *doc)
{
    struct manager *m = arg;

    free(map_remove(&m->idempotency, doc->id));
    store_del(m->store, "request", doc->id);
    return 0;
}

void requests_forget_old(struct manager *m, uint64_t now_usec)
{
    struct store_filter old = {
        .kind = "request", .before_num = now_usec - REQUEST_KEEP_USEC, .limit = REQUEST_PAGE};

    store_list(m->store, &old, forget_request, m, NULL);
}
