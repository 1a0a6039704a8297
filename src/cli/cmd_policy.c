/* policy and topology: what an administrator sets for the scheduler while it runs. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "model/topology.h"

/* --- policy --------------------------------------------------------------------------------- */

static void print_knob(const char *name, uint64_t value)
{
    char text[DURATION_TEXT_MAX];

    if (str_ends(name, "_usec"))
        printf("%-16.*s %s\n", (int)(strlen(name) - 5), name, duration_format(value, text));
    else
        printf("%-16s %llu\n", name, (unsigned long long)value);
}

int cmd_policy_show(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *policy = NULL;
    struct err err = ERR_INIT;
    const char *key;
    json_t *value;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get(cli, "/v1/policy", &policy, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, policy);
        return EXIT_OK;
    }
    json_object_foreach (policy, key, value)
        print_knob(key, (uint64_t)json_integer_value(value));
    return EXIT_OK;
}

/* "patience=2d" is the knob "patience_usec" in microseconds; what it is is known by what there is.
 */
static int set_knob(json_t *body, const json_t *policy, const char *word, struct err *err)
{
    const char *equals = strchr(word, '=');
    _cleanup_free_ char *key = equals ? xstrndup(word, (size_t)(equals - word)) : NULL;
    _cleanup_free_ char *key_usec = key ? xasprintf("%s_usec", key) : NULL;
    uint64_t n;
    int r;

    if (!key)
        return err_set(err, -EINVAL, "'%s' must be KEY=VALUE", word);
    if (json_object_get(policy, key_usec)) {
        r = duration_parse(equals + 1, &n, err);
        if (r < 0)
            return err_prefix(err, "'%s'", key);
        json_set_u64(body, key_usec, n);
        return 0;
    }
    if (!json_object_get(policy, key))
        return err_set(err, -EINVAL, "there is no '%s'; see 'muster policy show'", key);
    if (str_to_u64(equals + 1, INT64_MAX, &n) < 0)
        return err_set(err, -EINVAL, "'%s' must be a whole number", key);
    json_set_u64(body, key, n);
    return 0;
}

int cmd_policy_set(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *policy = NULL, *body = json_object(), *now = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get(cli, "/v1/policy", &policy, &err) < 0)
        return cli_fail(cli, &err);
    for (; rest < argc; rest++)
        if (set_knob(body, policy, argv[rest], &err) < 0)
            return cli_usage(cli, "%s", err_text(&err));
    if (api_call(cli, "PATCH", "/v1/policy", body, &now, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, now);
    return EXIT_OK;
}

/* --- topology ------------------------------------------------------------------------------- */

int cmd_topology_show(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *topology = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get(cli, "/v1/topology", &topology, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, topology);
    else
        fputs(json_str_or(topology, "text", ""), stdout);
    return EXIT_OK;
}

int cmd_topology_set(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = json_object(), *now = NULL;
    _cleanup_free_ char *text = NULL;
    struct err err = ERR_INIT;
    size_t len;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (fs_read(argv[rest], TOPOLOGY_TEXT_MAX, &text, &len, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    json_object_set_new(body, "text", json_stringn(text, len));
    if (strlen(text) != len || !json_object_get(body, "text"))
        return cli_usage(cli, "'%s' is not a text in UTF-8", argv[rest]);
    if (api_call(cli, "PUT", "/v1/topology", body, &now, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, now);
    return EXIT_OK;
}
