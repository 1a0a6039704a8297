/* Invites and identities: in memory, in the store, and who is let in by them. */
#include "manager/joins.h"

#include "base/clock.h"
#include "base/log.h"
#include "manager/listen.h"
#include "manager/state.h"
#include "wire/join.h"

/* --- the store ---------------------------------------------------------------------------- */

static char *invite_id(const struct invite *i)
{
    return xasprintf("%ju", (uintmax_t)i->num);
}

static void invite_save(struct manager *m, const struct invite *i)
{
    _cleanup_free_ char *id = invite_id(i);
    json_t *body = json_object();

    json_set_str(body, "hash", i->hash);
    json_set_str(body, "node", i->node);
    json_set_str(body, "group", i->group);
    json_set_str(body, "by", i->by);
    json_set_u64(body, "until_usec", i->until_usec);
    doc_put(m, (struct store_doc){.kind = "invite", .id = id, .num = i->num}, body);
}

void identity_save(struct manager *m, const struct identity *id)
{
    json_t *body = json_object();

    json_set_str(body, "mark", id->mark);
    json_set_u64(body, "joined_usec", id->joined_usec);
    json_set_u64(body, "until_usec", id->until_usec);
    doc_put(m, (struct store_doc){.kind = "identity", .id = id->node}, body);
}

static int load_invite(struct manager *m, const struct store_doc *doc, const json_t *body)
{
    struct invite *i = xnew(struct invite);

    i->num = doc->num;
    i->until_usec = json_u64_or(body, "until_usec", 0);
    if (str_copy(i->hash, sizeof(i->hash), json_str_or(body, "hash", "")) < 0 ||
        str_copy(i->node, sizeof(i->node), json_str_or(body, "node", "")) < 0 ||
        str_copy(i->group, sizeof(i->group), json_str_or(body, "group", "")) < 0 ||
        str_copy(i->by, sizeof(i->by), json_str_or(body, "by", "")) < 0) {
        free(i);
        return -EINVAL;
    }
    map_set(&m->invites, i->hash, i);
    return 0;
}

static int load_identity(struct manager *m, const struct store_doc *doc, const json_t *body)
{
    struct identity *id = xnew(struct identity);

    id->joined_usec = json_u64_or(body, "joined_usec", 0);
    id->until_usec = json_u64_or(body, "until_usec", 0);
    if (str_copy(id->node, sizeof(id->node), doc->id) < 0 ||
        str_copy(id->mark, sizeof(id->mark), json_str_or(body, "mark", "")) < 0 || !id->mark[0]) {
        free(id);
        return -EINVAL;
    }
    map_set(&m->identities, id->node, id);
    return 0;
}

struct load {
    struct manager *m;
    int (*one)(struct manager *m, const struct store_doc *doc, const json_t *body);
    struct err *err;
};

static int load_doc(void *arg, const struct store_doc *doc)
{
    struct load *l = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;

    if (json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, NULL) < 0 ||
        l->one(l->m, doc, body) < 0)
        return err_set(l->err, -EINVAL, "%s '%s' in the store is malformed", doc->kind, doc->id);
    return 0;
}

int joins_load(struct manager *m, struct err *err)
{
    struct load invites = {m, load_invite, err}, identities = {m, load_identity, err};
    int r;

    map_init(&m->invites);
    map_init(&m->identities);
    throttle_init(&m->joins);
    r = store_list(m->store, &(struct store_filter){.kind = "invite"}, load_doc, &invites, err);
    if (r == 0)
        r = store_list(
            m->store, &(struct store_filter){.kind = "identity"}, load_doc, &identities, err);
    return r;
}

void joins_done(struct manager *m)
{
    map_done(&m->invites, free);
    map_done(&m->identities, free);
    throttle_done(&m->joins);
}

/* --- invites ------------------------------------------------------------------------------ */

struct invite *invite_new(struct manager *m, const struct invite *wanted, char text[TOKEN_TEXT_MAX])
{
    struct invite *i = xmemdup(wanted, sizeof(*wanted));

    token_make(JOIN_TOKEN_PREFIX, text);
    token_hash(text, i->hash);
    i->num = store_next(m->store, "invite");
    map_set(&m->invites, i->hash, i);
    invite_save(m, i);
    return i;
}

void invite_forget(struct manager *m, struct invite *i)
{
    _cleanup_free_ char *id = invite_id(i);

    store_del(m->store, "invite", id);
    map_remove(&m->invites, i->hash);
    free(i);
}

void joins_tick(struct manager *m, uint64_t now_usec)
{
    map_for_each (e, &m->invites) {
        struct invite *i = e->value;
        if (now_usec >= i->until_usec)
            invite_forget(m, i);
    }
}

/* --- identities --------------------------------------------------------------------------- */

bool identity_forget(struct manager *m, const char *node)
{
    struct identity *id = map_remove(&m->identities, node);

    if (!id)
        return false;
    store_del(m->store, "identity", id->node);
    free(id);
    return true;
}

struct identity *identity_new(
    struct manager *m, const char *node, const char *mark, uint64_t until_usec)
{
    struct identity *id = xnew(struct identity);

    STR_SET(id->node, node);
    STR_SET(id->mark, mark);
    id->joined_usec = clock_real_usec();
    id->until_usec = until_usec;
    free(map_set(&m->identities, node, id));
    identity_save(m, id);
    return id;
}

int joins_new_authority(struct manager *m, struct err *err)
{
    int r = pki_replace(&m->pki, m->config.state_dir, m->cluster, clock_real_usec(), err);

    if (r < 0)
        return r;
    map_for_each (e, &m->identities)
        identity_forget(m, e->key);
    store_put(m->store,
        &(struct store_doc){
            .kind = "cluster", .id = "ca", .name = m->pki.fingerprint, .body = "{}"});
    r = store_sync(m->store, err);
    if (r == 0)
        log_warning(
            "the cluster has a new authority %s: every node has to join again", m->pki.fingerprint);
    return r;
}

/* --- who asks ----------------------------------------------------------------------------- */

bool joins_speaks_for(const struct manager *m, const char *as, const char *node)
{
    return as[0] ? str_eq(as, node) : !map_get(&m->identities, node);
}

static bool admit_cert(struct call *c, const struct cert_info *cert)
{
    struct identity *id = map_get(&c->m->identities, cert->name);

    if (!str_eq(cert->role, JOIN_ROLE_NODE)) {
        reply_error(c, 403, "forbidden", "this is for agents; the certificate is no node's");
        return false;
    }
    if (!id || !str_eq(id->mark, cert->mark)) {
        reply_error(c, 403, "revoked",
            "the certificate of node '%s' is not taken any more: the node was removed or revoked, "
            "or "
            "another machine joined by its name; it has to join again ('muster node add')",
            cert->name);
        return false;
    }
    /* A store that was restored may know less of it than the certificate itself. */
    id->until_usec = MAX_OF(id->until_usec, cert->until_usec);
    STR_SET(c->node, id->node);
    return true;
}

bool call_admit_agent(struct call *c)
{
    const struct cert_info *cert = request_cert(c->rq);
    const struct token *t = cert ? NULL : call_bearer(c);

    if (cert)
        return admit_cert(c, cert);
    if (!t) {
        reply_error(c, 401, "no_certificate",
            "this is for agents, who show the certificate that they got when they joined; 'muster "
            "node add' says how");
    } else if (!t->agent) {
        reply_error(c, 403, "forbidden", "this is for agents; the token is of another kind");
    } else if (!c->m->config.tls_off && !address_is_loopback(request_peer(c->rq))) {
        reply_error(c, 403, "forbidden",
            "the agents' token is good on the manager's own machine only; elsewhere a node joins: "
            "'muster node add' says how");
    } else {
        c->node[0] = '\0';
        return true;
    }
    return false;
}
