/* The policy and the topology over HTTP. */
#include "manager/api.h"
#include "manager/settings.h"

void api_policy_show(struct call *c)
{
    reply_json(c, 200, settings_policy_json(c->m));
}

void api_policy_change(struct call *c)
{
    struct err err = ERR_INIT;

    if (settings_policy_change(c->m, c->body, &err) < 0)
        reply_err(c, &err);
    else
        reply_committed(c, 200, settings_policy_json(c->m));
}

static json_t *topology_json(const struct manager *m)
{
    json_t *o = json_object();

    json_set_str(o, "text", settings_topology(m));
    return o;
}

void api_topology_show(struct call *c)
{
    reply_json(c, 200, topology_json(c->m));
}

void api_topology_set(struct call *c)
{
    const char *text;
    struct err err = ERR_INIT;

    if (call_body_text(c, "text", &text, &err) < 0 || settings_topology_set(c->m, text, &err) < 0)
        reply_err(c, &err);
    else
        reply_committed(c, 200, topology_json(c->m));
}
