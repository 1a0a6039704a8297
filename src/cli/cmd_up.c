/*
 * up: a cluster on this machine with nothing configured. Everything is noted before it is made, and
 * made only when it is missing, so running it again repairs what died.
 */
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "cli/api.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/signin.h"

#define MANAGER_USEC (30 * USEC_PER_SEC)
#define NODES_USEC (90 * USEC_PER_SEC)
#define POLL_USEC 50000
#define MEM_RESERVED (UINT64_C(1) << 30)

struct up_opts {
    struct cli_common common;
    uint64_t nodes;
    char *node_cpus, *node_mem, *gpu, *dir;
};

static int check_nodes(const char *value, struct err *err)
{
    uint64_t n;

    if (str_to_u64(value, CLUSTER_NODES_MAX, &n) < 0 || n == 0)
        return err_set(err, -EINVAL, "must be a number from 1 to %d", CLUSTER_NODES_MAX);
    return 0;
}

static int check_dir(const char *value, struct err *err)
{
    return value[0] == '/' ? 0 : err_set(err, -EINVAL, "must be an absolute path");
}

/* clang-format off */
const struct opt up_options[] = {
    { "nodes", OPT_U64, offsetof(struct up_opts, nodes), NULL, "N",
      "so many virtual nodes, each with a network of its own; without: this machine is the node",
      'n', true, check_nodes },
    { "node_cpus", OPT_STR, offsetof(struct up_opts, node_cpus), NULL, "CPUS",
      "CPUs that each node offers (all of the machine if unset)", 0, true, request_check_cpus },
    { "node_mem", OPT_STR, offsetof(struct up_opts, node_mem), NULL, "SIZE",
      "memory that each node offers (the machine's, in equal parts, if unset)", 0, true,
      request_check_bytes },
    { "gpu", OPT_STR, offsetof(struct up_opts, gpu), NULL, "SPEC",
      "auto, none, or fake:MODEL:COUNT for pretend GPUs on each node", 0, true },
    { "dir", OPT_STR, offsetof(struct up_opts, dir), CLUSTER_DIR, "DIR", "keep everything here", 0, true,
      check_dir },
    CLI_COMMON_OPTIONS(struct up_opts)
};
/* clang-format on */

/* --- what is to be up --------------------------------------------------------------------- */

/* Containers' users have no rights of root's: they must be let through to what is theirs. */
static int check_open(const char *dir, struct err *err)
{
    _cleanup_free_ char *path = xstrdup(dir);
    struct stat st;

    for (char *slash; path[0]; *slash = '\0') {
        if (stat(path, &st) < 0)
            return err_sys(err, -errno, "cannot look at '%s'", path);
        if (!(st.st_mode & S_IXOTH))
            return err_set(err, -EACCES,
                "'%s' is closed to others (mode %03o), so the users of containers cannot reach "
                "what is below it; choose another --dir",
                path, (unsigned)st.st_mode & 0777);
        slash = strrchr(path, '/');
    }
    return 0;
}

static int make_folders(const char *dir, struct err *err)
{
    static const char *const names[] = {"", "/log", "/volumes", "/nodes"};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
        _cleanup_free_ char *path = xasprintf("%s%s", dir, names[i]);
        r = fs_mkdir_p(path, 0711, err);
    }
    return r == 0 ? check_open(dir, err) : r;
}

/* Several nodes on one machine must not promise its memory twice. */
static char *memory_share(size_t count)
{
    struct sysinfo si;
    uint64_t total;

    if (sysinfo(&si) < 0)
        return NULL;
    total = (uint64_t)si.totalram * si.mem_unit;
    total = total > MEM_RESERVED ? total - MEM_RESERVED : total;
    return xasprintf("%llu", (unsigned long long)(total / count));
}

static int plan(const struct up_opts *o, const char *dir, struct cluster *ret, struct err *err)
{
    int r = cluster_plan(dir, o->nodes, ret, err);

    if (r < 0)
        return r;
    ret->node_cpus = xstrdup(o->node_cpus);
    ret->node_mem = o->node_mem ? xstrdup(o->node_mem) : o->nodes ? memory_share(o->nodes) : NULL;
    ret->gpu = xstrdup(o->gpu);
    return cluster_save(ret, err);
}

/* The machine was started anew since: what was in its memory is gone. */
static int after_reboot(struct cluster *c, struct err *err)
{
    char boot_id[37];
    int r = proc_boot_id(boot_id, err);

    if (r < 0 || str_eq(boot_id, c->boot_id))
        return r;
    STR_SET(c->boot_id, boot_id);
    c->manager = (struct daemon){0};
    for (size_t i = 0; i < c->count && r == 0; i++) {
        _cleanup_free_ char *run = xasprintf("%s/nodes/%s/run", c->dir, c->nodes[i].name);
        c->nodes[i].agent = (struct daemon){0};
        r = fs_remove_tree(run, err);
    }
    return r == 0 ? cluster_save(c, err) : r;
}

static int check_same(const struct up_opts *o, const struct cluster *c, struct err *err)
{
    size_t now = cluster_is_virtual(c) ? c->count : 0;

    if (o->nodes && o->nodes != now)
        return err_set(err, -EEXIST, "a cluster %s is up in '%s' already; 'muster down' it first",
            now ? "with another number of nodes" : "of this machine alone", c->dir);
    return 0;
}

static int load_or_plan(
    const struct up_opts *o, const char *dir, struct cluster *ret, struct err *err)
{
    int r = cluster_load(dir, ret, err);

    if (r == -ENOENT)
        return plan(o, dir, ret, err);
    if (r == 0)
        r = check_same(o, ret, err);
    return r < 0 ? r : after_reboot(ret, err);
}

/* --- starting and waiting ----------------------------------------------------------------- */

static int wait_manager(struct cluster *c, struct cli *cli, struct err *err)
{
    uint64_t deadline = clock_mono_usec() + MANAGER_USEC;
    int r;

    progress_set("musterd is starting");
    for (;;) {
        r = cluster_client(c, cli, err);
        if (r == 0)
            r = api_get(cli, "/v1/version", NULL, err);
        if (r == 0)
            return 0;
        if (!daemon_runs(c, &c->manager)) {
            _cleanup_free_ char *words = daemon_last_words(c, "musterd");
            return err_set(err, -EIO, "musterd has ended: %.180s", words);
        }
        if (clock_mono_usec() > deadline)
            return r;
        usleep(POLL_USEC);
    }
}

static bool node_is_up(const json_t *list, const char *name)
{
    const json_t *n;
    size_t i;

    json_array_foreach (list, i, n)
        if (str_eq(json_str_or(n, "name", ""), name))
            return str_eq(json_str_or(n, "state", ""), "up");
    return false;
}

/* The first one that is not up yet; NULL: all are. */
static const struct cluster_node *not_up(
    const struct cluster *c, const json_t *list, size_t *ret_up)
{
    const struct cluster_node *first = NULL;

    *ret_up = 0;
    for (size_t i = 0; i < c->count; i++) {
        bool up = node_is_up(list, c->nodes[i].name);
        *ret_up += up;
        if (!up && !first)
            first = &c->nodes[i];
    }
    return first;
}

static int wait_nodes(struct cluster *c, struct cli *cli, struct err *err)
{
    uint64_t deadline = clock_mono_usec() + NODES_USEC;
    const struct cluster_node *missing;
    size_t up = 0;

    for (;;) {
        _cleanup_(json_decrefp) json_t *body = NULL;
        if (api_get(cli, "/v1/nodes", &body, err) == 0) {
            missing = not_up(c, json_object_get(body, "nodes"), &up);
            if (!missing)
                return 0;
            progress_set("%zu of %zu nodes are up", up, c->count);
            if (!daemon_runs(c, &missing->agent)) {
                _cleanup_free_ char *words = daemon_last_words(c, missing->name);
                return err_set(
                    err, -EIO, "the agent of node %s has ended: %.180s", missing->name, words);
            }
            if (clock_mono_usec() > deadline)
                return err_set(err, -ETIME, "node %s is not up; see %s/log/%s.log", missing->name,
                    c->dir, missing->name);
        } else if (clock_mono_usec() > deadline || !daemon_runs(c, &c->manager)) {
            return err->code;
        }
        usleep(POLL_USEC);
    }
}

/* "n12" */
static bool is_virtual_name(const char *name)
{
    uint64_t k;

    return name[0] == 'n' && str_to_u64(name + 1, CLUSTER_NODES_MAX, &k) == 0;
}

static bool is_ours(const struct cluster *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (str_eq(c->nodes[i].name, name))
            return true;
    return false;
}

/* Virtual nodes of an earlier 'up' in this folder, when there were more: they will not come back,
 * and what a crash left of their sessions must not wait for them. */
static void retire_others(const struct cluster *c, struct cli *cli)
{
    _cleanup_(json_decrefp) json_t *body = NULL, *nothing = json_object();
    const json_t *n;
    size_t i;

    if (api_get(cli, "/v1/nodes", &body, NULL) < 0)
        return;
    json_array_foreach (json_object_get(body, "nodes"), i, n) {
        const char *name = json_str_or(n, "name", "");
        _cleanup_free_ char *path = xasprintf("/v1/nodes/%s/lost", name);
        if (is_virtual_name(name) && !is_ours(c, name) &&
            str_eq(json_str_or(n, "state", ""), "unreachable"))
            (void)api_call(cli, "POST", path, nothing, NULL, NULL);
    }
}

/* The plan, and what of it others must see before they plan: networks, and the manager's port. */
static int start_manager(const struct up_opts *o, struct cluster *c, struct cli *cli,
    unsigned *ret_started, struct err *err)
{
    bool started = false;
    int fd = -1, r = cluster_machine_lock(&fd, err);

    if (r == 0)
        r = load_or_plan(o, o->dir, c, err);
    if (r == 0)
        r = cluster_net_make(c, err);
    if (r == 0)
        r = cluster_start_manager(c, &started, err);
    *ret_started = r == 0 && started;
    if (r == 0)
        r = wait_manager(c, cli, err);
    cluster_machine_unlock(fd);
    return r;
}

static int start_all(const struct up_opts *o, struct cluster *c, struct cli *cli,
    unsigned *ret_started, struct err *err)
{
    bool started = false;
    int r = start_manager(o, c, cli, ret_started, err);

    for (size_t i = 0; i < c->count && r == 0; i++) {
        r = cluster_start_agent(c, &c->nodes[i], &started, err);
        *ret_started += r == 0 && started;
    }
    return r == 0 ? wait_nodes(c, cli, err) : r;
}

static void say_ready(const struct cluster *c, unsigned started, bool fresh)
{
    if (started == 0)
        cli_say("the cluster in '%s' is up already", c->dir);
    else if (!fresh)
        cli_say("%u daemon%s had died and %s started again", started, started == 1 ? "" : "s",
            started == 1 ? "was" : "were");
    printf("%zu node%s up; the API is at http://127.0.0.1:%u\n\n", c->count,
        c->count == 1 ? " is" : "s are", c->port);
    puts("To go on:\n"
         "  muster node ls\n"
         "  muster image import --name base ./base.tar    (or a registry reference)\n"
         "  muster run base echo hello\n"
         "  ID=$(muster create --wait base) && muster ssh $ID\n"
         "  muster down");
}

static int need_root(const char *verb)
{
    if (geteuid() == 0)
        return CLI_GO_ON;
    cli_say("%s: this makes networks, mounts and control groups, and needs root: sudo muster %s",
        verb, verb);
    return EXIT_FAILED;
}

int cmd_up(struct cli *cli, int argc, char **argv)
{
    static struct up_opts o;
    static struct cluster c;
    struct err err = ERR_INIT;
    unsigned started = 0;
    bool fresh;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code == CLI_GO_ON)
        code = need_root("up");
    if (code != CLI_GO_ON)
        return code;
    umask(0022);
    r = make_folders(o.dir, &err);
    if (r == 0)
        r = cluster_lock(o.dir, &err);
    fresh = r == 0 && !cluster_exists(o.dir);
    if (r == 0)
        r = start_all(&o, &c, cli, &started, &err);
    progress_clear();
    if (r == 0 && fresh)
        retire_others(&c, cli);
    if (r == 0)
        r = signin_caller(&c, cli, &err);
    if (r == -EEXIST || r == -EBUSY || r == -EACCES) {
        cli_say("%s", err_text(&err));
        return EXIT_FAILED;
    }
    if (r < 0) {
        cli_say("%s", err_text(&err));
        cli_say("'muster up' tries again what is missing; 'muster down' undoes all");
        return EXIT_FAILED;
    }
    say_ready(&c, started, fresh);
    return EXIT_OK;
}
