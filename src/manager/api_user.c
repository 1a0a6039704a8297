/* Who is there: version, whoami, users. */
#include "base/log.h"
#include "manager/api_page.h"
#include "manager/state.h"
#include "wire/user.h"

void api_version(struct call *c)
{
    json_t *o = json_object();

    json_set_str(o, "version", MUSTER_VERSION);
    json_set_u64(o, "api", 1);
    json_set_str(o, "cluster", c->m->cluster);
    json_set_str(o, "ca", c->m->pki.ca ? c->m->pki.fingerprint : NULL);
    reply_json(c, 200, o);
}

void api_whoami(struct call *c)
{
    reply_json(c, 200, user_to_json_public(c->user));
}

static json_t *listed(UNUSED const struct call *c, void *value, UNUSED void *arg)
{
    return user_to_json_public(value);
}

void api_user_list(struct call *c)
{
    reply_page(c, &(struct page_of){.what = "users", .map = &c->m->users, .to_json = listed});
}

static int user_wanted(struct call *c, struct user *u, struct err *err)
{
    const char *name = json_str_or(c->body, "name", ""),
               *role = json_str_or(c->body, "role", "user");
    uint64_t uid = 0;
    int r = name_check("a user's name", name, err);

    if (r < 0)
        return r;
    if (map_get(&c->m->users, name))
        return err_set(err, -EEXIST, "user '%s' is there already", name);
    STR_SET(u->name, name);
    if (role_parse(role, &u->role) < 0 || u->role == ROLE_NONE)
        return err_set(err, -EINVAL, "'role' must be user, operator or admin");
    r = json_get_u64(c->body, "uid", UINT32_MAX, &uid, err);
    if (r < 0 && r != -ENOENT)
        return r;
    r = user_assign(u, (uint32_t)store_next(c->m->store, "user") - 1, err);
    if (r < 0)
        return r;
    if (uid)
        u->uid = (uint32_t)uid;
    map_for_each (e, &c->m->users) {
        const struct user *o = e->value;
        if (o->uid == u->uid)
            return err_set(err, -EEXIST, "uid %u belongs to user '%s'", u->uid, o->name);
    }
    return user_check(u, err);
}

void api_user_create(struct call *c)
{
    struct user wanted = {0}, *u;
    char token[TOKEN_TEXT_MAX];
    struct err err = ERR_INIT;
    json_t *body;

    if (user_wanted(c, &wanted, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    u = xmemdup(&wanted, sizeof(wanted));
    map_set(&c->m->users, u->name, u);
    user_save(c->m, u);
    token_issue(c->m, u->name, false, token);
    body = user_to_json_public(u);
    json_set_str(body, "token", token);
    log_info("user %s: made with uid %u, role %s", u->name, u->uid, role_name(u->role));
    reply_committed(c, 201, body);
}
