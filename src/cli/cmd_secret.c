/* secret ...: who we are at registries. A password is read, never an argument. */
#include "base/fs.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/hidden.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "cli/text.h"

#define CONFIG_MAX ((size_t)256 * 1024)

struct secret_opts {
    struct cli_common common;
    bool cluster;
    char *user, *docker_config;
};

/* clang-format off */
#define CLUSTER_OPTION \
    { "cluster", OPT_BOOL, offsetof(struct secret_opts, cluster), NULL, NULL, \
      "for everybody's imports (administrators)", 0, true }

const struct opt secret_set_options[] = {
    { "user", OPT_STR, offsetof(struct secret_opts, user), NULL, "USER", "name at the registry", 'u', true },
    { "docker-config", OPT_STR, offsetof(struct secret_opts, docker_config), NULL, "FILE",
      "take what is in a config.json of docker or podman", 0, true },
    CLUSTER_OPTION,
    CLI_COMMON_OPTIONS(struct secret_opts)
};

const struct opt secret_rm_options[] = {
    CLUSTER_OPTION,
    CLI_COMMON_OPTIONS(struct secret_opts)
};

static const struct column columns[] = {
    { "REGISTRY", 0 },
    { "USER", 1 },
    { "OWNER", 2 },
    { "SET", 3 },
};
/* clang-format on */

static void add_row(const struct cli *cli, struct table *t, const json_t *s)
{
    table_cell(t, text_member(s, "registry"));
    table_cell(t, text_member(s, "username"));
    table_cell(t, xstrdup(json_str_or(s, "owner", "(the cluster)")));
    table_cell(t, text_time(s, "created_at", cli->utc));
}

int cmd_secret_ls(struct cli *cli, int argc, char **argv)
{
    return listing_run(cli, argc, argv,
        &(struct listing){"/v1/secrets", "secrets", columns, ARRAY_LEN(columns), add_row});
}

static int read_config(const char *path, json_t *body, struct err *err)
{
    _cleanup_(json_decrefp) json_t *config = NULL;
    _cleanup_free_ char *text = NULL;
    json_t *auths;
    size_t len;
    int r;

    if ((r = fs_read(path, CONFIG_MAX, &text, &len, err)) < 0 ||
        (r = json_parse(text, len, CONFIG_MAX, &config, err)) < 0 ||
        (r = json_get_obj(config, "auths", &auths, err)) < 0)
        return err_prefix(err, "'%s'", path);
    json_object_set(body, "auths", auths);
    return 0;
}

static int send_secrets(struct cli *cli, json_t *body)
{
    _cleanup_(json_decrefp) json_t *answer = NULL;
    struct err err = ERR_INIT;
    const json_t *registry;
    size_t i;

    if (api_call(cli, "POST", "/v1/secrets", body, &answer, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, answer);
        return EXIT_OK;
    }
    json_array_foreach (json_object_get(answer, "registries"), i, registry)
        printf("%s\n", json_string_value(registry));
    return EXIT_OK;
}

int cmd_secret_set(struct cli *cli, int argc, char **argv)
{
    static struct secret_opts o;
    _cleanup_(json_decrefp) json_t *body = json_object();
    _cleanup_free_ char *password = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (!o.docker_config == (rest == argc))
        return cli_usage(cli, "give a registry and --user, or --docker-config FILE");
    json_set_bool(body, "cluster", o.cluster);
    if (o.docker_config)
        return read_config(o.docker_config, body, &err) < 0 ? cli_fail(cli, &err)
                                                            : send_secrets(cli, body);
    if (!o.user)
        return cli_usage(cli, "--user is missing");
    password = hidden_line("Password");
    if (str_is_empty(password))
        return cli_usage(cli,
            "no password was given: type it when asked, or give it on stdin "
            "('muster secret set ... < FILE')");
    json_set_str(body, "registry", argv[rest]);
    json_set_str(body, "username", o.user);
    json_set_str(body, "password", password);
    return send_secrets(cli, body);
}

int cmd_secret_rm(struct cli *cli, int argc, char **argv)
{
    static struct secret_opts o;
    struct err err = ERR_INIT;
    int rest, worst = EXIT_OK, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    for (int i = rest; i < argc; i++) {
        _cleanup_free_ char *name = http_encode(argv[i]);
        _cleanup_free_ char *path = xasprintf(
            "/v1/secrets/%s%s", name, o.cluster ? "?cluster=1" : "");
        if (api_call(cli, "DELETE", path, NULL, NULL, &err) < 0) {
            code = cli_fail(cli, &err);
            worst = MAX_OF(worst, code);
        }
    }
    return worst;
}
