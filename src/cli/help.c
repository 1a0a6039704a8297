/* help: the commands by what they are for, and each by example. All text is in the table. */
#include "base/str.h"
#include "cli/commands.h"

struct help_opts {
    struct cli_common common;
    bool man;
    char *completion;
};

/* clang-format off */
const struct opt help_options[] = {
    { "man", OPT_BOOL, offsetof(struct help_opts, man), NULL, NULL, "print muster(1) for troff", 0, true },
    { "completion", OPT_STR, offsetof(struct help_opts, completion), NULL, "SHELL",
      "print the completion for this shell (bash)", 0, true },
    CLI_LOCAL_OPTIONS(struct help_opts)
};
/* clang-format on */

static void print_group(const char *group, FILE *out)
{
    fprintf(out, "\n%s\n", group);
    for (const struct command *c = cli_commands; c->name; c++)
        if (!(c->flags & COMMAND_HIDDEN) && str_eq(c->group, group))
            fprintf(out, "  %-15s %s\n", c->name, c->help);
}

int help_overview(FILE *out)
{
    fputs("Usage: muster [OPTION]... COMMAND [ARGUMENT]...\n\n"
          "Sessions of containers on a cluster of machines with GPUs. To begin:\n\n"
          "  ID=$(muster create --wait --gpus 1 base)   a container with a GPU\n"
          "  muster ssh $ID                             work in it\n"
          "  muster stop $ID                            give it back\n"
          "  muster run --size 4 --gpus 8 IMAGE torchrun train.py   run a job and wait for it\n",
        out);
    for (const char *const *g = cli_groups; *g; g++)
        print_group(*g, out);
    fputs("\nOptions\n", out);
    opt_print_help(main_options, out);
    fputs("\n'muster help COMMAND' shows its options and examples.\n", out);
    return EXIT_OK;
}

int help_noun(const char *noun, FILE *out)
{
    size_t len = strlen(noun);
    bool any = false;

    for (const struct command *c = cli_commands; c->name; c++) {
        if (!str_starts(c->name, noun) || c->name[len] != ' ')
            continue;
        fprintf(out, "muster %s %s\n    %s\n", c->name, c->args, c->help);
        any = true;
    }
    return any ? EXIT_OK : cli_unknown(noun);
}

int help_command(const struct command *c, FILE *out)
{
    fprintf(out, "Usage: muster %s %s\n\n%s.\n", c->name, c->args, c->help);
    if (c->example)
        fprintf(out, "\nExamples:\n%s", c->example);
    fputs("\nOptions:\n", out);
    opt_print_help(c->options, out);
    return EXIT_OK;
}

int help_topic(int argc, char **argv, FILE *out)
{
    int words;
    const struct command *c = cli_find(argc, argv, &words);

    return c ? help_command(c, out) : help_noun(argv[0], out);
}

int cmd_help(struct cli *cli, int argc, char **argv)
{
    static struct help_opts o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (o.man)
        return help_man(stdout);
    if (o.completion)
        return help_completion(o.completion, stdout);
    return rest < argc ? help_topic(argc - rest, argv + rest, stdout) : help_overview(stdout);
}
