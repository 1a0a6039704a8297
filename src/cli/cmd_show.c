/* show: all about one session. */
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

/* clang-format off */
static const struct column columns[] = {
    { "CONTAINER", 0 },
    { "NODE", 0 },
    { "GPUS", 2 },
    { "IP", 1 },
    { "STATE", 0 },
    { "END", 0 },
    { "TEXT", 3, .cut = true },
};
/* clang-format on */

static void line(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void line(const char *name, const char *fmt, ...)
{
    va_list ap;

    printf("%-10s ", name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

static void print_state(const json_t *s, bool utc)
{
    _cleanup_free_ char *state = text_member(s, "state"), *result = text_member(s, "result");
    _cleanup_free_ char *since = text_time(s, "state_since", utc), *reason = text_reason(s);
    const json_t *code = json_object_get(s, "exit_code");

    if (json_is_integer(code))
        line("State", "%s (%s, exit code %lld) since %s", state, result,
            (long long)json_integer_value(code), since);
    else if (str_eq(result, "-"))
        line("State", "%s since %s", state, since);
    else
        line("State", "%s (%s) since %s", state, result, since);
    if (reason[0])
        line("Reason", "%s", reason);
}

static void print_size(const json_t *s)
{
    const json_t *r = json_object_get(s, "resources");
    _cleanup_free_ char *each = text_resources(json_object_get(r, "each"));
    _cleanup_free_ char *total = text_resources(json_object_get(r, "total"));
    _cleanup_free_ char *model = text_member(r, "gpu_model");
    char shm[SIZE_TEXT_MAX];
    uint64_t size = json_u64_or(s, "size", 1);

    line("Each", "%s%s%s; %s of /dev/shm", each, str_eq(model, "-") ? "" : " of model ",
        str_eq(model, "-") ? "" : model, size_format(json_u64_or(r, "shm", 0), shm));
    line("Total", "%s in %llu container%s", total, (unsigned long long)size, size == 1 ? "" : "s");
}

static void print_kind(const json_t *s)
{
    _cleanup_free_ char *kind = text_member(s, "kind"), *mode = text_member(s, "mode");
    _cleanup_free_ char *placed = text_member(s, "placed_mode");

    if (str_eq(placed, "-"))
        line("Kind", "%s, %s", kind, mode);
    else
        line("Kind", "%s, %s; placed %s", kind, mode,
            str_eq(placed, "single-node") ? "on one node" : "on several nodes");
}

static void print_mounts(const json_t *s)
{
    const json_t *m;
    size_t i;

    json_array_foreach (json_object_get(s, "mounts"), i, m) {
        _cleanup_free_ char *volume = text_member(m, "volume"), *path = text_member(m, "path");
        line(i ? "" : "Volumes", "%s at %s%s", volume, path,
            json_bool_or(m, "read_only", false) ? " (read-only)" : "");
    }
}

static void print_command(const json_t *s)
{
    const json_t *command = json_object_get(s, "command");
    _cleanup_free_ char *words = json_array_size(command) ? text_words(command) : NULL;
    _cleanup_free_ char *on = text_member(s, "on"), *policy = text_member(s, "on_failure");
    _cleanup_free_ char *workdir = text_member(s, "workdir");

    line("Command", "%s", words ? words : "-");
    if (!str_eq(workdir, "-"))
        line("Workdir", "%s", workdir);
    line("Runs", "%s; %s about failures", str_eq(on, "all") ? "in all containers" : "in main1",
        policy);
}

static void print_times(const json_t *s, bool utc)
{
    static const char *const rows[][2] = {{"Submitted", "submitted"}, {"Placed", "placed"},
        {"Started", "started"}, {"Ended", "ended"}, {"Deadline", "deadline"}};
    uint64_t limit = json_u64_or(s, "time_limit_usec", 0);
    char text[DURATION_TEXT_MAX];

    if (limit)
        line("Limit", "%s", duration_format(limit, text));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char *time = text_time(s, rows[i][1], utc);
        /* In other states it is of the manager's own patience, not of the time limit. */
        if (str_eq(rows[i][1], "deadline") && !str_eq(json_str_or(s, "state", ""), "running"))
            continue;
        if (!str_eq(time, "-"))
            line(rows[i][0], "%s", time);
    }
}

static char *end_of(const json_t *c)
{
    _cleanup_free_ char *end = text_member(c, "end");
    const json_t *code = json_object_get(c, "exit_code");

    if (!json_is_integer(code))
        return TAKE_PTR(end);
    return xasprintf("%s %lld", end, (long long)json_integer_value(code));
}

static void print_containers(const json_t *s)
{
    _cleanup_(table_freep) struct table *t = table_new(columns, ARRAY_LEN(columns));
    const json_t *c;
    size_t i;

    json_array_foreach (json_object_get(s, "containers"), i, c) {
        _cleanup_free_ char *gpus = text_numbers(json_object_get(c, "gpus"));
        table_cell(t, text_member(c, "name"));
        table_cell(t, text_member(c, "node"));
        table_cell(t, xstrdup(gpus[0] ? gpus : "-"));
        table_cell(t, text_member(c, "ip"));
        table_cell(t, text_member(c, "state"));
        table_cell(t, end_of(c));
        table_cell(t, text_member(c, "text"));
    }
    putchar('\n');
    table_print(t, stdout);
}

static void print_session(const json_t *s, bool utc)
{
    _cleanup_free_ char *num = text_member(s, "num"), *name = text_member(s, "name");
    _cleanup_free_ char *id = text_member(s, "id"), *owner = text_member(s, "owner");
    _cleanup_free_ char *image = text_member(s, "image"), *group = text_member(s, "group");

    line("Session", "%s  %s", num, name);
    line("Id", "%s", id);
    line("Owner", "%s", owner);
    print_state(s, utc);
    print_kind(s);
    print_size(s);
    line("Group", "%s", group);
    line("Image", "%s", image);
    print_command(s);
    print_mounts(s);
    print_times(s, utc);
    print_containers(s);
}

int cmd_show(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *session = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = api_session_path(argv[rest], "");
    if (api_get(cli, path, &session, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, session);
    else
        print_session(session, cli->utc);
    return EXIT_OK;
}
