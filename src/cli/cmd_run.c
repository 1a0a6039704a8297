/*
 * run: make a session, show main1's output, exit with its code. A worker thread follows; this one
 * waits for signals: the first Ctrl-C (or SIGTERM) stops the session, the second at once, the third
 * leaves. A closed terminal (SIGHUP) only ends the client: the session goes on.
 */
#include <pthread.h>
#include <signal.h>

#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/request.h"

struct run_opts {
    struct cli_common common;
    struct request_opts request;
};

/* clang-format off */
const struct opt run_options[] = {
    REQUEST_OPTIONS(struct run_opts),
    CLI_COMMON_OPTIONS(struct run_opts)
};
/* clang-format on */

#define DONE_SIGNAL SIGUSR1

struct runner {
    struct cli cli; /* the worker's own connection */
    const char *id;
    pthread_t main_thread;
    json_t *session; /* as it ended */
    int result;
    struct err err;
};

/* In the worker. */
static int follow(struct runner *run)
{
    struct log_opts log = {
        .session = run->id,
        .container = "main1",
        .follow = true,
        .out_fd = STDOUT_FILENO,
        .err_fd = STDERR_FILENO,
    };
    _cleanup_(json_decrefp) json_t *session = NULL;
    int r = follow_until(&run->cli, run->id, "running", 0, &session, &run->err);

    if (r == 0 && !json_is_null(json_object_get(session, "started")))
        r = follow_log(&run->cli, &log, &run->err);
    if (r < 0)
        return r;
    return follow_until(&run->cli, run->id, "ended", 0, &run->session, &run->err);
}

static void *worker(void *arg)
{
    struct runner *run = arg;

    run->result = follow(run);
    http_free(run->cli.http);
    pthread_kill(run->main_thread, DONE_SIGNAL);
    return NULL;
}

static void ask_stop(struct cli *cli, const char *id, bool now)
{
    _cleanup_free_ char *path = api_session_path(id, "/stop");
    _cleanup_(json_decrefp) json_t *body = json_object();
    struct err err = ERR_INIT;

    json_set_bool(body, "now", now);
    if (api_call(cli, "POST", path, body, NULL, &err) < 0)
        cli_say("cannot stop the session: %s", err_text(&err));
}

static void interrupted(struct cli *cli, const char *id, unsigned times)
{
    if (times == 1)
        cli_say("stopping the session; once more to stop it at once");
    else if (times == 2)
        cli_say("stopping at once; once more to leave without waiting");
    if (times <= 2)
        ask_stop(cli, id, times == 2);
}

/* Until the worker is done; how often it was interrupted. */
static unsigned wait_signals(struct cli *cli, const char *id, const sigset_t *set)
{
    unsigned times = 0;
    int signo = 0;

    while (sigwait(set, &signo) == 0 && signo != DONE_SIGNAL && times < 3)
        interrupted(cli, id, ++times);
    return times;
}

static int finish(struct cli *cli, struct runner *run, unsigned times)
{
    if (run->result == -EPIPE)
        return EXIT_MUSTER; /* whoever read the output has gone; the session goes on */
    if (run->result < 0)
        return cli_fail(cli, &run->err);
    if (cli->json)
        api_print(cli, run->session);
    return follow_exit_code(run->session, times > 0 ? 130 : EXIT_MUSTER);
}

static int run_session(struct cli *cli, const json_t *session)
{
    struct runner *run = xnew(struct runner);
    pthread_t thread;
    sigset_t set;
    unsigned times;
    int code;

    *run = (struct runner){
        .cli = api_clone(cli),
        .id = json_str_or(session, "id", ""),
        .main_thread = pthread_self(),
    };
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, DONE_SIGNAL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, worker, run) != 0)
        abort();
    times = wait_signals(cli, run->id, &set);
    if (times >= 3) { /* the worker may be in a call that takes long: leave it */
        cli_say("left; the session may still be running: see 'muster show %s'", run->id);
        fflush(stdout);
        _exit(130);
    }
    pthread_join(thread, NULL);
    code = finish(cli, run, times);
    json_decref(run->session);
    free(run);
    return code;
}

/* Nothing would run and nothing could be typed. */
static int nothing_to_run(const char *image)
{
    cli_say("run: there is no command, so nothing would run; to work in a session: "
            "ID=$(muster create --wait %s) && muster ssh $ID; to run the image's own command: "
            "muster run --kind train %s",
        image, image);
    return EXIT_USAGE;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
    static struct run_opts o;
    _cleanup_(json_decrefp) json_t *session = NULL;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);
    int words = argc - rest;

    if (code != CLI_GO_ON)
        return code;
    if (words - (words > 1 && str_eq(argv[rest + 1], "--")) < 2 && !str_eq(o.request.kind, "train"))
        return nothing_to_run(argv[rest]);
    code = request_send(cli, &o.request, words, argv + rest, &session);
    return code == CLI_GO_ON ? run_session(cli, session) : code;
}
