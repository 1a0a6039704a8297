/*
 * The frame of the API: matches the route, finds out who asks, reads the body, maps errors to HTTP.
 * What a route does is in api_NOUN.c. A call whose peer has gone runs to its end and its reply is
 * dropped.
 */
#include "manager/api.h"

#include "base/crash.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/joins.h"
#include "manager/tokens.h"
#include "wire/public.h"

#define BODY_MAX (1024 * 1024)

void call_free(struct call *c)
{
    for (size_t i = 0; i < CALL_PARAMS_MAX; i++)
        free(c->params[i]);
    json_decref(c->body);
    free(c);
}

struct request *call_take_request(struct call *c)
{
    struct request *rq = c->rq;

    if (rq)
        request_on_gone(rq, NULL, NULL);
    call_free(c);
    return rq;
}

static void call_gone(struct request *rq, void *arg)
{
    struct call *c = arg;

    c->rq = NULL;
}

/* --- replies ------------------------------------------------------------------------------ */

static void send_json(struct request *rq, unsigned status, const json_t *body)
{
    _cleanup_free_ char *text = json_text(body);

    request_reply(rq, status, "application/json", text, strlen(text));
}

void reply_json(struct call *c, unsigned status, json_t *body)
{
    struct request *rq = call_take_request(c);

    if (rq)
        send_json(rq, status, body);
    json_decref(body);
}

struct waiting_reply {
    struct call *c;
    unsigned status;
    json_t *body;
};

static void reply_now(void *arg)
{
    struct waiting_reply *w = arg;

    crash_point("reply.after_commit", NULL);
    reply_json(w->c, w->status, w->body);
    free(w);
}

void reply_committed(struct call *c, unsigned status, json_t *body)
{
    struct waiting_reply *w = xnew(struct waiting_reply);

    *w = (struct waiting_reply){.c = c, .status = status, .body = body};
    store_after(c->m->store, reply_now, w);
}

json_t *api_error_json(const char *code, const char *message)
{
    json_t *error = json_object(), *body = json_object();

    json_set_str(error, "code", code);
    json_set_str(error, "message", message);
    json_object_set_new(body, "error", error);
    return body;
}

void reply_error(struct call *c, unsigned status, const char *code, const char *fmt, ...)
{
    _cleanup_free_ char *message = NULL;
    va_list ap;

    va_start(ap, fmt);
    message = xvasprintf(fmt, ap);
    va_end(ap);
    reply_json(c, status, api_error_json(code, message));
}

void reply_error_more(struct call *c, unsigned status, const char *code, const char *message,
    const char *key, json_t *more)
{
    json_t *body = api_error_json(code, message);

    json_object_set_new(body, key, more);
    reply_json(c, status, body);
}

void api_errno(int code, unsigned *ret_status, const char **ret_code)
{
    /* clang-format off */
    static const struct {
        int code;
        unsigned status;
        const char *word;
    } table[] = {
        { -EINVAL, 422, "invalid" },
        { -ERANGE, 422, "out_of_range" },
        { -E2BIG, 422, "never_fits" },
        { -ENOENT, 404, "not_found" },
        { -EEXIST, 409, "exists" },
        { -ENOTUNIQ, 409, "ambiguous" },
        { -ENOTEMPTY, 409, "not_empty" },
        { -EBUSY, 503, "busy" },
        { -EPROTO, 409, "wrong_state" },
        { -EACCES, 403, "forbidden" },
        { -EPERM, 403, "forbidden" },
        { -EMSGSIZE, 413, "too_large" },
        { -ENOSPC, 507, "no_space" },
        { -EHOSTUNREACH, 503, "node_unreachable" },
        { -ETIMEDOUT, 504, "timeout" },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].code == code) {
            *ret_status = table[i].status;
            *ret_code = table[i].word;
            return;
        }
    *ret_status = 500;
    *ret_code = "internal";
}

void reply_err(struct call *c, const struct err *err)
{
    unsigned status;
    const char *code;

    api_errno(err->code, &status, &code);
    if (status == 500)
        log_err("%s %s: %s", c->route->method, c->route->pattern, err_text(err));
    reply_error(c, status, code, "%s", err_text(err));
}

/* --- who asks ----------------------------------------------------------------------------- */

const struct token *call_bearer(const struct call *c)
{
    const char *h = request_header(c->rq, "authorization");
    char hash[65];

    if (!str_starts(h, "Bearer ") || strlen(h) > 256)
        return NULL;
    token_hash(h + strlen("Bearer "), hash);
    return map_get(&c->m->tokens, hash);
}

/* 0, or the status to refuse with. Of people: agents have call_admit_agent. */
static unsigned authorise(struct call *c)
{
    const struct token *t;

    if (c->route->who == WHO_ANYONE)
        return 0;
    t = call_bearer(c);
    if (!t)
        return 401;
    if (t->agent)
        return 403;
    c->user = map_get(&c->m->users, t->user);
    if (!c->user || c->user->disabled)
        return 401;
    if (c->route->who == WHO_ADMIN && c->user->role != ROLE_ADMIN)
        return 403;
    if (c->route->who == WHO_OPERATOR && c->user->role < ROLE_OPERATOR)
        return 403;
    return 0;
}

bool call_is_admin(const struct call *c)
{
    return c->user && c->user->role == ROLE_ADMIN;
}

void api_set_time(json_t *o, const char *key, uint64_t usec)
{
    public_set_time(o, key, usec != BOOK_FOREVER ? usec : 0);
}

json_t *api_share_json(const struct sched_share *share)
{
    json_t *o = json_object(), *gpus = json_array();

    json_set_str(o, "node", share->node);
    for (unsigned g = 0; g < NODE_GPUS_MAX; g++)
        if (share->gpus & (UINT64_C(1) << g))
            json_array_append_new(gpus, json_integer(g));
    json_object_set_new(o, "gpus", gpus);
    return o;
}

bool call_is_operator(const struct call *c)
{
    return c->user && c->user->role >= ROLE_OPERATOR;
}

bool call_query_u64(struct call *c, const char *key, uint64_t dflt, uint64_t max, uint64_t *ret)
{
    const char *text = request_query(c->rq, key);

    *ret = dflt;
    if (!text)
        return true;
    if (str_to_u64(text, max, ret) == 0)
        return true;
    reply_error(c, 400, "bad_query", "'%s' must be a whole number from 0 to %llu", key,
        (unsigned long long)max);
    return false;
}

bool call_query_flag(const struct call *c, const char *key)
{
    const char *text = request_query(c->rq, key);

    return text && !str_eq(text, "0") && !str_eq(text, "false");
}

int call_body_text(const struct call *c, const char *key, const char **ret, struct err *err)
{
    int r = json_get_str(c->body, key, ret, err);

    if (r < 0)
        err->code = -EINVAL;
    return r < 0 ? -EINVAL : 0;
}

/* --- routes ------------------------------------------------------------------------------- */

/* clang-format off */
const struct route api_routes[] = {
    { "GET", "/v1/version", WHO_ANYONE, 0, api_version },
    { "GET", "/v1/openapi.json", WHO_ANYONE, 0, api_static },
    { "GET", "/docs", WHO_ANYONE, 0, api_static },
    { "GET", "/docs/{}", WHO_ANYONE, 0, api_static },
    { "GET", "/v1/whoami", WHO_USER, 0, api_whoami },
    { "POST", "/v1/sessions", WHO_USER, ROUTE_JSON, api_session_create },
    { "GET", "/v1/sessions", WHO_USER, 0, api_session_list },
    { "GET", "/v1/sessions/{}", WHO_USER, 0, api_session_show },
    { "POST", "/v1/sessions/{}/stop", WHO_USER, ROUTE_JSON, api_session_stop },
    { "GET", "/v1/sessions/{}/why", WHO_USER, 0, api_session_why },
    { "GET", "/v1/sessions/{}/wait", WHO_USER, 0, api_session_wait },
    { "GET", "/v1/sessions/{}/ssh", WHO_USER, 0, api_session_ssh },
    { "GET", "/v1/sessions/{}/logs", WHO_USER, 0, api_session_logs },
    { "GET", "/v1/sessions/{}/exec", WHO_USER, ROUTE_UPGRADE, api_session_exec },
    { "GET", "/v1/sessions/{}/tcp", WHO_USER, ROUTE_UPGRADE, api_session_tcp },
    { "POST", "/v1/sessions/{}/extend", WHO_USER, ROUTE_JSON, api_session_extend },
    { "POST", "/v1/sessions/{}/hold", WHO_USER, ROUTE_JSON, api_session_hold },
    { "POST", "/v1/sessions/{}/release", WHO_USER, ROUTE_JSON, api_session_release },
    { "GET", "/v1/queue", WHO_USER, 0, api_queue },
    { "GET", "/v1/plan", WHO_USER, 0, api_plan },
    { "GET", "/v1/accounts", WHO_USER, 0, api_account_list },
    { "POST", "/v1/accounts", WHO_ADMIN, ROUTE_JSON, api_account_create },
    { "GET", "/v1/accounts/{}", WHO_USER, 0, api_account_show },
    { "PATCH", "/v1/accounts/{}", WHO_ADMIN, ROUTE_JSON, api_account_change },
    { "DELETE", "/v1/accounts/{}", WHO_ADMIN, 0, api_account_delete },
    { "GET", "/v1/policy", WHO_USER, 0, api_policy_show },
    { "PATCH", "/v1/policy", WHO_ADMIN, ROUTE_JSON, api_policy_change },
    { "GET", "/v1/topology", WHO_USER, 0, api_topology_show },
    { "PUT", "/v1/topology", WHO_ADMIN, ROUTE_JSON, api_topology_set },
    { "GET", "/v1/nodes", WHO_USER, 0, api_node_list },
    { "GET", "/v1/nodes/{}", WHO_USER, 0, api_node_show },
    { "DELETE", "/v1/nodes/{}", WHO_ADMIN, 0, api_node_delete },
    { "POST", "/v1/nodes/{}/drain", WHO_OPERATOR, ROUTE_JSON, api_node_drain },
    { "POST", "/v1/nodes/{}/resume", WHO_OPERATOR, ROUTE_JSON, api_node_resume },
    { "POST", "/v1/nodes/{}/lost", WHO_ADMIN, ROUTE_JSON, api_node_lost },
    { "POST", "/v1/nodes/{}/purge", WHO_ADMIN, ROUTE_JSON, api_node_purge },
    { "POST", "/v1/nodes/{}/group", WHO_OPERATOR, ROUTE_JSON, api_node_group },
    { "GET", "/v1/groups", WHO_USER, 0, api_group_list },
    { "POST", "/v1/groups", WHO_ADMIN, ROUTE_JSON, api_group_create },
    { "PATCH", "/v1/groups/{}", WHO_ADMIN, ROUTE_JSON, api_group_set },
    { "GET", "/v1/volumes", WHO_USER, 0, api_volume_list },
    { "POST", "/v1/volumes", WHO_USER, ROUTE_JSON, api_volume_create },
    { "DELETE", "/v1/volumes/{}", WHO_USER, 0, api_volume_delete },
    { "GET", "/v1/images", WHO_USER, 0, api_image_list },
    { "GET", "/v1/images/{*}", WHO_USER, 0, api_image_show },
    { "DELETE", "/v1/images/{*}", WHO_OPERATOR, 0, api_image_delete },
    { "PATCH", "/v1/images/{*}", WHO_OPERATOR, ROUTE_JSON, api_image_set },
    { "DELETE", "/v1/images", WHO_OPERATOR, 0, api_image_prune },
    { "POST", "/v1/images", WHO_USER, ROUTE_JSON, api_image_import },
    { "PUT", "/v1/images/{*}", WHO_USER, 0, api_image_upload },
    { "GET", "/v1/secrets", WHO_USER, 0, api_secret_list },
    { "POST", "/v1/secrets", WHO_USER, ROUTE_JSON, api_secret_put },
    { "DELETE", "/v1/secrets/{*}", WHO_USER, 0, api_secret_delete },
    { "GET", "/v1/events", WHO_USER, 0, api_event_list },
    { "GET", "/v1/users", WHO_ADMIN, 0, api_user_list },
    { "POST", "/v1/users", WHO_ADMIN, ROUTE_JSON, api_user_create },
    { "POST", "/v1/nodes/{}/revoke", WHO_ADMIN, ROUTE_JSON, api_node_revoke },
    { "POST", "/v1/join-tokens", WHO_OPERATOR, ROUTE_JSON, api_join_token_create },
    { "GET", "/v1/join-tokens", WHO_OPERATOR, 0, api_join_token_list },
    { "DELETE", "/v1/join-tokens/{}", WHO_OPERATOR, 0, api_join_token_delete },
    { "POST", "/v1/join", WHO_ANYONE, ROUTE_JSON, api_join },
    { "POST", "/v1/agent/certificate", WHO_AGENT, ROUTE_JSON, api_agent_certificate },
    { "GET", "/v1/agent/link", WHO_AGENT, ROUTE_UPGRADE, api_agent_link },
    { "GET", "/v1/agent/streams/{}", WHO_AGENT, ROUTE_UPGRADE, api_agent_stream },
    { "GET", "/v1/blobs/{}", WHO_AGENT, 0, api_blob },
    { 0 }
};
/* clang-format on */

/* Does the path fit the pattern? Fills params (heap) with the {} parts. */
static bool route_fits(const char *pattern, const char *path, char *params[CALL_PARAMS_MAX])
{
    size_t n = 0;

    while (*pattern && *path) {
        if (*pattern == '{') { /* {}: up to the next '/'; {*}: all the rest */
            bool rest = pattern[1] == '*';
            size_t len = rest ? strlen(path) : strcspn(path, "/");
            if (len == 0 || n == CALL_PARAMS_MAX)
                return false;
            free(params[n]);
            params[n++] = xstrndup(path, len);
            pattern += rest ? 3 : 2;
            path += len;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

static void call_body(struct request *rq, const char *body, size_t len, void *arg)
{
    struct call *c = arg;
    struct err err = ERR_INIT;

    if (len == 0)
        c->body = json_object();
    else if (json_parse(body, len, BODY_MAX, &c->body, &err) < 0) {
        reply_error(c, 400, "bad_json", "the body is not good JSON: %s", err_text(&err));
        return;
    }
    if (!json_is_object(c->body)) {
        reply_error(c, 400, "bad_json", "the body must be a JSON object");
        return;
    }
    c->route->fn(c);
}

static void reply_forbidden(struct call *c)
{
    enum role role = c->route->who == WHO_ADMIN ? ROLE_ADMIN : ROLE_OPERATOR;

    if (c->user)
        reply_error(c, 403, "forbidden",
            "this needs the role '%s'; you are '%s' with the role '%s'", role_name(role),
            c->user->name, role_name(c->user->role));
    else
        reply_error(c, 403, "forbidden", "this is for people; the token is of another kind");
}

static void call_run(struct call *c)
{
    bool agent = c->route->who == WHO_AGENT;
    unsigned refused = agent ? 0 : authorise(c);

    if (agent && !call_admit_agent(c))
        return;
    if (refused == 401)
        reply_error(c, 401, "not_signed_in",
            "no valid token; sign in, or set MUSTER_TOKEN (Authorization: Bearer ...)");
    else if (refused)
        reply_forbidden(c);
    else if ((c->route->flags & ROUTE_UPGRADE) && !request_wants_upgrade(c->rq))
        reply_error(c, 426, "websocket_needed", "this address speaks WebSocket only");
    else if (c->route->flags & ROUTE_JSON)
        request_read_body(c->rq, call_body, c);
    else
        c->route->fn(c);
}

void api_request(struct request *rq, void *arg)
{
    struct manager *m = arg;
    struct call *c = xnew(struct call);
    static const struct route none = {"?", "?"};
    bool path_known = false;

    c->m = m;
    c->rq = rq;
    c->route = &none;
    request_on_gone(rq, call_gone, c);
    for (const struct route *r = api_routes; r->method; r++) {
        if (!route_fits(r->pattern, request_path(rq), c->params))
            continue;
        path_known = true;
        if (str_eq(r->method, request_method(rq))) {
            c->route = r;
            call_run(c);
            return;
        }
    }
    if (path_known)
        reply_error(c, 405, "bad_method", "this address does not take %s", request_method(rq));
    else
        reply_error(c, 404, "no_such_address", "the API has no such address");
}
