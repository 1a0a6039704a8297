/*
 * The node's identity on disk, in connections, and its renewal: two thirds through its time the
 * agent makes a new key and asks for a certificate with the one it has. A renewal that fails is
 * tried again, more often the less time is left; the link that stands is not touched by it.
 */
#include "agent/identity.h"

#include "agent/link.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/work.h"
#include "wire/join.h"

#define JOINED_MAX ((size_t)64 << 10)
#define ANSWER_MAX ((size_t)256 << 10)
#define RETRY_MIN_USEC USEC_PER_SEC
#define RETRY_MAX_USEC (600 * USEC_PER_SEC)

/* --- files -------------------------------------------------------------------------------- */

static char *path_of(const char *state_dir, const char *name)
{
    return xasprintf("%s/tls/%s", state_dir, name);
}

void joined_done(struct joined *j)
{
    free(j->node);
    free(j->addr_mgmt);
    strv_free(j->manager);
    *j = (struct joined){0};
}

int joined_read(const char *state_dir, struct joined *ret, struct err *err)
{
    _cleanup_free_ char *path = path_of(state_dir, "joined.json"), *text = NULL;
    _cleanup_(json_decrefp) json_t *o = NULL;
    const json_t *url;
    size_t len, i;
    int r = fs_read(path, JOINED_MAX, &text, &len, err);

    if (r == 0)
        r = json_parse(text, len, JOINED_MAX, &o, err);
    if (r < 0)
        return r == -ENOENT ? r : err_prefix(err, "'%s'", path);
    *ret = (struct joined){
        .node = xstrdup(json_str_or(o, "node", NULL)),
        .addr_mgmt = xstrdup(json_str_or(o, "addr_mgmt", NULL)),
    };
    json_array_foreach (json_object_get(o, "manager"), i, url)
        if (json_is_string(url))
            strv_push(&ret->manager, json_string_value(url));
    return 0;
}

int identity_request(char **ret_key, char **ret_request, struct err *err)
{
    _cleanup_free_ char *key = NULL;
    int r = cert_key_new(&key, err);

    if (r == 0)
        r = cert_request_new(key, ret_request, err);
    if (r == 0)
        *ret_key = TAKE_PTR(key);
    return r;
}

int identity_write(const char *state_dir, const char *key, const char *cert, struct err *err)
{
    _cleanup_free_ char *path = path_of(state_dir, "node.pem"), *all = NULL;
    struct cert_info info;
    int r = cert_read(cert, &info, err);

    if (r < 0)
        return err_prefix(err, "what the manager sent");
    all = xasprintf("%s%s", key, cert);
    return fs_write_atomic(path, all, strlen(all), 0600, err);
}

/* --- connections -------------------------------------------------------------------------- */

static int read_token(const struct agent *ag, char **ret, struct err *err)
{
    int r = fs_read(ag->config.token_file, 4096, ret, NULL, err);

    if (r == 0)
        (*ret)[strcspn(*ret, "\r\n")] = '\0';
    return r;
}

int identity_for_ws(
    const struct agent *ag, struct ws_connect_opts *opts, char **ret_token, struct err *err)
{
    struct http_opts o = {.base_url = str_starts(opts->url, "wss://") ? "https://" : ""};
    int r = identity_for_http(ag, &o, ret_token, err);

    opts->token = o.token;
    opts->cert_path = o.cert_path;
    opts->key_path = o.key_path;
    opts->ca_path = o.ca_path;
    opts->server_name = o.server_name;
    return r;
}

int identity_for_http(
    const struct agent *ag, struct http_opts *opts, char **ret_token, struct err *err)
{
    int r;

    if (!str_starts(opts->base_url, "https://")) {
        r = read_token(ag, ret_token, err);
        opts->token = *ret_token;
        return r;
    }
    opts->cert_path = opts->key_path = ag->identity.cert_path;
    opts->ca_path = ag->identity.ca_path;
    opts->server_name = JOIN_MANAGER_NAME;
    return 0;
}

/* --- renewal ------------------------------------------------------------------------------ */

static int read_own(struct agent *ag, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int r = fs_read(ag->identity.cert_path, CERT_PEM_MAX, &text, NULL, err);

    if (r == 0)
        r = cert_read(text, &ag->identity.cert, err);
    return r < 0 ? err_prefix(err, "this node's certificate") : 0;
}

int identity_open(struct agent *ag, struct err *err)
{
    struct identity *id = &ag->identity;

    id->cert_path = path_of(ag->config.state_dir, "node.pem");
    id->ca_path = path_of(ag->config.state_dir, "ca.crt");
    if (!agent_config_uses_tls(&ag->config))
        return 0;
    if (!fs_exists(id->cert_path))
        return err_set(err, -ENOENT,
            "this machine has not joined the cluster: run 'muster node add' where the manager is, "
            "and here what it prints");
    return read_own(ag, err);
}

struct renewal {
    struct agent *ag;
    char *url;
};

/* What the answer says, or refuses with. */
static int take_answer(const struct buf *answer, unsigned status, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL;

    if (!answer->data || json_parse(answer->data, answer->len, ANSWER_MAX, &body, NULL) < 0)
        return err_set(err, -EPROTO, "the manager answered with status %u and no JSON", status);
    if (status != 201)
        return err_set(err, -EACCES, "%s",
            json_str_or(json_object_get(body, "error"), "message", "refused without a reason"));
    *ret = TAKE_PTR(body);
    return 0;
}

int identity_post(
    struct http *http, const char *path, const json_t *body, json_t **ret, struct err *err)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    _cleanup_free_ char *text = json_text(body);
    struct http_call call = {
        .method = "POST", .path = path, .body = text, .body_len = strlen(text), .out = &answer};
    int r = http_do(http, &call, err);

    return r < 0 ? r : take_answer(&answer, call.status, ret, err);
}

static int renew_run(void *arg, struct err *err)
{
    const struct renewal *n = arg;
    _cleanup_(json_decrefp) json_t *body = json_object(), *answer = NULL;
    _cleanup_free_ char *key = NULL, *request = NULL, *token = NULL;
    _cleanup_(http_freep) struct http *http = NULL;
    struct http_opts opts = {.base_url = n->url};
    int r = identity_request(&key, &request, err);

    if (r == 0)
        r = identity_for_http(n->ag, &opts, &token, err);
    if (r == 0)
        r = http_new(&opts, &http, err);
    if (r < 0)
        return r;
    json_set_str(body, "request", request);
    r = identity_post(http, "/v1/agent/certificate", body, &answer, err);
    if (r < 0)
        return r;
    return identity_write(
        n->ag->config.state_dir, key, json_str_or(answer, "certificate", ""), err);
}

/* A tenth of the time that is left. */
static uint64_t retry_at(const struct identity *id, uint64_t now_usec)
{
    uint64_t left = id->cert.until_usec > now_usec ? id->cert.until_usec - now_usec : 0;

    return now_usec + MIN_OF(MAX_OF(left / 10, RETRY_MIN_USEC), RETRY_MAX_USEC);
}

static void renew_done(void *arg, int result, const struct err *err)
{
    struct renewal *n = arg;
    struct identity *id = &n->ag->identity;
    uint64_t now = clock_real_usec();
    struct err own = ERR_INIT;
    char until[CLOCK_TEXT_MAX];

    if (result == 0 && read_own(n->ag, &own) < 0) {
        result = own.code;
        err = &own;
    }
    clock_format(id->cert.until_usec, until);
    if (result == 0)
        log_info("this node's certificate was renewed: it is good until %s", until);
    else if (now < id->cert.until_usec)
        log_warning("this node's certificate, which is good until %s, could not be renewed: %s",
            until, err_text(err));
    else
        log_err(
            "this node's certificate has run out (%s) and could not be renewed: %s; is the clock "
            "right? Else join again: 'muster node add %s'",
            until, err_text(err), n->ag->config.name);
    id->busy = false;
    id->next_usec = retry_at(id, now);
    free(n->url);
    free(n);
}

void identity_tick(struct agent *ag, uint64_t now_usec)
{
    struct identity *id = &ag->identity;
    struct renewal *n;

    if (!id->cert.until_usec || id->busy || now_usec < id->next_usec ||
        !cert_is_due(&id->cert, now_usec))
        return;
    id->busy = true;
    n = xnew(struct renewal);
    n->ag = ag;
    n->url = xstrdup(link_manager(ag));
    work_start(ag->loop, renew_run, renew_done, n);
}
