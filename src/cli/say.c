/* Saying what is wrong: on stderr, in one form, with nobody else's control characters in it. */
#include "base/str.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/progress.h"

#define SAY_MAX 4096

static void say(const char *text)
{
    _cleanup_free_ char *clean = str_escape(text, strlen(text), SAY_MAX);

    progress_clear();
    fflush(stdout);
    fprintf(stderr, "muster: %s\n", clean);
}

void cli_say(const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    say(text);
}

static void say_once(const char *text)
{
    static char **said;

    if (strv_has(said, text))
        return;
    strv_push(&said, text);
    say(text);
}

void cli_say_once(const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    say_once(text);
}

void cli_warn(const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL, *line = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    line = xasprintf("warning: %s", text);
    say_once(line);
}

static bool is_this_machine(const char *url)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = strstr(url, "://");

    for (size_t i = 0; host && i < ARRAY_LEN(names); i++)
        if (str_starts(host + 3, names[i]) && strchr(":/", host[3 + strlen(names[i])]))
            return true;
    return false;
}

/* Whose address it was, and what may be done about nobody being there. */
static void say_next(const struct cli *cli)
{
    const char *next = is_this_machine(cli->url) ? "'muster status' shows whether the daemons of "
                                                   "'muster up' run, 'sudo muster up' starts them"
                                                 : "'muster login URL' keeps another one";

    if (cli->url_from)
        cli_say("the address is from %s; %s", cli->url_from, next);
    else
        cli_say("no address is configured, so this machine was tried; %s", next);
}

int cli_fail(struct cli *cli, const struct err *err)
{
    bool runs = cli->command && (cli->command->flags & COMMAND_RUNS);

    say(err_text(err));
    if (cli->url && api_is_unreachable(err->code) && str_starts(err_text(err), API_UNREACHABLE))
        say_next(cli);
    if (runs)
        return EXIT_MUSTER;
    return api_is_unreachable(err->code) ? EXIT_UNREACHABLE : EXIT_FAILED;
}

int cli_usage(struct cli *cli, const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    cli_say("%s: %s; see 'muster help %s'", cli->command->name, text, cli->command->name);
    return EXIT_USAGE;
}
