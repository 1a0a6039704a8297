/*
 * The loop of process 1. One thread, one ppoll(2), every signal through a signalfd.
 *
 *              go            exec'ed           ended
 *   WAITING --------> STARTING -----> RUNNING -------> ENDED
 *     |  |               |                              ^  ^
 *     |  | go, no arg    +---- start failed, died ------+  |
 *     |  +----> IDLE                                       |
 *     |          | TERM            everybody gone, or 1 s  |
 *     +----------+------> STOPPING ------------------------+
 *      TERM
 *
 * STARTING and RUNNING hand TERM on to the command as its stop signal and go on waiting.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "init/backoff.h"
#include "init/barrier.h"
#include "init/plan.h"
#include "init/record.h"
#include "init/spawn.h"

#define STOP_USEC (1 * USEC_PER_SEC)
/* A process that came from outside (exec) is not our child: its end makes no SIGCHLD here. */
#define STOP_LOOK_USEC (50 * USEC_PER_MSEC)
#define NO_WATCH_LOOK_USEC (100 * USEC_PER_MSEC)
#define NEVER UINT64_MAX

enum phase { WAITING, IDLE, STARTING, RUNNING, STOPPING, ENDED };

struct init {
    struct plan plan;
    enum phase phase;
    int exit_code;
    int record_fd; /* -1: nobody wants to know */
    int signal_fd;
    struct barrier barrier;

    pid_t command; /* 0: none */
    int report_fd; /* STARTING only, else -1 */
    struct spawn_report report;

    pid_t sshd; /* 0: none now */
    uint64_t sshd_at;
    struct backoff sshd_backoff;

    uint64_t stop_by; /* STOPPING */
};

static uint64_t now_usec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static void record_append(const struct init *init, const char *line)
{
    if (init->record_fd >= 0)
        while (write(init->record_fd, line, strlen(line)) < 0 && errno == EINTR)
            continue;
}

static void end(struct init *init, int exit_code)
{
    init->phase = ENDED;
    init->exit_code = exit_code;
}

/* --- the command ---------------------------------------------------------------------------- */

static void start_failed(struct init *init, enum start_stage stage, int error)
{
    const char *subject = stage == START_CWD ? init->plan.cwd : init->plan.argv[0];
    char line[RECORD_LINE_MAX];

    record_format_start_failed(line, stage, error, subject);
    record_append(init, line);
    if (init->record_fd < 0)
        fprintf(stderr, "muster-init: %s", line);
    end(init, record_start_failed_code(stage, error));
}

static void close_report(struct init *init)
{
    if (init->report_fd >= 0)
        close(init->report_fd);
    init->report_fd = -1;
}

/* Has the command been executed by now? */
static void check_report(struct init *init)
{
    char line[RECORD_LINE_MAX];

    if (init->phase != STARTING || !spawn_read_report(init->report_fd, &init->report))
        return;
    close_report(init);
    if (init->report.outcome == SPAWN_FAILED) {
        start_failed(init, init->report.stage, init->report.error);
        return;
    }
    init->phase = RUNNING;
    if (init->report.outcome == SPAWN_DIED)
        return; /* its status follows */
    record_format_started(line, init->command, now_usec());
    record_append(init, line);
}

static void open_barrier(struct init *init)
{
    pid_t pid;

    barrier_done(&init->barrier);
    if (!init->plan.argv[0]) {
        init->phase = IDLE;
        return;
    }
    pid = spawn_command(&init->plan, &init->report_fd);
    if (pid < 0) {
        start_failed(init, START_EXEC, -pid);
        return;
    }
    init->command = pid;
    init->phase = STARTING;
}

static void command_ended(struct init *init, int status)
{
    char line[RECORD_LINE_MAX];

    check_report(init); /* the reasons are in the pipe even if the death is known first */
    init->command = 0;
    if (init->phase == ENDED)
        return;
    record_format_ended(line, status);
    record_append(init, line);
    end(init, record_exit_code(status));
}

/* The group exists only once the child has come to its setsid(). */
static void signal_command(const struct init *init, int sig)
{
    if (init->command > 0 && kill(-init->command, sig) < 0 && errno == ESRCH)
        kill(init->command, sig);
}

/* --- the SSH server ------------------------------------------------------------------------- */

static void start_sshd(struct init *init, uint64_t now)
{
    pid_t pid;

    if (now < init->sshd_at)
        return;
    backoff_started(&init->sshd_backoff, now);
    pid = spawn_sshd(&init->plan);
    init->sshd = pid > 0 ? pid : 0;
    init->sshd_at = pid > 0 ? NEVER : backoff_died(&init->sshd_backoff, now);
}

static void sshd_died(struct init *init)
{
    init->sshd = 0;
    if (init->phase != STOPPING)
        init->sshd_at = backoff_died(&init->sshd_backoff, now_usec());
}

/* --- signals -------------------------------------------------------------------------------- */

static void reap(struct init *init)
{
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == init->command)
            command_ended(init, status);
        else if (pid == init->sshd)
            sshd_died(init);
    }
}

static void stop(struct init *init)
{
    if (init->phase == STARTING || init->phase == RUNNING) {
        signal_command(init, init->plan.stop_signal);
    } else if (init->phase == WAITING || init->phase == IDLE) {
        init->phase = STOPPING;
        init->stop_by = now_usec() + STOP_USEC;
        init->sshd_at = NEVER;
        kill(-1, SIGTERM);
    }
}

static void take_signals(struct init *init)
{
    struct signalfd_siginfo info;

    while (read(init->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            reap(init);
            break;
        case SIGTERM:
            stop(init);
            break;
        case SIGHUP:
        case SIGINT:
        case SIGQUIT:
        case SIGUSR1:
        case SIGUSR2:
        case SIGWINCH:
            signal_command(init, (int)info.ssi_signo);
            break;
        default:
            break;
        }
    }
}

/* Every signal but those of our own faults. SIG_IGN for SIGCHLD, if inherited, would reap for us.
 */
static int block_signals(void)
{
    sigset_t set;

    signal(SIGCHLD, SIG_DFL);
    sigfillset(&set);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGILL);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGABRT);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- the loop ------------------------------------------------------------------------------- */

static uint64_t next_deadline(const struct init *init, uint64_t now)
{
    uint64_t look = NEVER;

    if (init->phase == STOPPING)
        look = now + STOP_LOOK_USEC < init->stop_by ? now + STOP_LOOK_USEC : init->stop_by;
    else if (init->phase == WAITING && init->barrier.fd < 0)
        look = now + NO_WATCH_LOOK_USEC;
    return look < init->sshd_at ? look : init->sshd_at;
}

static void wait_for_something(const struct init *init)
{
    struct pollfd fds[] = {
        {.fd = init->signal_fd, .events = POLLIN},
        {.fd = init->barrier.fd, .events = POLLIN},
        {.fd = init->report_fd, .events = POLLIN},
    };
    uint64_t now = now_usec(), until = next_deadline(init, now);
    uint64_t left = until > now ? until - now : 0;
    struct timespec timeout = {
        .tv_sec = (time_t)(left / USEC_PER_SEC),
        .tv_nsec = (long)(left % USEC_PER_SEC * 1000),
    };

    ppoll(fds, sizeof(fds) / sizeof(fds[0]), until == NEVER ? NULL : &timeout, NULL);
}

static bool everybody_is_gone(void)
{
    return kill(-1, 0) < 0 && errno == ESRCH;
}

static void turn(struct init *init)
{
    uint64_t now;

    wait_for_something(init);
    take_signals(init);
    check_report(init);
    now = now_usec();
    if (init->phase == WAITING && barrier_is_open(&init->barrier))
        open_barrier(init);
    else if (init->phase == STOPPING && (everybody_is_gone() || now >= init->stop_by))
        end(init, 0);
    if (init->phase != ENDED)
        start_sshd(init, now);
}

static int complain(const char *path, const char *text)
{
    fprintf(stderr, "muster-init: '%s': %s\n", path, text);
    return INIT_EXIT_BAD_PLAN;
}

static int load_plan(const char *path, struct plan *ret)
{
    static char text[PLAN_MAX_BYTES + 1]; /* the plan points into it */
    struct plan_err err;
    size_t len = 0;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return complain(path, strerror(errno));
    while (len < sizeof(text) && (n = read(fd, text + len, sizeof(text) - len)) > 0)
        len += (size_t)n;
    if (n < 0)
        return complain(path, strerror(errno));
    close(fd);
    if (plan_parse(ret, text, len, &err) < 0)
        return complain(path, err.text);
    return 0;
}

int init_run(const char *etc)
{
    struct init init = {.phase = WAITING, .report_fd = -1, .sshd_at = NEVER};
    char dir[PATH_MAX], go[PATH_MAX], plan[PATH_MAX], record[PATH_MAX];
    int r;

    if (strlen(etc) > PATH_MAX - 16)
        return complain(etc, strerror(ENAMETOOLONG));
    snprintf(dir, sizeof(dir), "%s/init", etc);
    snprintf(go, sizeof(go), "%s/init/go", etc);
    snprintf(plan, sizeof(plan), "%s/init/plan", etc);
    snprintf(record, sizeof(record), "%s/record", etc);

    init.signal_fd = block_signals();
    r = load_plan(plan, &init.plan);
    if (r != 0)
        return r;
    init.record_fd = open(record, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    spawn_give_streams(&init.plan);
    if (init.plan.sshd)
        init.sshd_at = 0;
    start_sshd(&init, now_usec());
    barrier_init(&init.barrier, dir, go);
    if (barrier_is_open(&init.barrier))
        open_barrier(&init);
    while (init.phase != ENDED)
        turn(&init);
    return init.exit_code;
}
