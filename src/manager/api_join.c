/*
 * Joining: tokens for it, the one route that a machine without an identity may use, new
 * certificates for those that have one, and taking an identity away.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/gateway.h"
#include "manager/joins.h"
#include "manager/links.h"
#include "manager/listen.h"
#include "manager/state.h"

#define TTL_USEC (60 * 60 * USEC_PER_SEC)
#define TTL_MAX_USEC (7 * 24 * 60 * 60 * USEC_PER_SEC)
#define INVITES_MAX 1000

/* Answers itself when no certificate can be given. */
static bool check_open(struct call *c)
{
    if (c->m->pki.ca)
        return true;
    if (c->m->config.tls_off)
        reply_error(c, 409, "wrong_state", "there are no certificates here: 'tls.off' is set");
    else
        reply_error(c, 409, "wrong_state",
            "this manager is reached on its own machine only; let it listen on an address of the "
            "network: 'listen: [\"127.0.0.1:7480\", \"ADDRESS:7480\"]' in musterd.yaml");
    return false;
}

/* --- tokens ------------------------------------------------------------------------------- */

static json_t *invite_json(const struct invite *i)
{
    json_t *o = json_object();

    json_set_u64(o, "id", i->num);
    json_set_str(o, "node", i->node[0] ? i->node : NULL);
    json_set_str(o, "group", i->group[0] ? i->group : NULL);
    json_set_str(o, "by", i->by);
    api_set_time(o, "until", i->until_usec);
    return o;
}

static int ttl_from_json(const json_t *body, uint64_t *ret, struct err *err)
{
    const json_t *v = json_object_get(body, "ttl");
    int r = 0;

    *ret = TTL_USEC;
    if (json_is_integer(v) && json_integer_value(v) > 0)
        *ret = MIN_OF((uint64_t)json_integer_value(v), TTL_MAX_USEC) * USEC_PER_SEC;
    else if (json_is_string(v))
        r = duration_parse(json_string_value(v), ret, err);
    else if (v && !json_is_null(v))
        r = err_set(err, -EINVAL, "'ttl' must be seconds, or a duration like \"30m\"");
    if (r == 0 && (*ret < USEC_PER_SEC || *ret > TTL_MAX_USEC))
        r = err_set(err, -EINVAL, "'ttl' must be from 1s to 7d");
    return r;
}

static int invite_wanted(const struct call *c, struct invite *i, struct err *err)
{
    const char *node = json_str_or(c->body, "node", "");
    const char *group = json_str_or(c->body, "group", "");
    uint64_t ttl = 0;
    int r = node[0] ? name_check("a node's name", node, err) : 0;

    if (r == 0 && group[0] && !map_get(&c->m->groups, group))
        r = err_set(err, -ENOENT, "there is no group '%.63s'; see 'muster group ls'", group);
    if (r == 0)
        r = ttl_from_json(c->body, &ttl, err);
    if (r == 0 && map_count(&c->m->invites) >= INVITES_MAX)
        r = err_set(err, -ENOSPC, "there are %d join tokens already; see 'muster node tokens'",
            INVITES_MAX);
    if (r < 0)
        return r;
    STR_SET(i->node, node);
    STR_SET(i->group, group);
    STR_SET(i->by, c->user->name);
    i->until_usec = clock_real_usec() + ttl;
    return 0;
}

void api_join_token_create(struct call *c)
{
    _cleanup_(strv_freep) char **urls = NULL;
    struct invite wanted = {0}, *i;
    char token[TOKEN_TEXT_MAX];
    struct err err = ERR_INIT;
    json_t *body;

    if (!check_open(c))
        return;
    if (invite_wanted(c, &wanted, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    i = invite_new(c->m, &wanted, token);
    urls = listen_urls(c->m);
    body = invite_json(i);
    json_set_str(body, "token", token);
    json_set_str(body, "ca", c->m->pki.fingerprint);
    json_set_strv(body, "urls", urls);
    log_info("join token %ju: made by %s for %s", (uintmax_t)i->num, i->by,
        i->node[0] ? i->node : "any node");
    reply_committed(c, 201, body);
}

void api_join_token_list(struct call *c)
{
    json_t *list = json_array(), *body = json_object();

    map_for_each (e, &c->m->invites)
        json_array_append_new(list, invite_json(e->value));
    json_object_set_new(body, "tokens", list);
    reply_json(c, 200, body);
}

void api_join_token_delete(struct call *c)
{
    uint64_t num = 0;

    if (str_to_u64(c->params[0], INT64_MAX, &num) < 0)
        num = 0;
    map_for_each (e, &c->m->invites) {
        struct invite *i = e->value;
        if (i->num != num)
            continue;
        invite_forget(c->m, i);
        reply_committed(c, 200, json_object());
        return;
    }
    reply_error(c, 404, "not_found",
        "there is no join token %.20s: it was used, has expired or was revoked", c->params[0]);
}

/* --- joining ------------------------------------------------------------------------------ */

/* The token that the call brings; NULL: answered. Wrong ones count against the address. */
static struct invite *call_invite(struct call *c)
{
    const char *text = json_str_or(c->body, "token", ""), *peer = request_peer(c->rq);
    uint64_t now = clock_mono_usec(), wait = throttle_wait_usec(&c->m->joins, peer, now);
    char hash[TOKEN_HASH_MAX];
    struct invite *i;

    if (wait) {
        reply_error(c, 429, "too_many_tries",
            "too many wrong join tokens came from here; try again in %ju s",
            (uintmax_t)(wait / USEC_PER_SEC + 1));
        return NULL;
    }
    token_hash(text, hash);
    i = map_get(&c->m->invites, hash);
    if (i && clock_real_usec() < i->until_usec)
        return i;
    throttle_count(&c->m->joins, peer, now);
    log_warning("a join token from %s was refused", peer);
    reply_error(c, 403, "bad_token",
        "the join token is not valid: it was used, has expired or was revoked; 'muster node add' "
        "makes another one");
    return NULL;
}

/* -EPERM, -EEXIST: not under this name. */
static int check_node(
    const struct manager *m, const struct invite *i, const char *node, struct err *err)
{
    int r = name_check("a node's name", node, err);

    if (r < 0)
        return r;
    if (i->node[0] && !str_eq(i->node, node))
        return err_set(
            err, -EPERM, "the join token is for the node '%s', not for '%s'", i->node, node);
    if (!i->node[0] && map_get(&m->nodes, node))
        return err_set(err, -EEXIST,
            "there is a node '%s' already; give this one another name (--name), or replace that "
            "one "
            "by a token for it: 'muster node add %s'",
            node, node);
    return 0;
}

/* What the node was told before is not worth anything any more. */
static void cut_off(struct manager *m, const char *node, const char *why)
{
    struct mnode *n = map_get(&m->nodes, node);

    gateway_drop_node(m, node, why);
    if (n)
        links_drop(m, n, why);
}

static json_t *certificate_json(const struct manager *m, const struct identity *id, char *cert)
{
    json_t *o = json_object();

    json_set_str(o, "node", id->node);
    json_set_str(o, "cluster", m->cluster);
    json_set_str(o, "certificate", cert);
    api_set_time(o, "until", id->until_usec);
    return o;
}

/* As it wants to be called, else as the token says, else as the machine is called. */
static const char *node_wanted(const json_t *body, const struct invite *i)
{
    const char *node = json_str_or(body, "node", "");

    if (node[0])
        return node;
    return i->node[0] ? i->node : json_str_or(body, "host", "");
}

void api_join(struct call *c)
{
    const char *node;
    _cleanup_free_ char *cert = NULL;
    struct manager *m = c->m;
    struct invite *i;
    struct identity *id;
    struct mnode *n;
    struct err err = ERR_INIT;
    char mark[UUID_TEXT_LEN + 1];
    uint64_t until;

    if (!check_open(c))
        return;
    i = call_invite(c);
    if (!i)
        return;
    node = node_wanted(c->body, i);
    uuid_make(mark);
    if (check_node(m, i, node, &err) < 0 ||
        pki_node(&m->pki, json_str_or(c->body, "request", ""), node, mark,
            m->config.tls_lifetime_usec, clock_real_usec(), &cert, &until, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    cut_off(m, node, "another machine joined by this name");
    id = identity_new(m, node, mark, until);
    n = node_for(m, node);
    if (i->group[0] && map_get(&m->groups, i->group))
        STR_SET(n->node.group, i->group);
    log_info("node %s: joined from %s by token %ju of %s", node, request_peer(c->rq),
        (uintmax_t)i->num, i->by);
    invite_forget(m, i);
    node_save(m, n, "node.joined");
    reply_committed(c, 201, certificate_json(m, id, cert));
}

/* --- those that have one ------------------------------------------------------------------ */

void api_agent_certificate(struct call *c)
{
    struct identity *id = map_get(&c->m->identities, c->node);
    _cleanup_free_ char *cert = NULL;
    struct err err = ERR_INIT;
    uint64_t until;

    if (!id) {
        reply_error(c, 409, "wrong_state", "an agent without a certificate has none to renew");
        return;
    }
    if (pki_node(&c->m->pki, json_str_or(c->body, "request", ""), id->node, id->mark,
            c->m->config.tls_lifetime_usec, clock_real_usec(), &cert, &until, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    id->until_usec = MAX_OF(id->until_usec, until);
    identity_save(c->m, id);
    log_info("node %s: its certificate was renewed", id->node);
    reply_committed(c, 201, certificate_json(c->m, id, cert));
}

void api_node_revoke(struct call *c)
{
    struct mnode *n = map_get(&c->m->nodes, c->params[0]);

    if (!n) {
        reply_error(
            c, 404, "not_found", "there is no node '%.63s'; see 'muster node ls'", c->params[0]);
    } else if (!node_cut_off(c->m, n, "its certificate was revoked")) {
        reply_error(c, 409, "wrong_state", "node '%s' has no certificate", n->node.name);
    } else {
        log_warning("node %s: its certificate was revoked by %s", n->node.name, c->user->name);
        node_save(c->m, n, "node.revoked");
        reply_committed(c, 200, json_object());
    }
}

bool node_cut_off(struct manager *m, struct mnode *n, const char *why)
{
    if (!identity_forget(m, n->node.name))
        return false;
    cut_off(m, n->node.name, why);
    return true;
}

json_t *node_certificate_json(const struct manager *m, const char *node)
{
    const struct identity *id = map_get(&m->identities, node);
    json_t *o;

    if (!id)
        return json_null();
    o = json_object();
    api_set_time(o, "joined", id->joined_usec);
    api_set_time(o, "until", id->until_usec);
    return o;
}
