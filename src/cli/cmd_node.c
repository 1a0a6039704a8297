/* node ...: the machines. */
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/moment.h"
#include "cli/request.h"
#include "cli/table.h"
#include "cli/text.h"

struct drain_opts {
    struct cli_common common;
    char *reason, *by;
};

/* clang-format off */
const struct opt node_drain_options[] = {
    { "reason", OPT_STR, offsetof(struct drain_opts, reason), NULL, "TEXT", "why, for others to read",
      'r', true },
    { "by", OPT_STR, offsetof(struct drain_opts, by), NULL, "TIME",
      "from then on, and until then only what is over by then: 2h, 18:00, 2026-12-24T18:00", 0, true,
      request_check_moment },
    CLI_COMMON_OPTIONS(struct drain_opts)
};

static const struct column columns[] = {
    { "NODE", 0 },
    { "GROUP", 4 },
    { "STATE", 0 },
    { "CPUS", 1, true },
    { "MEM", 2, true },
    { "GPUS", 1, true },
    { "MODEL", 5 },
    { "SESSIONS", 3, true },
    { "ADDRESS", 6 },
};
/* clang-format on */

static char *state_of(const json_t *node)
{
    _cleanup_free_ char *state = text_member(node, "state");

    const char *more = json_bool_or(node, "drained", false)   ? ", drained"
        : json_is_string(json_object_get(node, "drain_from")) ? ", draining"
                                                              : "";

    return xasprintf("%s%s", state, more);
}

/* "used/all" */
static char *ratio(const json_t *node, char *(*format)(const json_t *))
{
    _cleanup_free_ char *used = format(json_object_get(node, "used"));
    _cleanup_free_ char *all = format(json_object_get(node, "capacity"));

    return xasprintf("%s/%s", used, all);
}

static char *text_gpus(const json_t *r)
{
    return xasprintf("%llu", (unsigned long long)json_u64_or(r, "gpus", 0));
}

static char *models_of(const json_t *node)
{
    const json_t *first = json_array_get(json_object_get(node, "gpus"), 0);

    return text_member(first, "model");
}

static void add_row(struct table *t, const json_t *n)
{
    table_cell(t, text_member(n, "name"));
    table_cell(t, text_member(n, "group"));
    table_cell(t, state_of(n));
    table_cell(t, ratio(n, text_cpus));
    table_cell(t, ratio(n, text_mem));
    table_cell(t, ratio(n, text_gpus));
    table_cell(t, models_of(n));
    table_cell(t, xasprintf("%zu", json_array_size(json_object_get(n, "sessions"))));
    table_cell(t, text_member(json_object_get(n, "addr"), "mgmt"));
}

struct named {
    const char *name;
    const json_t *node;
};

/* n2 before n10 */
static int compare_names(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    return strverscmp(x->name, y->name);
}

static void add_rows(struct table *t, const json_t *list)
{
    size_t count = json_array_size(list), i;
    _cleanup_free_ struct named *nodes = xnew_array(struct named, count);
    const json_t *n;

    json_array_foreach (list, i, n)
        nodes[i] = (struct named){json_str_or(n, "name", ""), n};
    if (count > 1)
        qsort(nodes, count, sizeof(*nodes), compare_names);
    for (i = 0; i < count; i++)
        add_row(t, nodes[i].node);
}

int cmd_node_ls(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(table_freep) struct table *t = NULL;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get_all(cli, "/v1/nodes", "nodes", &body, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, body);
        return EXIT_OK;
    }
    t = table_new(columns, ARRAY_LEN(columns));
    add_rows(t, json_object_get(body, "nodes"));
    table_print(t, stdout);
    return EXIT_OK;
}

static void print_part(const json_t *n, const char *title, const char *key)
{
    _cleanup_free_ char *text = text_resources(json_object_get(n, key));

    printf("%-10s %s\n", title, text);
}

static void print_member(const json_t *o, const char *title, const char *key)
{
    _cleanup_free_ char *text = text_member(o, key);

    printf("%-10s %s\n", title, text);
}

static void print_node(const json_t *n, bool utc)
{
    _cleanup_free_ char *state = state_of(n), *seen = text_time(n, "seen", utc);
    const json_t *item;
    size_t i;

    print_member(n, "Node", "name");
    printf("%-10s %s\n", "State", state);
    if (json_bool_or(n, "drained", false))
        print_member(n, "Drained", "drain_reason");
    if (json_is_string(json_object_get(n, "drain_from"))) {
        _cleanup_free_ char *from = text_time(n, "drain_from", utc);
        printf("%-10s from %s on\n", "Drained", from);
    }
    print_member(n, "Group", "group");
    print_part(n, "Capacity", "capacity");
    print_part(n, "Used", "used");
    print_part(n, "Free", "free");
    print_member(json_object_get(n, "addr"), "Address", "mgmt");
    print_member(json_object_get(n, "addr"), "Fabric", "fabric");
    print_member(n, "Agent", "version");
    printf("%-10s %s\n", "Seen", seen);
    json_array_foreach (json_object_get(n, "gpus"), i, item) {
        _cleanup_free_ char *model = text_member(item, "model"), *uuid = text_member(item, "uuid");
        _cleanup_free_ char *mem = text_mem(item);
        printf("%-10s %llu: %s, %s, %s%s\n", i ? "" : "GPUs",
            (unsigned long long)json_u64_or(item, "index", i), model, mem, uuid,
            json_bool_or(item, "healthy", true) ? "" : " (not healthy)");
    }
    json_array_foreach (json_object_get(n, "quarantined"), i, item) {
        _cleanup_free_ char *id = text_clean(json_is_string(item) ? json_string_value(item) : "?");
        printf("%-10s %s\n", i ? "" : "Quarantine", id);
    }
    json_array_foreach (json_object_get(n, "sessions"), i, item) {
        _cleanup_free_ char *name = text_member(item, "name"), *num = text_member(item, "num");
        _cleanup_free_ char *owner = text_member(item, "owner");
        _cleanup_free_ char *count = text_member(item, "containers");
        printf("%-10s %s %s of %s: %s container%s\n", i ? "" : "Sessions", num, name, owner, count,
            str_eq(count, "1") ? "" : "s");
    }
}

static char *node_path(const char *name, const char *suffix)
{
    _cleanup_free_ char *encoded = http_encode(name);

    return xasprintf("/v1/nodes/%s%s", encoded, suffix);
}

int cmd_node_show(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *node = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = node_path(argv[rest], "");
    if (api_get(cli, path, &node, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, node);
    else
        print_node(node, cli->utc);
    return EXIT_OK;
}

/* A POST to a node. */
struct change {
    const char *suffix;
    const json_t *body; /* NULL: nothing to say */
};

static int change(struct cli *cli, const char *name, const void *arg)
{
    const struct change *to = arg;
    _cleanup_free_ char *path = node_path(name, to->suffix);
    _cleanup_(json_decrefp) json_t *body = to->body ? json_deep_copy(to->body) : json_object();
    _cleanup_(json_decrefp) json_t *node = NULL;
    struct err err = ERR_INIT;

    if (api_call(cli, "POST", path, body, &node, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, node);
    return EXIT_OK;
}

int cmd_node_drain(struct cli *cli, int argc, char **argv)
{
    static struct drain_opts o;
    _cleanup_(json_decrefp) json_t *body = json_object();
    char text[CLOCK_TEXT_MAX];
    uint64_t from;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (o.reason)
        json_set_str(body, "reason", o.reason);
    if (o.by && moment_parse(o.by, clock_real_usec(), &from, NULL) == 0)
        json_set_str(body, "by", clock_format(from, text));
    return cli_each(cli, argc - rest, argv + rest, change, &(struct change){"/drain", body});
}

int cmd_node_resume(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, change, &(struct change){.suffix = "/resume"});
}

int cmd_node_lost(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *before = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = node_path(argv[rest], "");
    if (api_get(cli, path, &before, &err) < 0)
        return cli_fail(cli, &err);
    code = change(cli, argv[rest], &(struct change){.suffix = "/lost"});
    if (code == EXIT_OK && str_eq(json_str_or(before, "state", ""), "lost"))
        cli_say("node '%s' was lost already", argv[rest]);
    return code;
}

int cmd_node_purge(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return change(cli, argv[rest], &(struct change){.suffix = "/purge"});
}

static int remove_one(struct cli *cli, const char *name, const void *arg)
{
    _cleanup_free_ char *path = node_path(name, "");
    struct err err = ERR_INIT;

    return api_call(cli, "DELETE", path, NULL, NULL, &err) < 0 ? cli_fail(cli, &err) : EXIT_OK;
}

int cmd_node_rm(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, remove_one, NULL);
}

int cmd_node_group(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = json_object();
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    json_set_str(body, "group", argv[rest + 1]);
    return change(cli, argv[rest], &(struct change){"/group", body});
}
