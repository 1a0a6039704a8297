/* extend: more time for a session that runs. */
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/ref.h"
#include "cli/request.h"
#include "cli/text.h"

struct extend_opts {
    struct cli_common common;
    char *time;
    bool force;
};

/* clang-format off */
const struct opt extend_options[] = {
    { "time", OPT_STR, offsetof(struct extend_opts, time), "2h", "TIME", "so much more", 't', true,
      request_check_time },
    { "force", OPT_BOOL, offsetof(struct extend_opts, force), NULL, NULL,
      "also when sessions that wait would start later", 'f', true },
    CLI_COMMON_OPTIONS(struct extend_opts)
};
/* clang-format on */

static void say_moved(const struct cli *cli, const json_t *answer)
{
    const json_t *m;
    size_t i;

    json_array_foreach (json_object_get(answer, "moved"), i, m) {
        _cleanup_free_ char *from = text_time(m, "start", cli->utc);
        _cleanup_free_ char *to = text_time(m, "start_then", cli->utc);

        cli_say("session %llu, planned for %s, would start %s%s",
            (unsigned long long)json_u64_or(m, "num", 0), from,
            json_is_string(json_object_get(m, "start_then")) ? "at " : "nobody knows when",
            json_is_string(json_object_get(m, "start_then")) ? to : "");
    }
}

/* A person who is asked says yes. */
static bool is_agreed(void)
{
    char line[16];

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fputs("extend it all the same? [y/N] ", stderr);
    return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static int ask(struct cli *cli, const char *path, const struct extend_opts *o, bool force,
    json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object();

    json_set_str(body, "time", o->time);
    json_set_bool(body, "force", force);
    return api_call(cli, "POST", path, body, ret, err);
}

int cmd_extend(struct cli *cli, int argc, char **argv)
{
    static struct extend_opts o;
    _cleanup_(json_decrefp) json_t *session = NULL;
    _cleanup_free_ char *path = NULL, *until = NULL;
    struct err err = ERR_INIT;
    int r, rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = api_session_path(argv[rest], "/extend");
    r = ask(cli, path, &o, o.force, &session, &err);
    if (r < 0 && str_eq(cli->code, "would_delay")) {
        say_moved(cli, cli->answer);
        if (!is_agreed())
            return cli_fail(cli, &err);
        r = ask(cli, path, &o, true, &session, &err);
    }
    if (r < 0)
        return cli_fail(cli, &err);
    until = text_time(session, "deadline", cli->utc);
    if (cli->json)
        api_print(cli, session);
    else
        printf("until %s\n", until);
    return EXIT_OK;
}
