/* node add, tokens, revoke: which machines may be nodes. */
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

struct add_opts {
    struct cli_common common;
    char *group, *ttl;
};

struct tokens_opts {
    struct cli_common common;
    char *revoke;
};

static int check_ttl(const char *value, struct err *err)
{
    uint64_t usec;

    return duration_parse(value, &usec, err);
}

static int check_id(const char *value, struct err *err)
{
    uint64_t id;

    return str_to_u64(value, INT64_MAX, &id) < 0
        ? err_set(err, -EINVAL, "must be the number of a token, as 'muster node tokens' shows it")
        : 0;
}

/* clang-format off */
const struct opt node_add_options[] = {
    { "group", OPT_STR, offsetof(struct add_opts, group), NULL, "GROUP",
      "group that the node is put in (default, if unset)", 'g', true },
    { "ttl", OPT_STR, offsetof(struct add_opts, ttl), "1h", "TIME", "how long the line is good", 0, true,
      check_ttl },
    CLI_COMMON_OPTIONS(struct add_opts)
};

const struct opt node_tokens_options[] = {
    { "revoke", OPT_STR, offsetof(struct tokens_opts, revoke), NULL, "ID", "let nobody join by it", 0,
      true, check_id },
    CLI_COMMON_OPTIONS(struct tokens_opts)
};

static const struct column columns[] = {
    { "ID", 0, true },
    { "NODE", 0 },
    { "GROUP", 1 },
    { "BY", 1 },
    { "UNTIL", 0 },
};
/* clang-format on */

/* The address by which this client reaches the manager is one that works; else the manager's own
 * list. */
static char *join_url(const struct cli *cli, const json_t *made)
{
    const json_t *first = json_array_get(json_object_get(made, "urls"), 0);

    if (str_starts(cli->url, "https://"))
        return text_clean(cli->url);
    return text_clean(json_is_string(first) ? json_string_value(first) : "");
}

int cmd_node_add(struct cli *cli, int argc, char **argv)
{
    static struct add_opts o;
    _cleanup_(json_decrefp) json_t *body = json_object(), *made = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    json_set_str(body, "node", rest < argc ? argv[rest] : NULL);
    json_set_str(body, "group", o.group);
    json_set_str(body, "ttl", o.ttl);
    if (api_call(cli, "POST", "/v1/join-tokens", body, &made, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, made);
        return EXIT_OK;
    }
    _cleanup_free_ char *url = join_url(cli, made), *token = text_member(made, "token");
    _cleanup_free_ char *ca = text_member(made, "ca"), *until = text_time(made, "until", cli->utc);
    cli_say("paste this on the machine, as root; it is good once, until %s", until);
    printf("muster-agent join %s --token %s --ca %s\n", url, token, ca);
    return EXIT_OK;
}

static int revoke_token(struct cli *cli, const char *id)
{
    _cleanup_free_ char *path = xasprintf("/v1/join-tokens/%s", id);
    struct err err = ERR_INIT;

    return api_call(cli, "DELETE", path, NULL, NULL, &err) < 0 ? cli_fail(cli, &err) : EXIT_OK;
}

int cmd_node_tokens(struct cli *cli, int argc, char **argv)
{
    static struct tokens_opts o;
    _cleanup_(table_freep) struct table *t = NULL;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    const json_t *token;
    size_t i;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (o.revoke)
        return revoke_token(cli, o.revoke);
    if (api_get(cli, "/v1/join-tokens", &body, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, body);
        return EXIT_OK;
    }
    t = table_new(columns, ARRAY_LEN(columns));
    json_array_foreach (json_object_get(body, "tokens"), i, token) {
        table_cell(t, text_member(token, "id"));
        table_cell(t, text_member(token, "node"));
        table_cell(t, text_member(token, "group"));
        table_cell(t, text_member(token, "by"));
        table_cell(t, text_time(token, "until", cli->utc));
    }
    table_print(t, stdout);
    return EXIT_OK;
}

int cmd_node_revoke(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = json_object();
    _cleanup_free_ char *encoded = NULL, *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    encoded = http_encode(argv[rest]);
    path = xasprintf("/v1/nodes/%s/revoke", encoded);
    if (api_call(cli, "POST", path, body, NULL, &err) < 0)
        return cli_fail(cli, &err);
    cli_say(
        "the certificate of node '%s' is not taken any more; if it is to come back: muster node "
        "add %s",
        argv[rest], argv[rest]);
    return EXIT_OK;
}
