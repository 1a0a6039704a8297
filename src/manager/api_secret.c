/* Secrets over HTTP: set, listed without what is secret in them, removed. */
#include "base/clock.h"
#include "image/credentials.h"
#include "manager/api_page.h"
#include "manager/secrets.h"

static json_t *secret_json(const struct secret *s)
{
    json_t *o = json_object();
    char time[CLOCK_TEXT_MAX];

    json_set_str(o, "registry", s->registry);
    json_set_str(o, "owner", s->owner[0] ? s->owner : NULL);
    json_set_str(o, "username", s->user);
    json_set_str(o, "created_at", clock_format(s->created_usec, time));
    return o;
}

static bool may_see(const struct call *c, const void *value)
{
    const struct secret *s = value;

    return !s->owner[0] || str_eq(s->owner, c->user->name);
}

static json_t *listed(const struct call *c, void *value, void *arg)
{
    return secret_json(value);
}

void api_secret_list(struct call *c)
{
    reply_page(c,
        &(struct page_of){
            .what = "secrets", .map = &c->m->secrets, .may_see = may_see, .to_json = listed});
}

/* Whose secret is meant: the caller's, or the cluster's. NULL: refused, and answered. */
static const char *owner_of(struct call *c, bool cluster)
{
    if (!cluster)
        return c->user->name;
    if (call_is_admin(c))
        return "";
    reply_error(c, 403, "forbidden", "secrets of the cluster need the role 'admin'");
    return NULL;
}

/* {"registry", "username", "password"} */
static int put_one(struct call *c, const char *owner, json_t *done, struct err *err)
{
    const char *registry, *user, *password;

    if (json_get_str(c->body, "registry", &registry, err) < 0 ||
        json_get_str(c->body, "username", &user, err) < 0 ||
        json_get_str(c->body, "password", &password, err) < 0 ||
        secret_put(c->m, owner, registry, user, password, err) < 0)
        return -EINVAL;
    json_array_append_new(done, json_string(registry));
    return 0;
}

/* {"auths": {...}}: what Docker's configuration has. */
static int put_auths(struct call *c, const char *owner, json_t *done, struct err *err)
{
    const json_t *entry = NULL;
    const char *key;
    int r = credentials_check(c->body, err);

    json_object_foreach (json_object_get(c->body, "auths"), key, entry) {
        _cleanup_(credentials_done) struct credentials who = {0};
        _cleanup_free_ char *registry = NULL;

        if (r < 0)
            break;
        r = credentials_read(key, entry, &registry, &who);
        if (r == 0 && !who.user)
            r = err_set(err, -EINVAL, "'%.100s' holds a token, which ends by itself", key);
        if (r == 0)
            r = secret_put(c->m, owner, registry, who.user, who.password, err);
        if (r == 0)
            json_array_append_new(done, json_string(registry));
    }
    return r;
}

void api_secret_put(struct call *c)
{
    const char *owner = owner_of(c, json_bool_or(c->body, "cluster", false));
    json_t *done, *o;
    struct err err = ERR_INIT;
    int r;

    if (!owner)
        return;
    done = json_array();
    r = json_object_get(c->body, "auths") ? put_auths(c, owner, done, &err)
                                          : put_one(c, owner, done, &err);
    if (r < 0) {
        json_decref(done);
        err.code = -EINVAL;
        reply_err(c, &err);
        return;
    }
    o = json_object();
    json_object_set_new(o, "registries", done);
    json_set_str(o, "owner", owner[0] ? owner : NULL);
    reply_committed(c, 200, o);
}

void api_secret_delete(struct call *c)
{
    const char *owner = owner_of(c, call_query_flag(c, "cluster"));
    struct err err = ERR_INIT;

    if (!owner)
        return;
    if (secret_forget(c->m, owner, c->params[0], &err) < 0)
        reply_err(c, &err);
    else
        reply_committed(c, 200, json_object());
}
