/*
 * A virtual node joins as any other machine does: by a token for its name, made with the
 * administrator's, and `muster-agent join` in the node's own network.
 */
#include "base/fs.h"
#include "base/proc.h"
#include "cli/api.h"
#include "cli/cluster.h"

#define JOIN_USEC (30 * UINT64_C(1000000))

static int make_token(struct cli *admin, const char *name, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object();

    json_set_str(body, "node", name);
    json_set_str(body, "ttl", "10m");
    return api_call(admin, "POST", "/v1/join-tokens", body, ret, err);
}

static int run_join(
    const struct cluster *c, const struct cluster_node *n, const json_t *made, struct err *err)
{
    _cleanup_free_ char *program = cluster_program("muster-agent", "agent");
    _cleanup_free_ char *url = cluster_manager_url(c, n);
    _cleanup_free_ char *state = cluster_node_state(c, n);
    const char *argv[] = {program, "join", url, "--token", json_str_or(made, "token", ""), "--ca",
        json_str_or(made, "ca", ""), "--name", n->name, "--state-dir", state, NULL};
    _cleanup_close_ int netns = cluster_netns(n, err);
    struct proc p = {.argv = argv, .netns_fd = netns, .timeout_usec = JOIN_USEC};

    if (!program)
        return err_set(err, -ENOENT, "the program muster-agent is not installed beside this one");
    return netns < 0 ? netns : proc_run(&p, NULL, err);
}

int cluster_join(
    const struct cluster *c, const struct cluster_node *n, struct cli *admin, struct err *err)
{
    _cleanup_free_ char *state = cluster_node_state(c, n);
    _cleanup_free_ char *identity = xasprintf("%s/tls/node.pem", state);
    _cleanup_(json_decrefp) json_t *made = NULL;
    int r;

    if (!n->netns[0] || fs_exists(identity))
        return 0;
    r = make_token(admin, n->name, &made, err);
    if (r == 0)
        r = run_join(c, n, made, err);
    return r < 0 ? err_prefix(err, "node %s", n->name) : 0;
}
