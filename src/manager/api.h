/*
 * The API's frame: the route table with the role that each route needs, who is asking, bodies,
 * replies that wait for the commit, errors.
 */
#ifndef MANAGER_API_H
#define MANAGER_API_H

#include "base/json.h"
#include "manager/manager.h"

enum api_who { WHO_ANYONE, WHO_USER, WHO_OPERATOR, WHO_ADMIN, WHO_AGENT };

#define CALL_PARAMS_MAX 3

struct call { /* one request; freed by its reply */
    struct manager *m;
    struct request *rq;            /* NULL once the peer is gone: replies are dropped then */
    const struct user *user;       /* who asks; NULL for WHO_ANYONE and agents */
    char node[NAME_MAX_LEN + 1];   /* WHO_AGENT: of its certificate; "" by the agents' token */
    char *params[CALL_PARAMS_MAX]; /* the {} parts of the route */
    json_t *body;                  /* of routes with ROUTE_JSON; an empty body is {} */
    const struct route *route;
};

enum route_flags {
    ROUTE_JSON = 1,    /* read a JSON object as body */
    ROUTE_UPGRADE = 2, /* a WebSocket handshake is needed */
};

struct route {
    const char *method, *pattern; /* "/v1/sessions/{}/stop" */
    enum api_who who;
    unsigned flags;
    void (*fn)(struct call *c);
};

extern const struct route api_routes[];

/* The one function behind the listeners; arg is the manager. */
void api_request(struct request *rq, void *arg);

/* Replies: each ends the call. body is taken. */
void reply_json(struct call *c, unsigned status, json_t *body);
/* The same once everything staged so far is durable. */
void reply_committed(struct call *c, unsigned status, json_t *body);
void reply_error(struct call *c, unsigned status, const char *code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The same with one more member beside the error; takes it over. */
void reply_error_more(struct call *c, unsigned status, const char *code, const char *message,
    const char *key, json_t *more);
/* errno -> status and code: the one place. */
void reply_err(struct call *c, const struct err *err);
/* End the call without a reply of its own (streamed and upgraded ones). The request is handed out.
 */
struct request *call_take_request(struct call *c);
void call_free(struct call *c);

/* {"error": {"code", "message"}} */
json_t *api_error_json(const char *code, const char *message);
void api_errno(int code, unsigned *ret_status, const char **ret_code);

/* Whose token it brings; NULL: none that is known. */
const struct token *call_bearer(const struct call *c);
bool call_is_admin(const struct call *c);
bool call_is_operator(const struct call *c); /* or an administrator */
/* The session of the route's first parameter, *ret_loaded to be freed; NULL: answered that there is
 * none. */
struct session *call_session(struct call *c, struct session **ret_loaded);
/* A time of an answer; null for 0 and for never. */
void api_set_time(json_t *o, const char *key, uint64_t usec);
/* {"node", "gpus": [0, 3]}; node null where it has none. */
json_t *api_share_json(const struct sched_share *share);
/* Query parameters. -EINVAL answers 400 by itself and returns false. */
bool call_query_u64(struct call *c, const char *key, uint64_t dflt, uint64_t max, uint64_t *ret);
bool call_query_flag(const struct call *c, const char *key);
/* A text that the body must have. -EINVAL also when it is missing: nothing else was not found. */
int call_body_text(const struct call *c, const char *key, const char **ret, struct err *err);

/* A session as it is shown; one that waits with its place in the queue. */
json_t *call_session_json(struct manager *m, struct session *s);

/* One function a route. */
void api_version(struct call *c);
void api_static(struct call *c);
void api_whoami(struct call *c);
void api_session_create(struct call *c);
void api_session_list(struct call *c);
void api_session_show(struct call *c);
void api_session_stop(struct call *c);
void api_session_why(struct call *c);
void api_session_wait(struct call *c);
void api_session_ssh(struct call *c);
void api_session_logs(struct call *c);
void api_session_exec(struct call *c);
void api_session_tcp(struct call *c);
void api_join(struct call *c);
void api_join_token_create(struct call *c);
void api_join_token_list(struct call *c);
void api_join_token_delete(struct call *c);
void api_session_hold(struct call *c);
void api_session_extend(struct call *c);
void api_session_release(struct call *c);
void api_queue(struct call *c);
void api_plan(struct call *c);
void api_account_list(struct call *c);
void api_account_show(struct call *c);
void api_account_create(struct call *c);
void api_account_change(struct call *c);
void api_account_delete(struct call *c);
void api_policy_show(struct call *c);
void api_policy_change(struct call *c);
void api_topology_show(struct call *c);
void api_topology_set(struct call *c);
void api_node_list(struct call *c);
void api_node_show(struct call *c);
void api_node_delete(struct call *c);
void api_node_drain(struct call *c);
/* Nodes that are to be drained from now on are. */
void nodes_tick(struct manager *m, uint64_t now_usec);
void api_node_resume(struct call *c);
void api_node_lost(struct call *c);
void api_node_purge(struct call *c);
void api_node_group(struct call *c);
void api_node_revoke(struct call *c);
void api_group_list(struct call *c);
void api_group_create(struct call *c);
void api_group_set(struct call *c);
void api_volume_list(struct call *c);
void api_volume_create(struct call *c);
void api_volume_delete(struct call *c);
void api_image_list(struct call *c);
void api_image_show(struct call *c);
void api_image_set(struct call *c);
void api_image_prune(struct call *c);
void api_image_delete(struct call *c);
void api_image_import(struct call *c);
void api_image_upload(struct call *c);
void api_secret_list(struct call *c);
void api_secret_put(struct call *c);
void api_secret_delete(struct call *c);
void api_event_list(struct call *c);
void api_user_list(struct call *c);
void api_user_create(struct call *c);
void api_agent_link(struct call *c);
void api_agent_certificate(struct call *c);
void api_agent_stream(struct call *c);
void api_blob(struct call *c);

#endif
