/*
 * muster: finds the command and runs it. Options in front of the command are read here; each
 * command reads its own with cli_parse.
 */
#include <locale.h>

#include "base/str.h"
#include "cli/commands.h"

/* argv[0] becomes the command's whole name, as cli_parse wants it. */
static int run_command(struct cli *cli, const struct command *c, int words, int argc, char **argv)
{
    struct err err = ERR_INIT;

    cli->command = c;
    if (!(c->flags & COMMAND_LOCAL) && config_read(cli, &err) < 0) {
        cli_say("%s", err_text(&err));
        return EXIT_USAGE;
    }
    argv += words - 1;
    argv[0] = (char *)c->name;
    return c->fn(cli, argc - words + 1, argv);
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
    const struct command *c;
    int words;

    if (argc == 0) {
        help_overview(stderr);
        return EXIT_USAGE;
    }
    c = cli_find(argc, argv, &words);
    if (c)
        return run_command(cli, c, words, argc, argv);
    if (cli_is_noun(argv[0]) && argc > 1 && str_starts(argv[1], "-") &&
        (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
        return help_noun(argv[0], stdout);
    if (cli_is_noun(argv[0]))
        return cli_unknown_verb(argv[0], argc > 1 ? argv[1] : NULL);
    return cli_unknown(argv[0]);
}

static void cli_done(struct cli *cli)
{
    http_free(cli->http);
    free(cli->url);
    free(cli->url_from);
    free(cli->token);
    free(cli->ca);
}

int main(int argc, char **argv)
{
    static struct main_opts opts;
    struct cli cli = {0};
    struct err err = ERR_INIT;
    int rest, code;

    setlocale(LC_ALL, "");
    cli.is_tty = isatty(STDOUT_FILENO);
    if (opt_parse(main_options, &opts, argc, argv, &rest, &err) < 0) {
        if (!cli_said_token_on_line(&err))
            cli_say("%s; see 'muster help'", err_text(&err));
        return EXIT_USAGE;
    }
    cli.json = str_eq(opts.common.output, "json");
    cli.utc = opts.common.utc;
    if (opts.common.url)
        cli_set_url(&cli, opts.common.url, "--url");
    if (opts.version) {
        puts("muster " MUSTER_VERSION);
        code = EXIT_OK;
    } else if (opts.common.help) {
        code = rest < argc ? help_topic(argc - rest, argv + rest, stdout) : help_overview(stdout);
    } else {
        code = dispatch(&cli, argc - rest, argv + rest);
    }
    opt_free(main_options, &opts);
    cli_done(&cli);
    if (fflush(stdout) != 0 && code == EXIT_OK) {
        cli_say("cannot write: %s", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
