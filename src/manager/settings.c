/* Owns the documents of kind "setting". What is refused changes nothing; what is taken is saved. */
#include "manager/settings.h"

#include "manager/launch.h"
#include "manager/state.h"
#include "sched/policy.h"

#define KIND "setting"

static void save(struct manager *m, const char *id, const json_t *body)
{
    _cleanup_free_ char *text = json_text(body);

    store_put(m->store, &(struct store_doc){.kind = KIND, .id = id, .body = text});
    store_event(m->store, "setting.changed", id, "", "{}");
}

/* --- policy --------------------------------------------------------------------------------- */

json_t *settings_policy_json(const struct manager *m)
{
    json_t *o = json_object();

    for (const struct policy_knob *k = policy_knobs; k->name; k++)
        json_set_u64(o, k->name, policy_get(&m->sched.options, k));
    return o;
}

static int read_policy(const json_t *body, struct pass_options *to, struct err *err)
{
    const char *key;
    json_t *value;
    int r = 0;

    json_object_foreach ((json_t *)body, key, value) {
        const struct policy_knob *k = policy_find(key);

        if (!k)
            return err_set(err, -EINVAL, "there is no '%.60s' in the policy", key);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return err_set(err, -EINVAL, "'%s' must be a whole number", key);
        r = policy_set(to, k, (uint64_t)json_integer_value(value), err);
        if (r < 0)
            return r;
    }
    return 0;
}

int settings_policy_change(struct manager *m, const json_t *body, struct err *err)
{
    struct pass_options to = m->sched.options;
    _cleanup_(json_decrefp) json_t *whole = NULL;
    int r = read_policy(body, &to, err);

    if (r < 0)
        return r;
    m->sched.options = to;
    whole = settings_policy_json(m);
    save(m, "policy", whole);
    pass_want(m);
    return 0;
}

/* --- topology ------------------------------------------------------------------------------- */

const char *settings_topology(const struct manager *m)
{
    return m->topology_text ? m->topology_text : "";
}

bool settings_place_node(const struct manager *m, struct node *n)
{
    const char *leaf = topology_leaf(&m->topology, n->name);
    const char *spine = topology_spine(&m->topology, leaf);
    bool changed = !str_eq(n->leaf, leaf) || !str_eq(n->spine, spine);

    STR_SET(n->leaf, leaf);
    STR_SET(n->spine, spine);
    return changed;
}

static int set_topology(struct manager *m, const char *text, struct err *err)
{
    struct topology t;
    int r = topology_parse(text, &t, err);

    if (r < 0)
        return r;
    topology_done(&m->topology);
    m->topology = t;
    free(m->topology_text);
    m->topology_text = xstrdup(text);
    return 0;
}

int settings_topology_set(struct manager *m, const char *text, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object();
    int r = set_topology(m, text, err);

    if (r < 0)
        return r;
    json_set_str(body, "text", text);
    save(m, "topology", body);
    map_for_each (e, &m->nodes) {
        struct mnode *n = e->value;
        if (settings_place_node(m, &n->node))
            node_save(m, n, "node.moved");
    }
    pass_want(m);
    return 0;
}

/* --- loading -------------------------------------------------------------------------------- */

int settings_load(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    if (str_eq(doc->id, "policy"))
        return read_policy(body, &m->sched.options, err);
    if (str_eq(doc->id, "topology"))
        return set_topology(m, json_str_or(body, "text", ""), err);
    return 0;
}

void settings_done(struct manager *m)
{
    topology_done(&m->topology);
    free(TAKE_PTR(m->topology_text));
}
