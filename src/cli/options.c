/* Reading a command's line: options wherever they stand, help, the number of words. */
#include "base/str.h"
#include "cli/commands.h"

/* clang-format off */
const struct opt main_options[] = {
    { "version", OPT_BOOL, offsetof(struct main_opts, version), NULL, NULL,
      "print the version of this program", 0, true },
    CLI_COMMON_OPTIONS(struct main_opts)
};

const struct opt cli_plain_options[] = {
    CLI_COMMON_OPTIONS(struct cli_plain)
};

const struct opt cli_talk_options[] = {
    CLI_TALK_OPTIONS(struct cli_plain)
};
/* clang-format on */

int cli_check_output(const char *value, struct err *err)
{
    if (!str_eq(value, "json") && !str_eq(value, "text"))
        return err_set(err, -EINVAL, "must be json or text");
    return 0;
}

/* --- reading ------------------------------------------------------------------------------ */

static const struct opt *find_option(const struct opt *table, const char *word)
{
    size_t len = strcspn(word + 2, "=");

    for (const struct opt *o = table; o->name; o++) {
        size_t i = 0;
        if (word[1] != '-') {
            if (o->short_name == word[1])
                return o;
            continue;
        }
        while (i < len && o->name[i] &&
            (word[i + 2] == '-' ? strchr("-_.", o->name[i]) != NULL : word[i + 2] == o->name[i]))
            i++;
        if (i == len && !o->name[i])
            return o;
    }
    return NULL;
}

/* The option in word takes the next word as its value. */
static bool takes_next(const struct opt *table, const char *word)
{
    const struct opt *o = find_option(table, word);

    if (!o || o->type == OPT_BOOL || strchr(word, '='))
        return false;
    return word[1] == '-' || !word[2];
}

/* Options first, then the words in their order: "stop 12 --now" is "stop --now 12". */
static void options_first(const struct opt *table, int argc, char **argv)
{
    _cleanup_free_ char **words = xnew_array(char *, argc);
    int options = 1, count = 0, i;

    for (i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--")) {
            for (; i < argc; i++)
                words[count++] = argv[i];
        } else if (argv[i][0] != '-' || !argv[i][1]) {
            words[count++] = argv[i];
        } else {
            bool next = takes_next(table, argv[i]);
            argv[options++] = argv[i];
            if (next && i + 1 < argc)
                argv[options++] = argv[++i];
        }
    }
    /* A "--" stays in front of the words that it was to protect: it now protects all. */
    for (i = 0; i < count; i++)
        if (str_eq(words[i], "--")) {
            memmove(words + 1, words, (size_t)i * sizeof(*words));
            words[0] = (char *)"--";
            break;
        }
    for (i = 0; i < count; i++)
        argv[options + i] = words[i];
}

static int check_words(struct cli *cli, int count, char **words)
{
    const struct command *c = cli->command;

    if (count < c->min) {
        const char *wanted = str_starts(c->args, "[OPTION]... ") ? c->args + 12 : c->args;
        return cli_usage(cli, "expects %s", wanted);
    }
    if (c->max >= 0 && count > c->max)
        return cli_usage(cli, "unexpected word '%s'", words[c->max]);
    if ((c->flags & COMMAND_STARTS) && count > 1 && words[1][0] == '-' && !str_eq(words[1], "--"))
        return cli_usage(cli,
            "'%s' stands behind '%s', where the command begins: options go before '%s', and a "
            "command that begins with '-' behind '--': muster %s %s -- %s",
            words[1], words[0], words[0], c->name, words[0], words[1]);
    return CLI_GO_ON;
}

void cli_set_url(struct cli *cli, const char *url, const char *from)
{
    free(cli->url);
    free(cli->url_from);
    cli->url = xstrdup(url);
    cli->url_from = xstrdup(from);
}

bool cli_said_token_on_line(const struct err *err)
{
    if (!str_starts(err_text(err), "unknown option '--token'"))
        return false;
    cli_say(
        "a token on the command line could be read by everybody on this machine (ps), so there "
        "is no --token: 'muster login URL' asks for it, 'muster login URL < FILE' reads it, and "
        "MUSTER_TOKEN in the environment has it for every command");
    return true;
}

int cli_parse(struct cli *cli, int argc, char **argv, void *opts, int *ret_rest)
{
    const struct command *c = cli->command;
    struct cli_common *common = opts;
    struct err err = ERR_INIT;

    opt_defaults(c->options, opts);
    if (!(c->flags & COMMAND_WORDS))
        options_first(c->options, argc, argv);
    if (opt_parse(c->options, opts, argc, argv, ret_rest, &err) < 0)
        return cli_said_token_on_line(&err) ? EXIT_USAGE : cli_usage(cli, "%s", err_text(&err));
    if (common->help) {
        help_command(c, stdout);
        return EXIT_OK;
    }
    if (common->url)
        cli_set_url(cli, common->url, "--url");
    if (common->output)
        cli->json = str_eq(common->output, "json");
    cli->utc = cli->utc || common->utc;
    return check_words(cli, argc - *ret_rest, argv + *ret_rest);
}

int cli_each(struct cli *cli, int count, char **words,
    int (*fn)(struct cli *cli, const char *word, const void *arg), const void *arg)
{
    int worst = EXIT_OK;

    for (int i = 0; i < count; i++) {
        int code = fn(cli, words[i], arg);
        worst = MAX_OF(worst, code);
    }
    return worst;
}
