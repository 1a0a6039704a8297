/* Secrets in memory and in the store, which is readable by root only. */
#include "manager/secrets.h"

#include "base/clock.h"
#include "base/str.h"
#include "image/ref.h"

static char *key_of(const char *owner, const char *registry)
{
    return xasprintf("%s/%s", owner, registry);
}

void secret_free(void *p)
{
    struct secret *s = p;

    if (s->password)
        explicit_bzero(s->password, strlen(s->password));
    free(s->password);
    free(s);
}

static void emit(struct manager *m, const char *type, const struct secret *s)
{
    store_event(m->store, type, s->registry, s->owner, "{}");
}

static void save(struct manager *m, const struct secret *s)
{
    _cleanup_free_ char *key = key_of(s->owner, s->registry);
    _cleanup_(json_decrefp) json_t *j = json_object();
    _cleanup_free_ char *text = NULL;

    json_set_str(j, "owner", s->owner);
    json_set_str(j, "registry", s->registry);
    json_set_str(j, "user", s->user);
    json_set_str(j, "password", s->password);
    json_set_u64(j, "created_usec", s->created_usec);
    text = json_text(j);
    store_put(m->store, &(struct store_doc){.kind = "secret", .id = key, .body = text});
    explicit_bzero(text, strlen(text));
    emit(m, "secret.changed", s);
}

/* "HOST[:PORT]" or "HOST[:PORT]/PATH": a reference with a host and without a tag. */
static int check_registry(const char *registry, struct err *err)
{
    _cleanup_free_ char *probe = xasprintf("%s%s", registry, strchr(registry, '/') ? "" : "#x");
    struct image_ref ref;

    if (image_ref_parse(probe, &ref, NULL) == 0 && ref.host[0] && !ref.digest[0] &&
        str_eq(ref.tag, "latest") && !str_ends(probe, ":latest"))
        return 0;
    return err_set(err, -EINVAL, "'registry' must be HOST, HOST:PORT or one with a path behind it");
}

static int check_text(
    const char *what, const char *text, size_t max, const char *never, struct err *err)
{
    size_t len = strlen(text);

    if (len == 0 || len > max || strpbrk(text, never) || !str_is_clean(text, len))
        return err_set(err, -EINVAL, "'%s' must be text of 1 to %zu bytes", what, max);
    return 0;
}

static int put(struct manager *m, const char *owner, const char *registry, const char *user,
    const char *password, uint64_t created, struct secret **ret, struct err *err)
{
    _cleanup_free_ char *key = key_of(owner, registry);
    struct secret *s, *old;
    int r;

    if ((r = check_registry(registry, err)) < 0 ||
        (r = check_text("username", user, sizeof(s->user) - 1, ":\r\n", err)) < 0 ||
        (r = check_text("password", password, SECRET_TEXT_MAX, "\r\n", err)) < 0)
        return r;
    s = xnew(struct secret);
    STR_SET(s->owner, owner);
    STR_SET(s->registry, registry);
    STR_SET(s->user, user);
    s->password = xstrdup(password);
    s->created_usec = created;
    old = map_set(&m->secrets, key, s);
    if (old)
        secret_free(old);
    *ret = s;
    return 0;
}

int secret_put(struct manager *m, const char *owner, const char *registry, const char *user,
    const char *password, struct err *err)
{
    struct secret *s;
    int r = put(m, owner, registry, user, password, clock_real_usec(), &s, err);

    if (r == 0)
        save(m, s);
    return r;
}

int secret_load(struct manager *m, const json_t *body, struct err *err)
{
    struct secret *s;

    return put(m, json_str_or(body, "owner", ""), json_str_or(body, "registry", ""),
        json_str_or(body, "user", ""), json_str_or(body, "password", ""),
        json_u64_or(body, "created_usec", 0), &s, err);
}

int secret_forget(struct manager *m, const char *owner, const char *registry, struct err *err)
{
    _cleanup_free_ char *key = key_of(owner, registry);
    struct secret *s = map_remove(&m->secrets, key);

    if (!s)
        return err_set(
            err, -ENOENT, "there is no secret for '%.200s'; see 'muster secret ls'", registry);
    store_del(m->store, "secret", key);
    emit(m, "secret.removed", s);
    secret_free(s);
    return 0;
}

static void add_auth(json_t *auths, const struct secret *s)
{
    json_t *entry = json_object();
    _cleanup_free_ char *from = s->owner[0] ? xasprintf("a secret of %s", s->owner)
                                            : xstrdup("a secret of the cluster");

    json_set_str(entry, "username", s->user);
    json_set_str(entry, "password", s->password);
    json_set_str(entry, "from", from);
    json_object_set_new(auths, s->registry, entry);
}

json_t *secrets_auths(const struct manager *m, const char *user)
{
    json_t *auths = json_object(), *doc;

    map_for_each (e, &m->secrets) {
        const struct secret *s = e->value;
        if (!s->owner[0])
            add_auth(auths, s);
    }
    map_for_each (e, &m->secrets) {
        const struct secret *s = e->value;
        if (s->owner[0] && str_eq(s->owner, user))
            add_auth(auths, s);
    }
    if (json_object_size(auths) == 0) {
        json_decref(auths);
        return NULL;
    }
    doc = json_object();
    json_object_set_new(doc, "auths", auths);
    return doc;
}
