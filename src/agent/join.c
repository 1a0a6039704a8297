/*
 * `muster-agent join URL --token TOKEN --ca FINGERPRINT`: makes this machine a node. Nothing is
 * sent before the manager has shown that it has a certificate by the authority of that fingerprint:
 * one connection looks, and the one that speaks trusts what was found and nothing else.
 */
#include "agent/join.h"

#include <netdb.h>
#include <sys/socket.h>

#include "agent/config.h"
#include "agent/identity.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "net/cert.h"
#include "net/uri.h"
#include "wire/join.h"

struct join {
    struct agent_config agent;
    char *token, *ca;
};

/* clang-format off */
static const struct opt own_options[] = {
    { "token", OPT_STR, offsetof(struct join, token), NULL, "TOKEN",
      "what 'muster node add' printed; good once", 0, true },
    { "ca", OPT_STR, offsetof(struct join, ca), NULL, "FINGERPRINT",
      "of the cluster's authority: sha256: and 64 digits", 0, true },
};
/* clang-format on */

/* The agent's options, of which names and folders matter, and ours. Heap. */
static struct opt *make_table(void)
{
    size_t count = 0;
    struct opt *table;

    while (agent_options[count].name)
        count++;
    table = xnew_array(struct opt, count + ARRAY_LEN(own_options) + 1);
    memcpy(table, own_options, sizeof(own_options));
    memcpy(table + ARRAY_LEN(own_options), agent_options, count * sizeof(*table));
    return table;
}

static int usage(const char *text)
{
    fprintf(stderr, "muster-agent join: %s\n", text);
    return 2;
}

/* --- what it needs ------------------------------------------------------------------------ */

/* The address of this machine from which the manager is reached; NULL when that cannot be told. */
static char *address_towards(const struct uri *to)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;
    _cleanup_close_ int fd = -1;
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    char port[8], text[64];
    bool known;

    snprintf(port, sizeof(port), "%u", to->port);
    if (getaddrinfo(to->host, port, &hints, &list) != 0)
        return NULL;
    fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    known = fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
        getnameinfo((struct sockaddr *)&own, len, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0;
    freeaddrinfo(list);
    return known ? xstrdup(text) : NULL;
}

static char *host_name(void)
{
    char host[NAME_MAX_LEN + 1] = "";

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    return xstrdup(host);
}

/* One machine is one node. */
static int check_fresh(const struct join *j, const char *node, struct err *err)
{
    struct joined before = {0};
    int r = 0;

    if (joined_read(j->agent.state_dir, &before, NULL) < 0)
        return 0;
    if (before.node && node && !str_eq(before.node, node))
        r = err_set(err, -EEXIST,
            "this machine is the node '%s' already, not '%s'; if it is to be another one, remove "
            "'%s/tls' first",
            before.node, node, j->agent.state_dir);
    joined_done(&before);
    return r;
}

/* --- the talk ----------------------------------------------------------------------------- */

/* The authority that the manager shows, if it is the one that was named. */
static int find_authority(const struct join *j, const char *url, char **ret, struct err *err)
{
    _cleanup_free_ char *chain = NULL;
    struct cert_info info;
    int r = http_look(url, JOIN_MANAGER_NAME, &chain, err);

    if (r < 0)
        return r;
    if (cert_find(chain, j->ca, ret, NULL) < 0)
        return err_set(err, -EPERM,
            "%s is not the manager that made this token, or somebody is between: its authority has "
            "another fingerprint than --ca says; nothing was sent",
            url);
    r = cert_read(*ret, &info, err);
    if (r == 0 && !info.is_authority)
        r = err_set(err, -EPERM, "--ca is the fingerprint of a certificate that is no authority's");
    return r;
}

static int ask(const struct join *j, const char *url, const char *ca_path, const char *request,
    json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object();
    _cleanup_(http_freep) struct http *http = NULL;
    _cleanup_free_ char *host = host_name();
    struct http_opts opts = {.base_url = url, .ca_path = ca_path, .server_name = JOIN_MANAGER_NAME};
    int r = http_new(&opts, &http, err);

    if (r < 0)
        return r;
    json_set_str(body, "token", j->token);
    json_set_str(body, "node", j->agent.name);
    json_set_str(body, "host", host);
    json_set_str(body, "request", request);
    return identity_post(http, "/v1/join", body, ret, err);
}

static int write_joined(const struct join *j, const char *url, const char *node, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/tls/joined.json", j->agent.state_dir), *text = NULL;
    _cleanup_(json_decrefp) json_t *o = json_object();
    char *urls[] = {(char *)url, NULL};
    _cleanup_free_ char *address = NULL;
    struct uri uri;

    if (uri_parse_http(url, &uri, NULL) == 0)
        address = address_towards(&uri);
    json_set_str(o, "node", node);
    json_set_strv(o, "manager", urls);
    if (address)
        json_set_str(o, "addr_mgmt", address);
    text = json_dumps(o, JSON_INDENT(2));
    return fs_write_atomic(path, text, strlen(text), 0600, err);
}

/* answer: of the manager; node.pem is written last, it is what makes a node of this machine. */
static int keep(const struct join *j, const char *url, const char *ca, const char *key,
    const json_t *answer, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/tls/ca.crt", j->agent.state_dir);
    const char *node = json_str_or(answer, "node", "");
    int r = name_check("the node's name", node, err);

    if (r == 0)
        r = check_fresh(j, node, err);
    if (r == 0)
        r = fs_write_atomic(path, ca, strlen(ca), 0644, err);
    if (r == 0)
        r = write_joined(j, url, node, err);
    return r < 0
        ? r
        : identity_write(j->agent.state_dir, key, json_str_or(answer, "certificate", ""), err);
}

static int join(const struct join *j, const char *url, json_t **ret, struct err *err)
{
    _cleanup_free_ char *folder = xasprintf("%s/tls", j->agent.state_dir);
    _cleanup_free_ char *trusted = xasprintf("%s/joining.crt", folder);
    _cleanup_free_ char *ca = NULL, *key = NULL, *request = NULL;
    int r = check_fresh(j, j->agent.name, err);

    if (r == 0)
        r = find_authority(j, url, &ca, err);
    if (r == 0)
        r = identity_request(&key, &request, err);
    if (r == 0)
        r = fs_mkdir_p(j->agent.state_dir, 0711, err);
    if (r == 0)
        r = fs_mkdir_p(folder, 0700, err);
    if (r == 0)
        r = fs_write(trusted, ca, strlen(ca), 0600, err);
    if (r < 0)
        return r;
    r = ask(j, url, trusted, request, ret, err);
    unlink(trusted);
    return r < 0 ? r : keep(j, url, ca, key, *ret, err);
}

/* --- the command -------------------------------------------------------------------------- */

static void say_joined(const struct join *j, const char *url, const json_t *answer)
{
    printf("joined cluster %s as '%s'; now start its agent:\n"
           "  systemctl enable --now muster-agent\n",
        json_str_or(answer, "cluster", "?"), json_str_or(answer, "node", "?"));
    if (j->agent.manager && !strv_has(j->agent.manager, url))
        printf("but the configuration says 'manager: %s', which counts: make that %s\n",
            j->agent.manager[0], url);
}

static int check_line(const struct join *j, int words, struct err *err)
{
    if (words != 1)
        return err_set(err, -EINVAL, "expects the manager's address: https://HOST:PORT");
    if (str_is_empty(j->token))
        return err_set(err, -EINVAL, "--token is missing; 'muster node add' prints the whole line");
    if (!cert_fingerprint_is_valid(j->ca))
        return err_set(err, -EINVAL,
            "--ca must be the fingerprint that 'muster node add' printed: sha256: and 64 digits");
    return 0;
}

static void print_help(void)
{
    printf(
        "Usage: muster-agent join URL --token TOKEN --ca FINGERPRINT [OPTION]...\n\n"
        "Make this machine a node of a cluster. 'muster node add' prints the line.\n\nOptions:\n");
}

int join_main(int argc, char **argv)
{
    int front = argc > 1 && argv[1][0] != '-'; /* the address stands in front, as it is printed */
    _cleanup_free_ struct opt *table = make_table();
    _cleanup_(json_decrefp) json_t *answer = NULL;
    struct join j = {0};
    struct err err = ERR_INIT;
    const char *url;
    int rest, r;

    r = opt_read(table, &j, offsetof(struct agent_config, config_path),
        "/etc/muster/muster-agent.yaml", argc - front, argv + front, &rest, &err);
    if (r == 0 && j.agent.help) {
        print_help();
        opt_print_help(table, stdout);
        opt_free(table, &j);
        return 0;
    }
    if (r == 0)
        r = check_line(&j, argc - rest, &err);
    if (r < 0) {
        opt_free(table, &j);
        return usage(err_text(&err));
    }
    url = front ? argv[1] : argv[rest];
    r = join(&j, url, &answer, &err);
    if (r == 0)
        say_joined(&j, url, answer);
    else
        fprintf(stderr, "muster-agent join: %s\n", err_text(&err));
    opt_free(table, &j);
    return r < 0 ? 1 : 0;
}
