/* stop, why, wait: the short commands on one session. */
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/ref.h"
#include "cli/text.h"

struct stop_opts {
    struct cli_common common;
    bool now, wait;
};

struct wait_opts {
    struct cli_common common;
    char *until;
    uint64_t timeout;
};

static int check_until(const char *value, struct err *err)
{
    if (!str_eq(value, "running") && !str_eq(value, "ended"))
        return err_set(err, -EINVAL, "must be running or ended");
    return 0;
}

/* clang-format off */
const struct opt stop_options[] = {
    { "now", OPT_BOOL, offsetof(struct stop_opts, now), NULL, NULL,
      "kill at once, without the grace time", 0, true },
    { "wait", OPT_BOOL, offsetof(struct stop_opts, wait), NULL, NULL,
      "return when everything of it is removed", 0, true },
    CLI_COMMON_OPTIONS(struct stop_opts)
};

const struct opt wait_options[] = {
    { "for", OPT_STR, offsetof(struct wait_opts, until), "ended", "STATE", "running or ended", 0, true,
      check_until },
    { "timeout", OPT_DURATION, offsetof(struct wait_opts, timeout), NULL, "TIME",
      "give up after so long (exit code 1)", 0, true },
    CLI_COMMON_OPTIONS(struct wait_opts)
};
/* clang-format on */

static int stop_one(struct cli *cli, const char *ref, const void *arg)
{
    const struct stop_opts *o = arg;
    _cleanup_free_ char *path = api_session_path(ref, "/stop");
    _cleanup_(json_decrefp) json_t *body = json_object(), *session = NULL, *ended = NULL;
    struct err err = ERR_INIT;

    json_set_bool(body, "now", o->now);
    if (api_call(cli, "POST", path, body, &session, &err) < 0)
        return cli_fail(cli, &err);
    if (o->wait && follow_until(cli, json_str_or(session, "id", ref), "ended", 0, &ended, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, ended ? ended : session);
    return EXIT_OK;
}

int cmd_stop(struct cli *cli, int argc, char **argv)
{
    static struct stop_opts o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, stop_one, &o);
}

/* The options with which a request would be that other one: "--size 2"; heap. */
static char *change_text(const json_t *change)
{
    const char *model = json_str_or(change, "gpu_model", NULL);
    const char *mode = json_str_or(change, "mode", NULL);
    uint64_t usec = json_u64_or(change, "time_limit_usec", 0);
    char span[DURATION_TEXT_MAX];

    if (model)
        return xasprintf("--gpu-model %s", model);
    if (mode)
        return xasprintf("--mode %s", mode);
    if (usec)
        return xasprintf("--time %s", duration_format(usec, span));
    if (json_object_get(change, "size"))
        return xasprintf("--size %llu", (unsigned long long)json_u64_or(change, "size", 0));
    return xasprintf("--gpus %llu", (unsigned long long)json_u64_or(change, "gpus", 0));
}

static void print_what_if(const struct cli *cli, const json_t *rows)
{
    const json_t *row;
    size_t i;

    if (json_array_size(rows) > 0)
        puts("  what would start earlier, if it were asked for now instead:");
    json_array_foreach (rows, i, row) {
        _cleanup_free_ char *change = change_text(json_object_get(row, "change"));
        _cleanup_free_ char *clean = text_clean(change), *start = text_time(row, "start", cli->utc);

        printf("    %-24s %s\n", clean, json_bool_or(row, "now", false) ? "now" : start);
    }
}

static void print_why(const struct cli *cli, const json_t *why)
{
    _cleanup_free_ char *state = text_state(why), *message = text_member(why, "message");
    _cleanup_free_ char *checked = text_time(why, "checked", cli->utc);
    _cleanup_free_ char *start = text_time(why, "planned_start", cli->utc);
    const json_t *line;
    size_t i;

    printf("%s: %s\n", state, message);
    if (json_is_string(json_object_get(why, "planned_start")))
        printf("  planned to start at %s at the latest\n", start);
    json_array_foreach (json_object_get(why, "details"), i, line) {
        _cleanup_free_ char *text = text_clean(json_is_string(line) ? json_string_value(line) : "");
        printf("  %s\n", text);
    }
    print_what_if(cli, json_object_get(why, "what_if"));
    if (str_eq(json_str_or(why, "state", ""), "pending"))
        printf("  last looked at %s (pass %llu)\n", checked,
            (unsigned long long)json_u64_or(why, "pass", 0));
}

int cmd_why(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *why = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = api_session_path(argv[rest], "/why");
    if (api_get(cli, path, &why, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, why);
    else
        print_why(cli, why);
    return EXIT_OK;
}

int cmd_wait(struct cli *cli, int argc, char **argv)
{
    static struct wait_opts o;
    _cleanup_(json_decrefp) json_t *session = NULL;
    struct err err = ERR_INIT;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    r = follow_until(
        cli, argv[rest], o.until, o.timeout ? clock_mono_usec() + o.timeout : 0, &session, &err);
    if (r < 0 && r != -ETIME)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, session);
    if (r == -ETIME) {
        cli_say("the session is still %s", json_str_or(session, "state", "?"));
        return EXIT_FAILED;
    }
    if (str_eq(o.until, "running") && str_eq(json_str_or(session, "state", ""), "running"))
        return EXIT_OK;
    if (str_eq(json_str_or(session, "state", ""), "stopping"))
        return EXIT_ENDED;
    return follow_exit_code(session, EXIT_ENDED);
}
