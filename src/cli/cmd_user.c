/* user ...: who may do what; for administrators. */
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "cli/text.h"

struct user_add_opts {
    struct cli_common common;
    char *role;
    uint64_t uid;
};

static int check_role(const char *value, struct err *err)
{
    if (!str_eq(value, "user") && !str_eq(value, "operator") && !str_eq(value, "admin"))
        return err_set(err, -EINVAL, "must be user, operator or admin");
    return 0;
}

/* clang-format off */
const struct opt user_add_options[] = {
    { "role", OPT_STR, offsetof(struct user_add_opts, role), "user", "ROLE", "user, operator or admin",
      'r', true, check_role },
    { "uid", OPT_U64, offsetof(struct user_add_opts, uid), NULL, "UID",
      "uid of their files on volumes (a free one if unset)", 'u', true },
    CLI_COMMON_OPTIONS(struct user_add_opts)
};

static const struct column columns[] = {
    { "USER", 0 },
    { "ROLE", 0 },
    { "UID", 0, true },
};
/* clang-format on */

static void add_row(const struct cli *cli, struct table *t, const json_t *u)
{
    table_cell(t, text_member(u, "name"));
    table_cell(t, text_member(u, "role"));
    table_cell(t, text_member(u, "uid"));
}

int cmd_user_ls(struct cli *cli, int argc, char **argv)
{
    return listing_run(cli, argc, argv,
        &(struct listing){"/v1/users", "users", columns, ARRAY_LEN(columns), add_row});
}

/* The token goes to stdout alone, so that it can be kept: it is shown once. */
int cmd_user_add(struct cli *cli, int argc, char **argv)
{
    static struct user_add_opts o;
    _cleanup_(json_decrefp) json_t *body = NULL, *user = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    body = json_object();
    json_set_str(body, "name", argv[rest]);
    json_set_str(body, "role", o.role);
    if (o.uid)
        json_set_u64(body, "uid", o.uid);
    if (api_call(cli, "POST", "/v1/users", body, &user, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, user);
    else
        printf("%s\n", json_str_or(user, "token", ""));
    return EXIT_OK;
}
