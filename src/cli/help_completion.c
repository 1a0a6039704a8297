/* Completion for bash, made from the tables: commands and options. */
#include "base/str.h"
#include "cli/commands.h"

static void put_option_names(const struct opt *table, FILE *out)
{
    for (const struct opt *o = table; o->name; o++) {
        fputs(" --", out);
        for (const char *c = o->name; *c; c++)
            fputc(*c == '_' || *c == '.' ? '-' : *c, out);
    }
}

static bool seen_before(const struct command *c, size_t len)
{
    for (const struct command *b = cli_commands; b != c; b++)
        if (strncmp(b->name, c->name, len) == 0 && (b->name[len] == ' ' || !b->name[len]))
            return true;
    return false;
}

/* First words, each once. */
static void put_first_words(FILE *out)
{
    for (const struct command *c = cli_commands; c->name; c++) {
        size_t len = strcspn(c->name, " ");
        if (!(c->flags & COMMAND_HIDDEN) && !seen_before(c, len))
            fprintf(out, " %.*s", (int)len, c->name);
    }
}

/* "node)  words=... ;;" for each noun with verbs. */
static void put_verbs(FILE *out)
{
    for (const struct command *c = cli_commands; c->name; c++) {
        size_t len = strcspn(c->name, " ");
        if (!c->name[len] || seen_before(c, len))
            continue;
        fprintf(out, "        %.*s) words=\"", (int)len, c->name);
        for (const struct command *d = c; d->name; d++)
            if (strncmp(d->name, c->name, len + 1) == 0)
                fprintf(out, " %s", d->name + len + 1);
        fputs("\" ;;\n", out);
    }
}

static void put_options(FILE *out)
{
    for (const struct command *c = cli_commands; c->name; c++) {
        fprintf(out, "        \"%s\") words=\"", c->name);
        put_option_names(c->options, out);
        fputs("\" ;;\n", out);
    }
}

int help_completion(const char *shell, FILE *out)
{
    if (!str_eq(shell, "bash")) {
        cli_say("help: there is completion for bash only");
        return EXIT_USAGE;
    }
    fputs("# bash completion for muster; made by 'muster help --completion bash'\n"
          "_muster()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} first=${COMP_WORDS[1]} words=\"\" command\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"",
        out);
    put_first_words(out);
    fputs("\"\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n    fi\n"
          "    case $first in\n",
        out);
    put_verbs(out);
    fputs("    esac\n"
          "    if [ -n \"$words\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n    fi\n"
          "    command=$first\n"
          "    [ -n \"$words\" ] && command=\"$first ${COMP_WORDS[2]}\"\n"
          "    words=\"\"\n    case $command in\n",
        out);
    put_options(out);
    fputs("    esac\n"
          "    case $cur in\n"
          "        -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
          "    esac\n}\n"
          "complete -o bashdefault -o default -F _muster muster\n",
        out);
    return EXIT_OK;
}
