/*
 * exec: a command in a running container (docs/openapi.yaml, execInSession). With a terminal it is
 * raw and every key goes to the container; without, Ctrl-C goes there as a signal.
 */
#include <signal.h>

#include "base/str.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/exec.h"
#include "cli/ref.h"
#include "cli/request.h"

struct exec_opts {
    struct cli_common common;
    bool tty, no_tty, no_stdin;
    char *user, *workdir;
    char **env;
};

static int check_user(const char *value, struct err *err)
{
    if (!str_eq(value, "root") && !str_eq(value, "work"))
        return err_set(err, -EINVAL, "must be work or root");
    return 0;
}

/* clang-format off */
const struct opt exec_options[] = {
    { "tty", OPT_BOOL, offsetof(struct exec_opts, tty), NULL, NULL,
      "give it a terminal (it has one anyway when stdin and stdout are one)", 't', true },
    { "no_tty", OPT_BOOL, offsetof(struct exec_opts, no_tty), NULL, NULL, "give it none", 'T', true },
    { "no_stdin", OPT_BOOL, offsetof(struct exec_opts, no_stdin), NULL, NULL,
      "leave stdin alone, as in a loop that reads from it", 'n', true },
    { "user", OPT_STR, offsetof(struct exec_opts, user), "work", "USER",
      "work, or root in the container", 'u', true, check_user },
    { "env", OPT_STRV, offsetof(struct exec_opts, env), NULL, "NAME[=VALUE]",
      "set a variable; may be given several times", 'e', true },
    { "workdir", OPT_STR, offsetof(struct exec_opts, workdir), NULL, "PATH",
      "start in this folder", 'w', true },
    CLI_TALK_OPTIONS(struct exec_opts)
};
/* clang-format on */

static json_t *command_json(int count, char **words)
{
    json_t *list;

    if (count == 0)
        return json_null();
    list = json_array();
    for (int i = 0; i < count; i++)
        if (json_array_append_new(list, json_string(words[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int head_json(
    const struct exec_opts *o, bool tty, int count, char **words, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *head = json_object();
    json_t *env = json_object(), *command = command_json(count, words);
    char **variables = o->env;
    int r = 0;

    json_object_set_new(head, "env", env);
    if (!command)
        return err_set(err, -EINVAL, "the command is not UTF-8");
    json_object_set_new(head, "command", command);
    while (o->workdir && strlen(o->workdir) > 1 && str_ends(o->workdir, "/"))
        o->workdir[strlen(o->workdir) - 1] = '\0';
    if (o->workdir && json_object_set_new(head, "workdir", json_string(o->workdir)) < 0)
        return err_set(err, -EINVAL, "the folder's name is not UTF-8");
    json_set_bool(head, "root", str_eq(o->user, "root"));
    json_set_bool(head, "tty", tty);
    strv_for_each (text, variables)
        r = r < 0 ? r : request_env(env, *text, err);
    if (r == 0)
        *ret = TAKE_PTR(head);
    return r;
}

int cmd_exec(struct cli *cli, int argc, char **argv)
{
    static struct exec_opts o;
    _cleanup_(json_decrefp) json_t *head = NULL;
    _cleanup_(ref_done) struct ref ref = {0};
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);
    bool tty;

    if (code != CLI_GO_ON)
        return code;
    if (ref_parse(argv[rest++], &ref, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    if (rest < argc && str_eq(argv[rest], "--"))
        rest++;
    tty = !o.no_tty && (o.tty || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !o.no_stdin));
    if (head_json(&o, tty, argc - rest, argv + rest, &head, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    return exec_run(cli, ref.session, ref.container, head, o.no_stdin);
}
