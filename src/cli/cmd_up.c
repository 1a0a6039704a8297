/*
 * up: a cluster on this machine with nothing configured. Everything is noted before it is made, and
 * made only when it is missing, so running it again repairs what died.
 */
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/signin.h"
#include "cli/sizing.h"
#include "cli/text.h"

#define MANAGER_USEC (30 * USEC_PER_SEC)
#define NODES_USEC (90 * USEC_PER_SEC)
#define POLL_USEC 50000
#define MEM_RESERVED (UINT64_C(1) << 30)

struct up_opts {
    struct cli_common common;
    struct sizing size;
    char *dir;
};

/* clang-format off */
const struct opt up_options[] = {
    { "nodes", OPT_STR, offsetof(struct up_opts, size.nodes), NULL, "N",
      "virtual nodes, each with a network of its own; 0: this machine (as before if unset, at first 0)",
      'n', true, sizing_check_nodes },
    { "node_cpus", OPT_STR, offsetof(struct up_opts, size.node_cpus), NULL, "CPUS",
      "CPUs that each node offers (all of the machine if unset)", 0, true, request_check_cpus },
    { "node_mem", OPT_STR, offsetof(struct up_opts, size.node_mem), NULL, "SIZE",
      "memory that each node offers (the machine's, in equal parts, if unset)", 0, true,
      request_check_bytes },
    { "gpu", OPT_STR, offsetof(struct up_opts, size.gpu), NULL, "SPEC",
      "auto, none, or fake:MODEL:COUNT for pretend GPUs on each node (auto if unset)", 0, true,
      sizing_check_gpu },
    { "dir", OPT_STR, offsetof(struct up_opts, dir), CLUSTER_DIR, "DIR", "keep everything here", 0, true,
      cluster_check_dir },
    CLI_LOCAL_OPTIONS(struct up_opts)
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

/* With what it is made; said when that is not what was typed. */
static void say_sizing(const struct sizing *asked, const struct sizing *whole)
{
    _cleanup_free_ char *typed = sizing_words(asked), *words = sizing_words(whole);

    if (!str_eq(typed, words))
        cli_say("%s as it was before: %s", typed[0] ? "the rest" : "the cluster", words);
}

static int plan(const struct up_opts *o, struct made *made, struct cluster *ret, struct err *err)
{
    struct sizing size = {0};
    int r;

    sizing_merge(&size, &o->size);
    sizing_merge(&size, &made->sizing);
    say_sizing(&o->size, &size);
    r = cluster_plan(o->dir, sizing_nodes(&size), ret, err);
    if (r < 0)
        return r;
    ret->node_cpus = xstrdup(size.node_cpus);
    ret->node_mem = size.node_mem ? xstrdup(size.node_mem)
        : sizing_nodes(&size)     ? memory_share(sizing_nodes(&size))
                                  : NULL;
    ret->gpu = xstrdup(size.gpu);
    made_plan(made, &size, ret);
    r = made_save(o->dir, made, err);
    return r < 0 ? r : cluster_save(ret, err);
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

static int load_or_plan(
    const struct up_opts *o, struct made *made, struct cluster *ret, struct err *err)
{
    int r = made_load(o->dir, made, err);

    if (r < 0)
        return r;
    r = cluster_load(o->dir, ret, err);
    if (r == -ENOENT)
        return plan(o, made, ret, err);
    if (r == 0)
        r = sizing_check_same(&o->size, ret, err);
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

static bool is_state(const json_t *list, const char *name, const char *state)
{
    const json_t *n;
    size_t i;

    json_array_foreach (list, i, n)
        if (str_eq(json_str_or(n, "name", ""), name))
            return str_eq(json_str_or(n, "state", ""), state);
    return false;
}

/* The first one that is not up yet; NULL: all are. */
static const struct cluster_node *not_up(
    const struct cluster *c, const json_t *list, size_t *ret_up)
{
    const struct cluster_node *first = NULL;

    *ret_up = 0;
    for (size_t i = 0; i < c->count; i++) {
        bool up = is_state(list, c->nodes[i].name, "up");
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
        if (api_get_all(cli, "/v1/nodes", "nodes", &body, err) == 0) {
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

/* Nodes of an earlier 'up' in this folder will not come back, and what a crash left of their
 * sessions must not wait for them. */
static int retire_former(
    const struct cluster *c, struct made *made, struct cli *cli, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL, *nothing = json_object();
    _cleanup_(strv_freep) char **lost = NULL;
    char **former = made->former;
    int r = 0;

    if (!former)
        return 0;
    r = api_get_all(cli, "/v1/nodes", "nodes", &body, err);
    strv_for_each (name, former) {
        _cleanup_free_ char *path = xasprintf("/v1/nodes/%s/lost", *name);
        if (r == 0 && is_state(json_object_get(body, "nodes"), *name, "unreachable")) {
            r = api_call(cli, "POST", path, nothing, NULL, err);
            strv_push(&lost, *name);
        }
    }
    if (r < 0)
        return r;
    if (lost) {
        _cleanup_free_ char *names = strv_join(lost, ", ");
        cli_say("of the nodes that were here before, these are no more and stay listed as lost: %s",
            names);
    }
    strv_free(TAKE_PTR(made->former));
    return made_save(c->dir, made, err);
}

/* The plan, and what of it others must see before they plan: networks, and the manager's port. */
static int start_manager(const struct up_opts *o, struct made *made, struct cluster *c,
    struct cli *cli, unsigned *ret_started, struct err *err)
{
    bool started = false;
    int fd = -1, r = cluster_machine_lock(&fd, err);

    if (r == 0)
        r = load_or_plan(o, made, c, err);
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
    struct made made = {0};
    bool started = false;
    int r = start_manager(o, &made, c, cli, ret_started, err);

    for (size_t i = 0; i < c->count && r == 0; i++) {
        r = cluster_start_agent(c, &c->nodes[i], cli, &started, err);
        *ret_started += r == 0 && started;
    }
    if (r == 0)
        r = wait_nodes(c, cli, err);
    progress_clear();
    return r == 0 ? retire_former(c, &made, cli, err) : r;
}

/* elsewhere: the caller's configuration leads to another cluster. */
static void say_ready(const struct cluster *c, unsigned started, bool fresh, bool elsewhere)
{
    _cleanup_free_ char *down = cluster_command("down", c->dir), *quoted = text_quote(c->dir);

    if (started == 0)
        cli_say("the cluster in '%s' is up already", c->dir);
    else if (!fresh)
        cli_say("%u daemon%s had died and %s started again", started, started == 1 ? "" : "s",
            started == 1 ? "was" : "were");
    printf("%zu node%s up; the API is at http://127.0.0.1:%u\n\n", c->count,
        c->count == 1 ? " is" : "s are", c->port);
    puts("To go on:");
    if (elsewhere)
        printf("  export MUSTER_URL=http://127.0.0.1:%u MUSTER_TOKEN=$(%scat %s/admin.token)\n",
            c->port, getenv("SUDO_UID") ? "sudo " : "", quoted);
    printf("  muster node ls\n"
           "  muster image import --name base ./base.tar    (from the source: images/build.sh base "
           "./base.tar;\n"
           "                                                 or a reference: "
           "registry/name:tag)\n"
           "  muster run base echo hello\n"
           "  ID=$(muster create --wait base) && muster ssh $ID\n"
           "  %s\n",
        down);
}

static int need_root(const char *dir)
{
    _cleanup_free_ char *command = cluster_command("up", dir);

    if (geteuid() == 0)
        return CLI_GO_ON;
    cli_say("up: this makes networks, mounts and control groups, and needs root: %s", command);
    return EXIT_FAILED;
}

/* What to do about it; -EACCES says that itself. */
static int failed(int r, const struct up_opts *o, const struct err *err)
{
    _cleanup_free_ char *up = cluster_command("up", o->dir), *words = sizing_words(&o->size);
    _cleanup_free_ char *down = cluster_command("down", o->dir);

    cli_say("%s", err_text(err));
    if (r == -EEXIST)
        cli_say("to change that: %s && %s %s", down, up, words);
    else if (r != -EBUSY && r != -EACCES)
        cli_say("'%s' tries again what is missing; '%s' undoes all", up, down);
    return EXIT_FAILED;
}

int cmd_up(struct cli *cli, int argc, char **argv)
{
    static struct up_opts o;
    static struct cluster c;
    struct err err = ERR_INIT;
    unsigned started = 0;
    bool fresh, elsewhere = false;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code == CLI_GO_ON)
        code = need_root(o.dir);
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
    if (r == 0)
        r = signin_caller(&c, cli, &elsewhere, &err);
    if (r < 0)
        return failed(r, &o, &err);
    say_ready(&c, started, fresh, elsewhere);
    return EXIT_OK;
}
