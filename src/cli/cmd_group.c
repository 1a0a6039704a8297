/* group ...: groups of nodes and what they allow. */
#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/request.h"
#include "cli/table.h"
#include "cli/text.h"

struct group_opts {
    struct cli_common common;
    char *time_default, *time_max, *size_max;
    char **kinds;
};

static int check_limit(const char *value, struct err *err)
{
    return str_eq(value, "none") ? 0 : request_check_time(value, err);
}

static int check_size_max(const char *value, struct err *err)
{
    return str_eq(value, "none") ? 0 : request_check_size(value, err);
}

/* clang-format off */
const struct opt group_options[] = {
    { "time_default", OPT_STR, offsetof(struct group_opts, time_default), NULL, "TIME",
      "time limit of sessions that ask for none; or none", 0, true, check_limit },
    { "time_max", OPT_STR, offsetof(struct group_opts, time_max), NULL, "TIME",
      "longest time limit; or none", 0, true, check_limit },
    { "size_max", OPT_STR, offsetof(struct group_opts, size_max), NULL, "N",
      "most containers of a session; or none", 0, true, check_size_max },
    { "kind", OPT_STRV, offsetof(struct group_opts, kinds), NULL, "KIND",
      "allow debug or train sessions; may be given twice", 0, true, request_check_kind },
    CLI_COMMON_OPTIONS(struct group_opts)
};

static const struct column columns[] = {
    { "GROUP", 0 },
    { "KINDS", 0 },
    { "DEFAULT TIME", 2, true },
    { "LONGEST TIME", 1, true },
    { "LARGEST SIZE", 3, true },
    { "NODES", 4, .cut = true },
};
/* clang-format on */

static char *limit_of(const json_t *g, const char *key)
{
    uint64_t seconds = json_u64_or(g, key, 0);
    char text[DURATION_TEXT_MAX];

    return xstrdup(seconds ? duration_format(seconds * USEC_PER_SEC, text) : "-");
}

static void add_row(const struct cli *cli, struct table *t, const json_t *g)
{
    bool debug = json_bool_or(g, "allow_debug", false),
         train = json_bool_or(g, "allow_train", false);

    table_cell(t, text_member(g, "name"));
    table_cell(t,
        xstrdup(debug && train ? "debug,train"
                : debug        ? "debug"
                : train        ? "train"
                               : "-"));
    table_cell(t, limit_of(g, "time_default"));
    table_cell(t, limit_of(g, "time_max"));
    table_cell(t, text_member(g, "size_max"));
    table_cell(t, text_words(json_object_get(g, "nodes")));
}

int cmd_group_ls(struct cli *cli, int argc, char **argv)
{
    return listing_run(cli, argc, argv,
        &(struct listing){"/v1/groups", "groups", columns, ARRAY_LEN(columns), add_row});
}

static void set_limit(json_t *body, const char *key, const char *value)
{
    if (value)
        json_set_str(body, key, str_eq(value, "none") ? NULL : value);
}

static json_t *group_body(const struct group_opts *o)
{
    json_t *body = json_object();
    uint64_t n = 0;

    set_limit(body, "time_default", o->time_default);
    set_limit(body, "time_max", o->time_max);
    if (o->size_max && str_to_u64(o->size_max, UINT32_MAX, &n) == 0)
        json_set_u64(body, "size_max", n);
    else if (o->size_max)
        json_object_set_new(body, "size_max", json_null());
    if (o->kinds)
        json_set_strv(body, "kinds", o->kinds);
    return body;
}

static int send_group(struct cli *cli, const char *method, const char *path, json_t *body)
{
    _cleanup_(json_decrefp) json_t *group = NULL;
    struct err err = ERR_INIT;
    int r = api_call(cli, method, path, body, &group, &err);

    json_decref(body);
    if (r < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, group);
    return EXIT_OK;
}

int cmd_group_create(struct cli *cli, int argc, char **argv)
{
    static struct group_opts o;
    json_t *body;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    body = group_body(&o);
    json_set_str(body, "name", argv[rest]);
    return send_group(cli, "POST", "/v1/groups", body);
}

int cmd_group_set(struct cli *cli, int argc, char **argv)
{
    static struct group_opts o;
    _cleanup_free_ char *name = NULL, *path = NULL;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    name = http_encode(argv[rest]);
    path = xasprintf("/v1/groups/%s", name);
    return send_group(cli, "PATCH", path, group_body(&o));
}
