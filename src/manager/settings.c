/* What is refused changes nothing; what is taken is saved. */
#include "manager/settings.h"

#include "manager/launch.h"
#include "manager/state.h"
#include "sched/policy.h"

/* --- policy --------------------------------------------------------------------------------- */

json_t *settings_policy_json(const struct manager *m)
{
    json_t *o = json_object();

    for (const struct policy_knob *k = policy_knobs; k->name; k++)
        json_set_u64(o, k->name, policy_get(&m->sched.options, k));
    return o;
}

int settings_policy_change(struct manager *m, const json_t *body, struct err *err)
{
    struct pass_options to = m->sched.options;
    int r = policy_read(body, &to, err);

    if (r < 0)
        return r;
    m->sched.options = to;
    setting_save(m, "policy", settings_policy_json(m));
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
    json_t *body;
    int r = set_topology(m, text, err);

    if (r < 0)
        return r;
    body = json_object();
    json_set_str(body, "text", text);
    setting_save(m, "topology", body);
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
        return policy_read(body, &m->sched.options, err);
    if (str_eq(doc->id, "topology"))
        return set_topology(m, json_str_or(body, "text", ""), err);
    return 0;
}

void settings_done(struct manager *m)
{
    topology_done(&m->topology);
    free(TAKE_PTR(m->topology_text));
}
