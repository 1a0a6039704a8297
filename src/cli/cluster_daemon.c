/*
 * The daemons of a cluster on one machine: found beside this program, started in the background,
 * stopped by pid and start time, never by name.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/strv.h"
#include "cli/cluster.h"

#define TERM_USEC (10 * USEC_PER_SEC)
#define KILL_USEC (10 * USEC_PER_SEC)
#define POLL_USEC 20000
#define LAST_WORDS_MAX 2048
#define CLEAN_USEC (90 * USEC_PER_SEC)

/* --- programs and folders ----------------------------------------------------------------- */

char *cluster_program(const char *name, const char *build_folder)
{
    _cleanup_free_ char *own = proc_own_folder();
    char *places[] = {
        xasprintf("%s/%s", own, name),
        xasprintf("%s/../%s/%s", own, build_folder, name),
        xasprintf("%s/../libexec/muster/%s", own, name),
        xasprintf("%s/../sbin/%s", own, name),
        xasprintf("/usr/libexec/muster/%s", name),
        xasprintf("/usr/sbin/%s", name),
    };
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!found && access(places[i], X_OK) == 0)
            found = realpath(places[i], NULL);
        free(places[i]);
    }
    return found;
}

char *cluster_guest(const struct cluster *c)
{
    const char *env = getenv("MUSTER_GUEST");
    _cleanup_free_ char *own = proc_own_folder();
    char *places[] = {
        xstrdup(env && env[0] == '/' ? env : NULL),
        xasprintf("%s/guest", c->dir),
        xasprintf("%s/../lib/muster/guest", own),
        str_ends(own, "/src/cli") ? xasprintf("%s/../../guest", own) : NULL, /* a build tree */
        xstrdup("/usr/lib/muster/guest"),
    };
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!found && places[i] && fs_exists(places[i]))
            found = realpath(places[i], NULL);
        free(places[i]);
    }
    return found;
}

static char *log_path(const struct cluster *c, const char *name)
{
    return xasprintf("%s/log/%s.log", c->dir, name);
}

char *daemon_last_words(const struct cluster *c, const char *name)
{
    _cleanup_free_ char *path = log_path(c, name);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[LAST_WORDS_MAX + 1];
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = fd < 0 ? 0 : pread(fd, text, LAST_WORDS_MAX, MAX_OF(end - LAST_WORDS_MAX, 0));
    char *line;

    text[MAX_OF(n, 0)] = '\0';
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    line = strrchr(text, '\n');
    return xstrdup(line ? line + 1 : text);
}

/* --- starting ----------------------------------------------------------------------------- */

/* Ended, but not yet taken off the list by its parent: proc(5), stat field 3. */
static bool is_zombie(pid_t pid)
{
    _cleanup_free_ char *path = xasprintf("/proc/%d/stat", (int)pid);
    char text[512], *behind;
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = '\0';
    behind = strrchr(text, ')'); /* of the name, which may have any characters */
    return !behind || !behind[1] || strchr("ZX", behind[2]);
}

bool daemon_runs(const struct cluster *c, const struct daemon *d)
{
    char boot_id[37];
    uint64_t start;

    if (d->pid <= 0)
        return false;
    (void)waitpid(d->pid, NULL, WNOHANG); /* when it is ours */
    return proc_boot_id(boot_id, NULL) == 0 && str_eq(boot_id, c->boot_id) &&
        proc_start_time(d->pid, &start) == 0 && start == d->start_time && !is_zombie(d->pid);
}

/* What helps to find a fault reaches the daemons; nothing else of the caller's does. */
static char **daemon_env(void)
{
    static const char *const passed[] = {
        "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "MUSTER_CRASH", "TZ"};
    char **env = NULL;

    for (const char *const *e = PROC_ENV_FIXED; *e; e++)
        strv_push(&env, *e);
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        if (getenv(passed[i]))
            strv_env_set(&env, passed[i], getenv(passed[i]));
    return env;
}

static int start(struct cluster *c, const char *name, char *const *words, int netns,
    struct daemon *ret, struct err *err)
{
    _cleanup_(strv_freep) char **env = daemon_env();
    _cleanup_free_ char *path = log_path(c, name);
    _cleanup_close_ int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    struct proc p = {
        .argv = (const char *const *)words,
        .env = (const char *const *)env,
        .netns_fd = netns,
    };
    int r;

    if (log < 0)
        return err_sys(err, -errno, "cannot open '%s'", path);
    r = proc_spawn(&p, log, log, true, &ret->pid, err);
    if (r < 0)
        return r;
    r = proc_start_time(ret->pid, &ret->start_time);
    if (r < 0)
        return err_set(err, r, "%s ended at once; see '%s'", name, path);
    return cluster_save(c, err);
}

static void push_option(char ***words, const char *name, const char *value)
{
    if (value)
        strv_pushf(words, "--%s=%s", name, value);
}

static char **manager_words(const struct cluster *c, const char *program)
{
    _cleanup_free_ char *import = cluster_program("muster-import", "image");
    _cleanup_free_ char *volumes = xasprintf("%s/volumes", c->dir);
    char address[16], **words = NULL;

    strv_push(&words, program);
    strv_pushf(&words, "--listen=127.0.0.1:%u", c->port);
    push_option(&words, "state-dir", c->dir);
    push_option(&words, "volumes-dir", volumes);
    push_option(&words, "import-program", import);
    push_option(&words, "network-overlay", c->overlay);
    if (!cluster_is_virtual(c))
        return words;
    cluster_address(c, CLUSTER_MGMT, 1, address);
    strv_pushf(&words, "--listen=%s:%u", address, c->port);
    for (unsigned second = CLUSTER_MGMT; second <= CLUSTER_FABRIC; second++) {
        cluster_address(c, second, 0, address);
        strv_pushf(&words, "--network-blocked=%s/24", address);
    }
    return words;
}

int cluster_start_manager(struct cluster *c, bool *ret_started, struct err *err)
{
    _cleanup_free_ char *program = NULL;
    _cleanup_(strv_freep) char **words = NULL;

    *ret_started = false;
    if (daemon_runs(c, &c->manager))
        return 0;
    program = cluster_program("musterd", "manager");
    if (!program)
        return err_set(err, -ENOENT, "the program musterd is not installed beside this one");
    words = manager_words(c, program);
    *ret_started = true;
    return start(c, "musterd", words, 0, &c->manager, err);
}

char *cluster_manager_url(const struct cluster *c, const struct cluster_node *n)
{
    char address[16];

    if (!n->netns[0])
        return xasprintf("http://127.0.0.1:%u", c->port);
    cluster_address(c, CLUSTER_MGMT, 1, address);
    return xasprintf("https://%s:%u", address, c->port);
}

char *cluster_node_state(const struct cluster *c, const struct cluster_node *n)
{
    return xasprintf("%s/nodes/%s/state", c->dir, n->name);
}

static char **agent_words(
    const struct cluster *c, const struct cluster_node *n, const char *program, const char *guest)
{
    _cleanup_free_ char *manager = cluster_manager_url(c, n), *state = cluster_node_state(c, n);
    char **words = NULL;

    strv_push(&words, program);
    push_option(&words, "name", n->name);
    push_option(&words, "tag", n->tag);
    push_option(&words, "manager", manager);
    if (!n->netns[0])
        strv_pushf(&words, "--token-file=%s/agent.token", c->dir);
    push_option(&words, "state-dir", state);
    strv_pushf(&words, "--run-dir=%s/nodes/%s/run", c->dir, n->name);
    strv_pushf(&words, "--blobs-dir=%s/blobs", c->dir);
    push_option(&words, "guest-dir", guest);
    push_option(&words, "addr-mgmt", n->mgmt);
    push_option(&words, "addr-fabric", n->fabric);
    push_option(&words, "cpus", c->node_cpus);
    push_option(&words, "mem", c->node_mem);
    push_option(&words, "gpu", c->gpu);
    return words;
}

static int make_node_folders(const struct cluster *c, const struct cluster_node *n, struct err *err)
{
    _cleanup_free_ char *state = cluster_node_state(c, n);
    _cleanup_free_ char *run = xasprintf("%s/nodes/%s/run", c->dir, n->name);
    int r = fs_mkdir_p(state, 0711, err);

    return r < 0 ? r : fs_mkdir_p(run, 0711, err);
}

int cluster_start_agent(struct cluster *c, struct cluster_node *n, struct cli *admin,
    bool *ret_started, struct err *err)
{
    _cleanup_free_ char *program = NULL, *guest = NULL;
    _cleanup_(strv_freep) char **words = NULL;
    _cleanup_close_ int netns = -1;
    int r;

    *ret_started = false;
    if (daemon_runs(c, &n->agent))
        return 0;
    program = cluster_program("muster-agent", "agent");
    if (!program)
        return err_set(err, -ENOENT, "the program muster-agent is not installed beside this one");
    guest = cluster_guest(c);
    if (!guest)
        return err_set(err, -ENOENT,
            "there is no guest tree (what containers see as /opt/muster): looked in %s/guest and "
            "/usr/lib/muster/guest; MUSTER_GUEST may name another",
            c->dir);
    r = make_node_folders(c, n, err);
    if (r == 0)
        r = cluster_join(c, n, admin, err);
    if (r < 0)
        return r;
    netns = cluster_netns(n, err);
    if (netns < 0)
        return netns;
    words = agent_words(c, n, program, guest);
    *ret_started = true;
    r = start(c, n->name, words, netns, &n->agent, err);
    netns = netns > 0 ? netns : -1; /* 0 is no descriptor of ours */
    return r;
}

/* --- stopping ----------------------------------------------------------------------------- */

void daemon_ask_stop(const struct cluster *c, const struct daemon *d)
{
    if (daemon_runs(c, d))
        (void)kill(d->pid, SIGTERM);
}

static bool wait_gone(const struct cluster *c, const struct daemon *d, uint64_t usec)
{
    uint64_t deadline = clock_mono_usec() + usec;

    while (daemon_runs(c, d)) {
        if (clock_mono_usec() > deadline)
            return false;
        usleep(POLL_USEC);
    }
    return true;
}

void daemon_stop(const struct cluster *c, struct daemon *d)
{
    daemon_ask_stop(c, d);
    if (!wait_gone(c, d, TERM_USEC)) {
        (void)kill(d->pid, SIGKILL);
        (void)wait_gone(c, d, KILL_USEC);
    }
    *d = (struct daemon){0};
}

/* By a program of its own: it needs the agent's libraries, which this one does without. */
int cluster_clean_node(const struct cluster *c, const struct cluster_node *n, struct err *err)
{
    _cleanup_free_ char *program = cluster_program("muster-agent-clean", "agent/clean");
    _cleanup_free_ char *run = xasprintf("--run-dir=%s/nodes/%s/run", c->dir, n->name);
    _cleanup_free_ char *tag = xasprintf("--tag=%s", n->tag);
    const char *argv[] = {program, run, tag, NULL};
    _cleanup_close_ int netns = -1;
    struct proc p = {.argv = argv, .timeout_usec = CLEAN_USEC};
    int r;

    if (!program)
        return err_set(err, -ENOENT, "the program muster-agent-clean is not installed");
    /* A namespace that is gone has taken its links along. */
    netns = cluster_netns(n, NULL);
    p.netns_fd = MAX_OF(netns, 0);
    r = proc_run(&p, NULL, err);
    netns = netns > 0 ? netns : -1;
    return r < 0 ? err_prefix(err, "node %s", n->name) : 0;
}

/* --- the API ------------------------------------------------------------------------------ */

int cluster_client(const struct cluster *c, struct cli *cli, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/admin.token", c->dir), *token = NULL;
    int r = fs_read(path, 4096, &token, NULL, err);

    if (r < 0)
        return r;
    token[strcspn(token, "\r\n")] = '\0';
    http_free(cli->http);
    free(cli->url);
    free(cli->token);
    cli->http = NULL;
    cli->url = xasprintf("http://127.0.0.1:%u", c->port);
    cli->token = TAKE_PTR(token);
    return 0;
}
