/* muster(1), made from the tables. */
#include <ctype.h>

#include "base/str.h"
#include "cli/commands.h"

/* Text as troff takes it: nothing is a request, hyphens stay hyphens. */
static void put(FILE *out, const char *text)
{
    bool line_start = true;

    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        line_start = *text == '\n';
    }
}

static void put_line(FILE *out, const char *before, const char *text, const char *behind)
{
    fputs(before, out);
    put(out, text);
    fputs(behind, out);
}

static void put_name(FILE *out, const char *name)
{
    for (; *name; name++)
        fputs(*name == '_' || *name == '.' ? "\\-" : (char[]){*name, '\0'}, out);
}

static void put_option(FILE *out, const struct opt *o)
{
    fputs(".TP\n\\fB", out);
    if (o->short_name)
        fprintf(out, "\\-%c\\fR, \\fB", o->short_name);
    fputs("\\-\\-", out);
    put_name(out, o->name);
    fputs("\\fR", out);
    if (o->arg)
        put_line(out, " \\fI", o->arg, "\\fR");
    fputc('\n', out);
    put(out, o->help);
    if (o->dflt)
        put_line(out, " (default: ", o->dflt, ")");
    fputs(".\n", out);
}

static bool is_common(const struct opt *o)
{
    for (const struct opt *c = cli_plain_options; c->name; c++)
        if (str_eq(c->name, o->name))
            return true;
    return false;
}

static void put_command(FILE *out, const struct command *c)
{
    put_line(out, ".SS \"muster ", c->name, " ");
    put(out, c->args);
    fputs("\"\n", out);
    put(out, c->help);
    fputs(".\n", out);
    for (const struct opt *o = c->options; o->name; o++)
        if (!is_common(o))
            put_option(out, o);
    if (!c->example)
        return;
    fputs(".PP\nExamples:\n.PP\n.nf\n", out);
    put(out, c->example);
    fputs(".fi\n", out);
}

static void put_heading(FILE *out, const char *group)
{
    fputs(".SH ", out);
    for (; *group; group++)
        fputc(toupper((unsigned char)*group), out);
    fputc('\n', out);
}

static const char head[] =
    ".TH MUSTER 1 \"\" \"muster " MUSTER_VERSION "\" \"Muster\"\n"
    ".SH NAME\nmuster \\- sessions of containers on a cluster of machines with GPUs\n"
    ".SH SYNOPSIS\n.B muster\n[\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n"
    ".SH DESCRIPTION\n"
    "A session is a group of containers, started together or not at all: main1, and sub1, sub2, "
    "...\n"
    "when it is larger than one. A debug session stays until it is stopped; a train session ends\n"
    "with its command.\n.PP\n"
    "A session is named by its number, its name, its id, or the beginning of its id; a container "
    "of\n"
    "it as SESSION/CONTAINER. Results go to standard output, everything else to standard error.\n";

static const char tail[] =
    ".SH \"EXIT STATUS\"\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nThe manager said no, or it failed.\n"
    ".TP\n2\nWrong usage, found before the manager was asked. A value that only the manager can "
    "judge\n"
    "is refused by it, with 1 (125 by \\fBrun\\fR, whose command may itself exit with 1).\n"
    ".TP\n3\nThe manager could not be reached.\n"
    ".TP\n4\nThe session ended otherwise than well and its command gave no exit code.\n"
    ".PP\nCommands that run another exit with its code:\n"
    ".TP\n\\fBrun\\fR\nthe session's command's; 125 when there is none: the time limit passed, the "
    "session was\n"
    "stopped by somebody else or lost with a node, or Muster failed; 130 when it was interrupted "
    "here.\n"
    ".TP\n\\fBexec\\fR\nthe command's; 127 when there is no such program, 126 when it cannot be "
    "run "
    "or its\n"
    "folder cannot be entered, 128 and the signal's number when a signal ended it; 125 when it "
    "could\n"
    "not be started because of Muster, or nobody reads what it says any more (it is told so by "
    "SIGHUP).\n"
    ".TP\n\\fBssh\\fR\nthe command's; 255 when ssh itself failed, as when the connection was lost; "
    "125 when\n"
    "it could not be started because of Muster.\n"
    ".TP\n\\fBwait\\fR\nthe command's when the session has ended by itself, 4 when it ended "
    "otherwise, 1 when\n"
    "\\fB\\-\\-timeout\\fR passed.\n"
    ".SH ENVIRONMENT\n"
    ".TP\nMUSTER_URL\nAddress of the manager (default: http://127.0.0.1:7480).\n"
    ".TP\nMUSTER_TOKEN\nToken that says who asks.\n"
    ".TP\nMUSTER_CA\nFile of certificates to trust for https.\n"
    ".SH FILES\n"
    ".TP\n~/.config/muster/config.yaml\nurl, token and ca, written by \\fBmuster login\\fR; used "
    "where\n"
    "the environment does not say. Root acting through sudo uses the file of the person behind it\n"
    "when there is none of its own.\n";

int help_man(FILE *out)
{
    fputs(head, out);
    fputs(".SH \"COMMON OPTIONS\"\n", out);
    for (const struct opt *o = main_options; o->name; o++)
        put_option(out, o);
    for (const char *const *g = cli_groups; *g; g++) {
        put_heading(out, *g);
        for (const struct command *c = cli_commands; c->name; c++)
            if (!(c->flags & COMMAND_HIDDEN) && str_eq(c->group, *g))
                put_command(out, c);
    }
    fputs(tail, out);
    return EXIT_OK;
}
