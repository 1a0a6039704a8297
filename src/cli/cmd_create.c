/* create: make a session and print its id. */
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/request.h"

struct create_opts {
    struct cli_common common;
    struct request_opts request;
    bool wait;
};

/* clang-format off */
const struct opt create_options[] = {
    REQUEST_OPTIONS(struct create_opts),
    { "wait", OPT_BOOL, offsetof(struct create_opts, wait), NULL, NULL,
      "return when it runs; exit with 4 if it ends instead", 0, true },
    CLI_COMMON_OPTIONS(struct create_opts)
};
/* clang-format on */

static int wait_running(struct cli *cli, json_t **session, struct err *err)
{
    json_t *later = NULL;
    int r = follow_until(cli, json_str_or(*session, "id", ""), "running", 0, &later, err);

    if (r < 0)
        return r;
    json_decref(*session);
    *session = later;
    return 0;
}

int cmd_create(struct cli *cli, int argc, char **argv)
{
    static struct create_opts o;
    _cleanup_(json_decrefp) json_t *session = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code == CLI_GO_ON)
        code = request_send(cli, &o.request, argc - rest, argv + rest, &session);
    if (code != CLI_GO_ON)
        return code;
    if (!cli->json) { /* at once: whoever is interrupted while waiting has it */
        printf("%s\n", json_str_or(session, "id", ""));
        fflush(stdout);
    }
    if (o.wait && wait_running(cli, &session, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, session);
    if (o.wait && !str_eq(json_str_or(session, "state", ""), "running")) {
        code = follow_exit_code(session, EXIT_ENDED);
        return code == EXIT_OK ? EXIT_OK : EXIT_ENDED;
    }
    return EXIT_OK;
}
