/* volume ...: folders that outlive sessions. */
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

struct volume_ls_opts {
    struct cli_common common;
    bool all;
};

struct volume_rm_opts {
    struct cli_common common;
    bool data;
};

/* clang-format off */
const struct opt volume_ls_options[] = {
    { "all", OPT_BOOL, offsetof(struct volume_ls_opts, all), NULL, NULL,
      "everybody's (administrators)", 'a', true },
    CLI_COMMON_OPTIONS(struct volume_ls_opts)
};

const struct opt volume_rm_options[] = {
    { "data", OPT_BOOL, offsetof(struct volume_rm_opts, data), NULL, NULL,
      "with all that is in it; without, only an empty one goes", 0, true },
    CLI_COMMON_OPTIONS(struct volume_rm_opts)
};

static const struct column columns[] = {
    { "VOLUME", 0 },
    { "OWNER", 1 },
    { "CREATED", 2 },
    { "PATH", 3, .cut = true },
};
/* clang-format on */

int cmd_volume_ls(struct cli *cli, int argc, char **argv)
{
    static struct volume_ls_opts o;
    _cleanup_(table_freep) struct table *t = NULL;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    const json_t *v;
    size_t i;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get_all(cli, o.all ? "/v1/volumes?all=1" : "/v1/volumes", "volumes", &body, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, body);
        return EXIT_OK;
    }
    t = table_new(columns, ARRAY_LEN(columns));
    json_array_foreach (json_object_get(body, "volumes"), i, v) {
        table_cell(t, text_member(v, "name"));
        table_cell(t, text_member(v, "owner"));
        table_cell(t, text_time(v, "created", cli->utc));
        table_cell(t, text_member(v, "path"));
    }
    table_print(t, stdout);
    return EXIT_OK;
}

int cmd_volume_create(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = NULL, *volume = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    body = json_object();
    json_set_str(body, "name", argv[rest]);
    if (api_call(cli, "POST", "/v1/volumes", body, &volume, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, volume);
    else
        printf("%s\n", argv[rest]);
    return EXIT_OK;
}

static int remove_one(struct cli *cli, const char *name, const void *arg)
{
    const struct volume_rm_opts *o = arg;
    _cleanup_free_ char *word = http_encode(name);
    _cleanup_free_ char *path = xasprintf("/v1/volumes/%s%s", word, o->data ? "?data=1" : "");
    struct err err = ERR_INIT;

    return api_call(cli, "DELETE", path, NULL, NULL, &err) < 0 ? cli_fail(cli, &err) : EXIT_OK;
}

int cmd_volume_rm(struct cli *cli, int argc, char **argv)
{
    static struct volume_rm_opts o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, remove_one, &o);
}
