/*
 * What this machine got when it joined, in STATE/tls (closed to others):
 *
 *   node.pem     this node's key, its certificate, and the authority's; written last, as a whole
 *   ca.crt       the cluster's authority: a manager must have a certificate by it
 *   joined.json  {"node", "manager": [URL], "addr_mgmt"}: the configuration that joining makes;
 * what the options say goes before it
 */
#ifndef AGENT_IDENTITY_H
#define AGENT_IDENTITY_H

#include "base/json.h"
#include "net/cert.h"
#include "net/http.h"
#include "net/ws.h"

struct agent;

struct identity {
    char *cert_path, *ca_path;
    struct cert_info cert; /* all zero without https */
    uint64_t next_usec;    /* not tried again before */
    bool busy;
};

struct joined {
    char *node, *addr_mgmt;
    char **manager;
};

void joined_done(struct joined *j);
/* -ENOENT: it has not joined. */
int joined_read(const char *state_dir, struct joined *ret, struct err *err);

/* A new key and the request for its certificate; then what the manager answered to it. */
int identity_request(char **ret_key, char **ret_request, struct err *err);
int identity_write(const char *state_dir, const char *key, const char *cert, struct err *err);

/* Read it, for an agent whose manager is reached by https. */
int identity_open(struct agent *ag, struct err *err);
/* A new certificate in time. */
void identity_tick(struct agent *ag, uint64_t now_usec);

/* POST on a connection of http; anything but 201 is an error with the manager's own words. */
int identity_post(
    struct http *http, const char *path, const json_t *body, json_t **ret, struct err *err);

/* Who asks, and who must answer, for a URL of a manager: by certificates for https, by the token
 * else, which is then heap in *ret_token. */
int identity_for_ws(
    const struct agent *ag, struct ws_connect_opts *opts, char **ret_token, struct err *err);
int identity_for_http(
    const struct agent *ag, struct http_opts *opts, char **ret_token, struct err *err);

#endif
