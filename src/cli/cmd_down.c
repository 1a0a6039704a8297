/*
 * down: sessions first, by the manager; then the daemons; then whatever a crash has left. Each step
 * goes on when the one before failed, and the record goes last, so that it can be run again.
 */
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "cli/api.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/sizing.h"

#define SESSIONS_USEC (60 * USEC_PER_SEC)
#define POLL_USEC 100000

struct down_opts {
    struct cli_common common;
    char *dir;
    bool purge;
};

/* clang-format off */
const struct opt down_options[] = {
    { "purge", OPT_BOOL, offsetof(struct down_opts, purge), NULL, NULL,
      "remove images, volumes with their data, and the store, too, and sign out (what ./run has built "
      "stays in /var/cache/muster)", 0, true },
    { "dir", OPT_STR, offsetof(struct down_opts, dir), CLUSTER_DIR, "DIR", "where it was started", 0, true,
      cluster_check_dir },
    CLI_LOCAL_OPTIONS(struct down_opts)
};
/* clang-format on */

/* --- sessions ----------------------------------------------------------------------------- */

static void stop_session(struct cli *cli, const char *id)
{
    _cleanup_free_ char *path = api_session_path(id, "/stop");
    _cleanup_(json_decrefp) json_t *body = json_object();

    json_set_bool(body, "now", true);
    (void)api_call(cli, "POST", path, body, NULL, NULL);
}

/* How many live; each is told to stop. */
static int stop_round(struct cli *cli, size_t *ret_left, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL;
    const json_t *s;
    size_t i;
    int r = api_get_all(cli, "/v1/sessions?all=1", "sessions", &body, err);

    if (r < 0)
        return r;
    json_array_foreach (json_object_get(body, "sessions"), i, s)
        if (!str_eq(json_str_or(s, "state", ""), "stopping"))
            stop_session(cli, json_str_or(s, "id", ""));
    *ret_left = i;
    return 0;
}

static void stop_sessions(const struct cluster *c, struct cli *cli)
{
    uint64_t deadline = clock_mono_usec() + SESSIONS_USEC;
    struct err err = ERR_INIT;
    size_t left = 0;

    if (!daemon_runs(c, &c->manager) || cluster_client(c, cli, &err) < 0)
        return;
    while (stop_round(cli, &left, &err) == 0 && left > 0) {
        if (clock_mono_usec() > deadline) {
            cli_say("%zu session%s did not end in time; what is left is removed by force", left,
                left == 1 ? "" : "s");
            return;
        }
        progress_set("%zu session%s to stop", left, left == 1 ? "" : "s");
        usleep(POLL_USEC);
    }
    progress_clear();
}

/* --- the rest ----------------------------------------------------------------------------- */

static void stop_daemons(struct cluster *c)
{
    progress_set("stopping the daemons");
    for (size_t i = 0; i < c->count; i++)
        daemon_ask_stop(c, &c->nodes[i].agent);
    daemon_ask_stop(c, &c->manager);
    for (size_t i = 0; i < c->count; i++)
        daemon_stop(c, &c->nodes[i].agent);
    daemon_stop(c, &c->manager);
}

/* Says what failed and goes on; the number of failures. */
static unsigned clean_nodes(const struct cluster *c)
{
    unsigned failures = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct err err = ERR_INIT;
        progress_set("cleaning up after node %s", c->nodes[i].name);
        if (cluster_clean_node(c, &c->nodes[i], &err) < 0) {
            cli_say("%s", err_text(&err));
            failures++;
        }
    }
    return failures;
}

/* Only what is ours: the folder may be somebody's mount point, or hold other things. */
static int purge(const char *dir, struct err *err)
{
    static const char *const names[] = {"nodes", "log", "volumes", "blobs", "tmp", "muster.db",
        "muster.db-wal", "muster.db-shm", "muster.db.lock", "admin.token", "agent.token",
        "cluster.json", "cluster.lock", "up.json", "tls"};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", dir, names[i]);
        r = fs_remove_tree(path, err);
    }
    if (r == 0 && rmdir(dir) < 0 && errno != ENOTEMPTY && errno != EBUSY && errno != ENOENT)
        r = err_sys(err, -errno, "cannot remove '%s'", dir);
    return r;
}

static int take_down(struct cluster *c, struct cli *cli, struct err *err)
{
    _cleanup_free_ char *again = cluster_command("down", c->dir);
    unsigned failures;
    int r;

    stop_sessions(c, cli);
    stop_daemons(c);
    failures = clean_nodes(c);
    r = cluster_net_remove(c, err);
    progress_clear();
    if (r < 0)
        return r;
    if (failures > 0)
        return err_set(err, -EBUSY, "something is left; '%s' may be run again", again);
    return cluster_forget(c, err);
}

/* Every token goes with the store: whoever calls is signed out. */
static int purge_all(const char *dir, struct err *err)
{
    _cleanup_free_ char *url = NULL;
    struct made made;
    int r;

    if (made_load(dir, &made, NULL) == 0 && made.port)
        url = xasprintf("http://127.0.0.1:%u", made.port);
    r = purge(dir, err);
    if (r == 0 && url)
        config_forget(url);
    return r;
}

static int nothing_up(const struct down_opts *o, struct err *err)
{
    struct stat st;

    if (o->purge && stat(o->dir, &st) == 0)
        return purge_all(o->dir, err);
    cli_say("no cluster is up in '%s'", o->dir);
    return 0;
}

int cmd_down(struct cli *cli, int argc, char **argv)
{
    static struct down_opts o;
    static struct cluster c;
    struct err err = ERR_INIT;
    struct stat st;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (geteuid() != 0) {
        _cleanup_free_ char *command = cluster_command("down", o.dir);
        cli_say("down: this needs root: %s%s", command, o.purge ? " --purge" : "");
        return EXIT_FAILED;
    }
    r = stat(o.dir, &st) == 0 ? cluster_lock(o.dir, &err) : 0;
    if (r == 0)
        r = cluster_load(o.dir, &c, &err);
    if (r == -ENOENT)
        r = nothing_up(&o, &err);
    else if (r == 0) {
        r = take_down(&c, cli, &err);
        if (r == 0 && o.purge)
            r = purge_all(o.dir, &err);
    }
    if (r == 0)
        return EXIT_OK;
    cli_say("%s", err_text(&err));
    return EXIT_FAILED;
}
