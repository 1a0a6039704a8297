/* logs: what a container wrote. */
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/ref.h"

struct logs_opts {
    struct cli_common common;
    bool follow, timestamps;
};

/* clang-format off */
const struct opt logs_options[] = {
    { "follow", OPT_BOOL, offsetof(struct logs_opts, follow), NULL, NULL,
      "go on until the container has ended", 'f', true },
    { "timestamps", OPT_BOOL, offsetof(struct logs_opts, timestamps), NULL, NULL,
      "put the time in front of each line", 0, true },
    CLI_UTC_OPTION(struct logs_opts),
    CLI_TALK_OPTIONS(struct logs_opts)
};
/* clang-format on */

int cmd_logs(struct cli *cli, int argc, char **argv)
{
    static struct logs_opts o;
    _cleanup_(ref_done) struct ref ref = {0};
    struct err err = ERR_INIT;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (ref_parse(argv[rest], &ref, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    r = follow_log(cli,
        &(struct log_opts){
            .session = ref.session,
            .container = ref.container,
            .follow = o.follow,
            .timestamps = o.timestamps,
            .out_fd = STDOUT_FILENO,
            .err_fd = STDERR_FILENO,
        },
        &err);
    return r < 0 ? cli_fail(cli, &err) : EXIT_OK;
}
