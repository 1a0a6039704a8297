/* status: the daemons that `muster up` started, and what the manager thinks of the nodes. */
#include "cli/api.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

struct status_opts {
    struct cli_common common;
    char *dir;
};

/* clang-format off */
const struct opt status_options[] = {
    { "dir", OPT_STR, offsetof(struct status_opts, dir), CLUSTER_DIR, "DIR", "where it was started", 0,
      true, cluster_check_dir },
    CLI_OUTPUT_OPTION(struct status_opts),
    CLI_LOCAL_OPTIONS(struct status_opts)
};

static const struct column columns[] = {
    { "DAEMON", 0 },
    { "PID", 1, true },
    { "STATE", 0 },
    { "NODE", 0 },
    { "ADDRESS", 2 },
    { "FABRIC", 3 },
    { "NETWORK", 4 },
};
/* clang-format on */

static json_t *find_node(const json_t *list, const char *name)
{
    json_t *n;
    size_t i;

    json_array_foreach (list, i, n)
        if (str_eq(json_str_or(n, "name", ""), name))
            return n;
    return NULL;
}

static json_t *daemon_json(const char *name, bool runs, const struct daemon *d)
{
    json_t *o = json_object();

    json_set_str(o, "daemon", name);
    json_set_bool(o, "runs", runs);
    if (runs)
        json_set_u64(o, "pid", (uint64_t)d->pid);
    else
        json_object_set_new(o, "pid", json_null());
    return o;
}

static json_t *status_json(const struct cluster *c, const json_t *nodes, bool *ret_all)
{
    bool runs = daemon_runs(c, &c->manager);
    json_t *o = json_object(), *list = json_array(), *d;
    _cleanup_free_ char *url = xasprintf("http://127.0.0.1:%u", c->port);
    _cleanup_free_ char *logs = xasprintf("%s/log", c->dir);

    *ret_all = runs;
    json_set_str(o, "dir", c->dir);
    json_set_str(o, "url", url);
    json_set_str(o, "logs", logs);
    d = daemon_json("musterd", runs, &c->manager);
    json_set_str(d, "address", url + strlen("http://"));
    json_array_append_new(list, d);
    for (size_t i = 0; i < c->count; i++) {
        const struct cluster_node *n = &c->nodes[i];
        runs = daemon_runs(c, &n->agent);
        *ret_all = *ret_all && runs;
        d = daemon_json("muster-agent", runs, &n->agent);
        json_set_str(d, "node", n->name);
        json_set_str(d, "node_state", json_str_or(find_node(nodes, n->name), "state", NULL));
        json_set_str(d, "address", n->mgmt);
        json_set_str(d, "fabric", n->fabric);
        json_set_str(d, "netns", n->netns[0] ? n->netns : NULL);
        json_array_append_new(list, d);
    }
    json_object_set_new(o, "daemons", list);
    return o;
}

static void print_status(const json_t *status)
{
    _cleanup_(table_freep) struct table *t = table_new(columns, ARRAY_LEN(columns));
    const json_t *d;
    size_t i;

    printf("%s, %s; logs: %s/*.log\n\n", json_str_or(status, "url", ""),
        json_str_or(status, "dir", ""), json_str_or(status, "logs", ""));
    json_array_foreach (json_object_get(status, "daemons"), i, d) {
        _cleanup_free_ char *node = text_member(d, "node"), *state = text_member(d, "node_state");
        table_cell(t, text_member(d, "daemon"));
        table_cell(t, text_member(d, "pid"));
        table_cell(t, xstrdup(json_bool_or(d, "runs", false) ? "running" : "dead"));
        table_cell(t,
            str_eq(node, "-") ? xstrdup("-")
                              : xasprintf("%s (%s)", node, str_eq(state, "-") ? "unknown" : state));
        table_cell(t, text_member(d, "address"));
        table_cell(t, text_member(d, "fabric"));
        table_cell(t, text_member(d, "netns"));
    }
    table_print(t, stdout);
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
    static struct status_opts o;
    static struct cluster c;
    _cleanup_(json_decrefp) json_t *body = NULL, *status = NULL;
    _cleanup_free_ char *up = NULL;
    struct err err = ERR_INIT;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);
    bool all;

    if (code != CLI_GO_ON)
        return code;
    up = cluster_command("up", o.dir);
    r = cluster_load(o.dir, &c, &err);
    if (r < 0) {
        if (r == -ENOENT)
            cli_say("no cluster is up in '%s'; '%s' starts one", o.dir, up);
        else
            cli_say("%s", err_text(&err));
        return EXIT_FAILED;
    }
    /* Of the nodes the caller may know, when there is a token: root's, or their own. */
    if (cluster_client(&c, cli, NULL) == 0 || config_read(cli, NULL) == 0)
        (void)api_get_all(cli, "/v1/nodes", "nodes", &body, NULL);
    status = status_json(&c, json_object_get(body, "nodes"), &all);
    if (cli->json)
        api_print(cli, status);
    else
        print_status(status);
    if (!all)
        cli_say("not all daemons run; '%s' starts them again", up);
    return all ? EXIT_OK : EXIT_FAILED;
}
