/*
 * ssh: the system's ssh through "muster tunnel", with the session's own keys. The host key is
 * checked against what the manager says, so nothing is asked and nobody can stand in between. Keys
 * are in a folder of their own for as long as ssh runs.
 */
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/exec.h"
#include "cli/ref.h"
#include "cli/text.h"

extern char **environ;

/* clang-format off */
const struct opt ssh_options[] = {
    CLI_TALK_OPTIONS(struct cli_plain)
};
/* clang-format on */

/* For the handler, which takes the folder away when the client is ended by a signal. */
static char key_path[256], hosts_path[256], keys_dir[240];
static volatile pid_t child;

static void remove_keys(void)
{
    if (!keys_dir[0])
        return;
    (void)unlink(key_path);
    (void)unlink(hosts_path);
    (void)rmdir(keys_dir);
}

static void on_end(int signo)
{
    if (child > 0)
        (void)kill(child, signo);
    remove_keys();
    (void)signal(signo, SIG_DFL);
    (void)raise(signo);
}

static int make_folder(struct err *err)
{
    const char *dirs[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    size_t i = 0;

    while (!dirs[i] || dirs[i][0] != '/' || strlen(dirs[i]) > 200 || access(dirs[i], W_OK) < 0)
        if (++i == ARRAY_LEN(dirs))
            return err_set(err, -EACCES, "there is no folder for the session's key: set TMPDIR");
    snprintf(keys_dir, sizeof(keys_dir), "%s/muster-ssh-XXXXXX", dirs[i]);
    if (!mkdtemp(keys_dir)) {
        keys_dir[0] = '\0';
        return err_sys(err, -errno, "cannot make a folder in '%s'", dirs[i]);
    }
    snprintf(key_path, sizeof(key_path), "%s/key", keys_dir);
    snprintf(hosts_path, sizeof(hosts_path), "%s/hosts", keys_dir);
    return 0;
}

static int write_keys(const json_t *keys, const char *alias, struct err *err)
{
    const char *key = json_str_or(keys, "private_key", "");
    const char *host = json_str_or(keys, "host_public_key", "");
    _cleanup_free_ char *hosts = xasprintf("%s %s\n", alias, host);
    int r = make_folder(err);

    if (r < 0)
        return r;
    if (!str_starts(host, "ssh-") || strchr(host, '\n'))
        return err_set(err, -EBADMSG, "the manager gave no usable host key");
    r = fs_write(key_path, key, strlen(key), 0600, err);
    return r < 0 ? r : fs_write(hosts_path, hosts, strlen(hosts), 0600, err);
}

/* For the tunnel, which ssh starts: the same manager and the same person, whatever this one was
 * told on its line. (Not on a command line: those can be read by everybody.) */
static void export_config(const struct cli *cli)
{
    setenv("MUSTER_URL", cli->url, 1);
    if (cli->token)
        setenv("MUSTER_TOKEN", cli->token, 1);
    if (cli->ca)
        setenv("MUSTER_CA", cli->ca, 1);
}

/* ssh takes "%" as its own in ProxyCommand. */
static char *proxy_command(const char *session)
{
    _cleanup_free_ char *path = proc_own_path(), *quoted = text_quote(path);
    struct buf b = BUF_INIT(16 * 1024);

    for (const char *c = quoted; *c; c++)
        buf_append(&b, *c == '%' ? "%%" : c, *c == '%' ? 2 : 1);
    _cleanup_free_ char *program = buf_take(&b);
    return xasprintf("ProxyCommand=%s tunnel %s/main1 22", program, session);
}

static char **ssh_words(const char *id, const char *alias)
{
    char **v = NULL;

    strv_push(&v, "ssh");
    strv_push(&v, "-F");
    strv_push(&v, "none");
    strv_push(&v, "-i");
    strv_push(&v, key_path);
    static const char *const fixed[] = {"IdentitiesOnly=yes", "IdentityAgent=none",
        "PreferredAuthentications=publickey", "StrictHostKeyChecking=yes", "UpdateHostKeys=no",
        "GlobalKnownHostsFile=/dev/null", "CheckHostIP=no", "LogLevel=ERROR",
        "ServerAliveInterval=15"};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        strv_push(&v, "-o");
        strv_push(&v, fixed[i]);
    }
    strv_push(&v, "-o");
    strv_pushf(&v, "UserKnownHostsFile=%s", hosts_path);
    strv_push(&v, "-o");
    strv_pushf(&v, "HostKeyAlias=%s", alias);
    strv_push(&v, "-o");
    strv_take(&v, proxy_command(id));
    strv_pushf(&v, "work@%s", alias);
    return v;
}

/* To a sub the way goes through main1, as for everybody inside. */
static void hop_words(char ***v, const char *container, int count, char **words)
{
    _cleanup_(strv_freep) char **plain = NULL;
    _cleanup_free_ char *command = NULL, *quoted = NULL;

    for (int i = 0; i < count; i++)
        strv_push(&plain, words[i]);
    command = strv_join(plain, " "); /* as ssh joins them */
    if (count == 0 || isatty(STDIN_FILENO))
        strv_push(v, "-t");
    strv_push(v, "ssh");
    strv_push(v, count == 0 || isatty(STDIN_FILENO) ? "-t" : "-T");
    strv_push(v, container);
    if (count > 0) {
        quoted = text_quote(command);
        strv_push(v, quoted);
    }
}

static int run_ssh(char **words, struct err *err)
{
    static const int ending[] = {SIGTERM, SIGHUP};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, end = {.sa_handler = on_end};
    posix_spawnattr_t attr;
    sigset_t dfl;
    int status, r;
    pid_t pid;

    sigemptyset(&dfl);
    sigaddset(&dfl, SIGINT);
    sigaddset(&dfl, SIGQUIT);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &dfl);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    /* The keys of the terminal are ssh's, as for a shell that waits. */
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    r = posix_spawnp(&pid, "ssh", NULL, &attr, words, environ);
    posix_spawnattr_destroy(&attr);
    if (r != 0)
        return err_sys(err, -r, "cannot start ssh");
    child = pid;
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        sigaction(ending[i], &end, NULL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, -errno, "lost ssh");
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool has_ssh(void)
{
    _cleanup_(strv_freep) char **dirs = strv_split(getenv("PATH") ? getenv("PATH") : "", ':');

    strv_for_each (dir, dirs) {
        _cleanup_free_ char *path = xasprintf("%s/ssh", *dir);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Without the program: the same by exec. ssh would give the words to a shell, so we do. */
static int by_exec(struct cli *cli, const struct ref *ref, int count, char **words)
{
    _cleanup_(json_decrefp) json_t *head = json_object();
    _cleanup_(strv_freep) char **plain = NULL;
    _cleanup_free_ char *command = NULL;
    json_t *list = count ? json_array() : json_null();

    cli_say("there is no ssh program here; using 'muster exec'");
    for (int i = 0; i < count; i++)
        strv_push(&plain, words[i]);
    command = strv_join(plain, " ");
    if (count) {
        json_array_append_new(list, json_string("sh"));
        json_array_append_new(list, json_string("-c"));
        json_array_append_new(list, json_string(command));
    }
    json_object_set_new(head, "command", list);
    json_set_bool(head, "tty", count == 0 && isatty(STDIN_FILENO));
    return exec_run(cli, ref->session, ref->container, head, false);
}

static int by_ssh(struct cli *cli, const struct ref *ref, int count, char **words)
{
    _cleanup_free_ char *path = api_session_path(ref->session, "/ssh"), *alias = NULL;
    _cleanup_(json_decrefp) json_t *keys = NULL;
    _cleanup_(strv_freep) char **v = NULL;
    struct err err = ERR_INIT;
    const char *id;
    int code;

    if (api_get(cli, path, &keys, &err) < 0)
        return cli_fail(cli, &err);
    id = json_str_or(keys, "id", ref->session);
    alias = xasprintf("muster-%.8s", id);
    if (write_keys(keys, alias, &err) < 0) {
        remove_keys();
        return cli_fail(cli, &err);
    }
    export_config(cli);
    v = ssh_words(id, alias);
    if (!str_eq(ref->container, "main1"))
        hop_words(&v, ref->container, count, words);
    else
        for (int i = 0; i < count; i++)
            strv_push(&v, words[i]);
    code = run_ssh(v, &err);
    remove_keys();
    return code < 0 ? cli_fail(cli, &err) : code;
}

int cmd_ssh(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(ref_done) struct ref ref = {0};
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (ref_parse(argv[rest++], &ref, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    if (rest < argc && str_eq(argv[rest], "--"))
        rest++; /* behind it: options of ssh, then the command, as ssh itself takes them */
    if (!has_ssh())
        return by_exec(cli, &ref, argc - rest, argv + rest);
    return by_ssh(cli, &ref, argc - rest, argv + rest);
}
