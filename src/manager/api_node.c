/* Nodes and groups over HTTP. */
#include "base/clock.h"
#include "base/log.h"
#include "manager/api_page.h"
#include "manager/joins.h"
#include "manager/launch.h"
#include "manager/links.h"
#include "manager/state.h"
#include "wire/node.h"

/* Whose sessions are there: everybody may know how full a node is, only names of one's own. */
static json_t *sessions_on(const struct call *c, const struct node *n)
{
    json_t *list = json_array();

    map_for_each (e, &c->m->sessions) {
        const struct session *s = e->value;
        unsigned here = 0;
        for (uint32_t i = 0; i < s->size; i++)
            here += str_eq(s->containers[i].node, n->name) && container_holds(&s->containers[i]);
        if (!here || !user_may_see(c->user, s->owner))
            continue;
        json_t *o = json_object();
        json_set_str(o, "id", s->id);
        json_set_u64(o, "num", s->num);
        json_set_str(o, "name", s->name);
        json_set_str(o, "owner", s->owner);
        json_set_u64(o, "containers", here);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *node_json(const struct call *c, const struct mnode *mn, const struct node_usage *u)
{
    json_t *o = node_to_json_public(&mn->node);
    struct resources used = mn->node.capacity;
    json_t *quarantined = json_array();

    resources_sub(&used, &u->free);
    json_object_set_new(o, "used", resources_to_json_public(&used));
    json_object_set_new(o, "free", resources_to_json_public(&u->free));
    json_object_set_new(o, "sessions", sessions_on(c, &mn->node));
    map_for_each (e, &mn->quarantined)
        json_array_append_new(quarantined, json_string(e->key));
    json_object_set_new(o, "quarantined", quarantined);
    json_set_u64(o, "cleaning", map_count(&mn->cleaning));
    json_object_set_new(o, "certificate", node_certificate_json(c->m, mn->node.name));
    return o;
}

static json_t *listed_node(const struct call *c, void *value, void *arg)
{
    const struct mnode *n = value;

    return node_json(c, n, map_get(arg, n->node.name));
}

void api_node_list(struct call *c)
{
    struct map usage; /* name -> struct node_usage */
    size_t count;
    struct node_usage *all = pass_usage(c->m, &count);

    map_init(&usage);
    for (size_t i = 0; i < count; i++)
        map_set(&usage, all[i].node->name, &all[i]);
    reply_page(c,
        &(struct page_of){
            .what = "nodes", .map = &c->m->nodes, .to_json = listed_node, .arg = &usage});
    map_done(&usage, NULL);
    free(all);
}

static struct mnode *call_node(struct call *c)
{
    struct mnode *n = map_get(&c->m->nodes, c->params[0]);

    if (!n)
        reply_error(
            c, 404, "not_found", "there is no node '%.63s'; see 'muster node ls'", c->params[0]);
    return n;
}

static json_t *one_node_json(const struct call *c, const struct mnode *n)
{
    size_t count;
    struct node_usage *usage = pass_usage(c->m, &count);
    json_t *o = NULL;

    for (size_t i = 0; i < count && !o; i++)
        if (usage[i].node == &n->node)
            o = node_json(c, n, &usage[i]);
    free(usage);
    return o;
}

void api_node_show(struct call *c)
{
    struct mnode *n = call_node(c);

    if (n)
        reply_json(c, 200, one_node_json(c, n));
}

static void reply_changed(struct call *c, struct mnode *n, const char *event)
{
    node_save(c->m, n, event);
    pass_want(c->m);
    reply_committed(c, 200, one_node_json(c, n));
}

void api_node_drain(struct call *c)
{
    struct mnode *n = call_node(c);
    const char *by = json_str_or(c->body, "by", NULL);
    uint64_t from = 0;

    if (!n)
        return;
    if (by && clock_parse(by, &from, NULL) < 0) {
        reply_error(
            c, 422, "invalid", "'by' must be a time like \"2026-12-24T18:00:00Z\" (RFC 3339)");
        return;
    }
    n->node.drained = from <= clock_real_usec();
    n->node.drain_from_usec = n->node.drained ? 0 : from;
    str_copy(
        n->node.drain_reason, sizeof(n->node.drain_reason), json_str_or(c->body, "reason", ""));
    reply_changed(c, n, n->node.drained ? "node.drained" : "node.draining");
}

void nodes_tick(struct manager *m, uint64_t now_usec)
{
    map_for_each (e, &m->nodes) {
        struct mnode *n = e->value;
        if (!n->node.drain_from_usec || now_usec < n->node.drain_from_usec)
            continue;
        n->node.drained = true;
        n->node.drain_from_usec = 0;
        node_save(m, n, "node.drained");
        pass_want(m);
    }
}

void api_node_resume(struct call *c)
{
    struct mnode *n = call_node(c);

    if (!n)
        return;
    n->node.drained = false;
    n->node.drain_from_usec = 0;
    n->node.drain_reason[0] = '\0';
    reply_changed(c, n, "node.resumed");
}

void api_node_lost(struct call *c)
{
    struct mnode *n = call_node(c);

    if (!n)
        return;
    if (n->node.state == NODE_UP) {
        reply_error(c, 409, "wrong_state",
            "node '%s' is connected; drain it instead, or stop its agent first", n->node.name);
        return;
    }
    node_declare_lost(c->m, n, "an administrator declared the node lost");
    reply_committed(c, 200, one_node_json(c, n));
}

/* Does anything still count on it? */
static bool is_held(struct manager *m, const struct mnode *n)
{
    return map_count(&n->quarantined) > 0 || node_has_kind(m, n, KIND_TRAIN) ||
        node_has_kind(m, n, KIND_DEBUG);
}

void api_node_delete(struct call *c)
{
    struct mnode *n = call_node(c);

    if (!n)
        return;
    if (n->link && !map_get(&c->m->identities, n->node.name)) {
        reply_error(c, 409, "wrong_state",
            "node '%s' is connected and would be back at once; stop its agent first", n->node.name);
    } else if (is_held(c->m, n)) {
        reply_error(c, 409, "in_use",
            "node '%s' has sessions; stop them, or give them up with 'muster node lost %s'",
            n->node.name, n->node.name);
    } else {
        node_cut_off(c->m, n, "the node was removed");
        node_forget(c->m, n);
        links_tell_peers(c->m);
        pass_want(c->m);
        reply_committed(c, 200, json_object());
    }
}

void api_node_purge(struct call *c)
{
    struct mnode *n = call_node(c);

    if (!n)
        return;
    if (!n->link) {
        reply_error(c, 409, "wrong_state", "node '%s' is not connected", n->node.name);
        return;
    }
    node_purge(c->m, n);
    reply_json(c, 202, one_node_json(c, n));
}

void api_node_group(struct call *c)
{
    struct mnode *n = call_node(c);
    const char *group = json_str_or(c->body, "group", "");

    if (!n)
        return;
    if (!map_get(&c->m->groups, group)) {
        reply_error(c, 404, "not_found", "there is no group '%.63s'; see 'muster group ls'", group);
        return;
    }
    STR_SET(n->node.group, group);
    reply_changed(c, n, "node.group");
}

/* --- groups ------------------------------------------------------------------------------- */

static json_t *listed_group(const struct call *c, void *value, UNUSED void *arg)
{
    const struct group *g = value;
    json_t *o = group_to_json_public(g), *nodes = json_array();

    map_for_each (e, &c->m->nodes) {
        const struct mnode *n = e->value;
        if (str_eq(n->node.group, g->name))
            json_array_append_new(nodes, json_string(n->node.name));
    }
    json_object_set_new(o, "nodes", nodes);
    return o;
}

void api_group_list(struct call *c)
{
    reply_page(
        c, &(struct page_of){.what = "groups", .map = &c->m->groups, .to_json = listed_group});
}

static int limit_from_json(const json_t *body, const char *key, uint64_t *ret, struct err *err)
{
    const json_t *v = json_object_get(body, key);

    if (!v)
        return 0;
    if (json_is_null(v))
        *ret = 0;
    else if (json_is_integer(v) && json_integer_value(v) > 0)
        *ret = (uint64_t)json_integer_value(v) * USEC_PER_SEC;
    else if (!json_is_string(v) || duration_parse(json_string_value(v), ret, err) < 0)
        return err_set(err, -EINVAL, "'%s' must be seconds, a duration like \"8h\", or null", key);
    return 0;
}

static int kinds_from_json(const json_t *body, struct group *g, struct err *err)
{
    const json_t *list = json_object_get(body, "kinds"), *k;
    enum session_kind kind;
    size_t i;

    if (!list)
        return 0;
    g->allow_debug = g->allow_train = false;
    json_array_foreach (list, i, k) {
        if (!json_is_string(k) || session_kind_parse(json_string_value(k), &kind) < 0)
            return err_set(err, -EINVAL, "'kinds' must be a list of debug and train");
        *(kind == KIND_DEBUG ? &g->allow_debug : &g->allow_train) = true;
    }
    if (!g->allow_debug && !g->allow_train)
        return err_set(err, -EINVAL, "'kinds' must name at least one of debug and train");
    return 0;
}

/* Change what the body names. */
static int group_update_from_json(const json_t *body, struct group *g, struct err *err)
{
    const char *name = json_str_or(body, "name", g->name);
    uint64_t size_max = g->size_max;
    int r = name_check("a group's name", name, err);

    if (r == 0)
        STR_SET(g->name, name);
    if (r == 0)
        r = limit_from_json(body, "time_default", &g->time_default_usec, err);
    if (r == 0)
        r = limit_from_json(body, "time_max", &g->time_max_usec, err);
    if (r == 0)
        r = kinds_from_json(body, g, err);
    if (r == 0 && json_object_get(body, "size_max")) {
        r = json_get_u64(body, "size_max", SESSION_SIZE_MAX, &size_max, err);
        if (r == -ENOENT) /* null: none */
            r = 0, size_max = 0;
    }
    g->size_max = (uint32_t)size_max;
    if (r == 0 && g->time_max_usec && g->time_default_usec > g->time_max_usec)
        r = err_set(err, -EINVAL, "'time_default' must not be more than 'time_max'");
    return r;
}

void api_group_create(struct call *c)
{
    struct group made = {.allow_debug = true, .allow_train = true};
    struct err err = ERR_INIT;

    if (group_update_from_json(c->body, &made, &err) < 0) {
        reply_err(c, &err);
    } else if (map_get(&c->m->groups, made.name)) {
        reply_error(c, 409, "exists", "group '%s' is there already", made.name);
    } else {
        struct group *g = xmemdup(&made, sizeof(made));
        map_set(&c->m->groups, g->name, g);
        group_save(c->m, g);
        reply_committed(c, 201, group_to_json_public(g));
    }
}

void api_group_set(struct call *c)
{
    struct group *g = map_get(&c->m->groups, c->params[0]);
    struct group changed;
    struct err err = ERR_INIT;

    if (!g) {
        reply_error(
            c, 404, "not_found", "there is no group '%.63s'; see 'muster group ls'", c->params[0]);
        return;
    }
    changed = *g;
    if (group_update_from_json(c->body, &changed, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    if (!str_eq(changed.name, g->name)) {
        reply_error(c, 422, "invalid", "a group cannot be renamed");
        return;
    }
    *g = changed;
    group_save(c->m, g);
    pass_want(c->m);
    reply_committed(c, 200, group_to_json_public(g));
}
