/*
 * muster: finds the command and runs it. Options in front of the command are read here; each
 * command reads its own with cli_parse.
 */
#include <locale.h>

#include "base/str.h"
#include "base/strv.h"
#include "cli/commands.h"

struct main_opts {
    struct cli_common common;
    char *url;
    bool version;
};

/* clang-format off */
const struct opt main_options[] = {
    { "url", OPT_STR, offsetof(struct main_opts, url), NULL, "URL",
      "address of the manager, instead of the configured one", 0, true },
    { "version", OPT_BOOL, offsetof(struct main_opts, version), NULL, NULL,
      "print the version of this program", 0, true },
    CLI_COMMON_OPTIONS(struct main_opts)
};
/* clang-format on */

const struct command *cli_find(int argc, char **argv, int *ret_words)
{
    for (int words = MIN_OF(argc, 2); words > 0; words--) {
        _cleanup_free_ char *name =
            words == 2 ? xasprintf("%s %s", argv[0], argv[1]) : xstrdup(argv[0]);

        for (const struct command *c = cli_commands; c->name; c++)
            if (str_eq(c->name, name)) {
                *ret_words = words;
                return c;
            }
    }
    return NULL;
}

/* "node" is the beginning of "node ls". */
static bool is_noun(const char *word)
{
    size_t len = strlen(word);

    for (const struct command *c = cli_commands; c->name; c++)
        if (str_starts(c->name, word) && c->name[len] == ' ')
            return true;
    return false;
}

static const char *nearest(const char *word)
{
    const char *best = NULL;
    unsigned least = 3;

    for (const struct command *c = cli_commands; c->name; c++) {
        unsigned d = str_distance(c->name, word);
        if (!(c->flags & COMMAND_HIDDEN) && d < least) {
            least = d;
            best = c->name;
        }
    }
    return best;
}

int cli_unknown(const char *word)
{
    const char *near = nearest(word);

    if (near)
        cli_say("unknown command '%s'; did you mean '%s'?", word, near);
    else
        cli_say("unknown command '%s'; see 'muster help'", word);
    return EXIT_USAGE;
}

/* "muster node" or "muster node lss": say what there is. */
static int noun_only(const char *noun, const char *verb)
{
    _cleanup_free_ char *word = verb ? xasprintf("%s %s", noun, verb) : NULL;
    const char *near = word ? nearest(word) : NULL;
    _cleanup_(strv_freep) char **verbs = NULL;
    _cleanup_free_ char *list = NULL;
    size_t len = strlen(noun);

    for (const struct command *c = cli_commands; c->name; c++)
        if (str_starts(c->name, noun) && c->name[len] == ' ')
            strv_push(&verbs, c->name + len + 1);
    list = strv_join(verbs, ", ");
    if (near)
        cli_say("unknown command '%s'; did you mean '%s'?", word, near);
    else
        cli_say("'%s' needs one of: %s", noun, list);
    return EXIT_USAGE;
}

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
    if (is_noun(argv[0]) && argc > 1 && str_starts(argv[1], "-") &&
        (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
        return help_noun(argv[0], stdout);
    if (is_noun(argv[0]))
        return noun_only(argv[0], argc > 1 ? argv[1] : NULL);
    return cli_unknown(argv[0]);
}

static void cli_done(struct cli *cli)
{
    http_free(cli->http);
    free(cli->url);
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
        cli_say("%s; see 'muster help'", err_text(&err));
        return EXIT_USAGE;
    }
    cli.json = str_eq(opts.common.output, "json");
    cli.utc = opts.common.utc;
    cli.url = opts.url ? xstrdup(opts.url) : NULL;
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
