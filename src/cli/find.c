/* Finding a command by its words, and saying what was probably meant. */
#include "base/str.h"
#include "base/strv.h"
#include "cli/commands.h"

const struct command *cli_find(int argc, char **argv, int *ret_words)
{
    for (int words = MIN_OF(argc, 2); words > 0; words--) {
        _cleanup_free_ char *name = words == 2 ? xasprintf("%s %s", argv[0], argv[1])
                                               : xstrdup(argv[0]);

        for (const struct command *c = cli_commands; c->name; c++)
            if (str_eq(c->name, name)) {
                *ret_words = words;
                return c;
            }
    }
    return NULL;
}

/* "node" is the beginning of "node ls". */
bool cli_is_noun(const char *word)
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
int cli_unknown_verb(const char *noun, const char *verb)
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
