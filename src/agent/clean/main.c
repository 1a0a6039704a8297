/*
 * muster-agent-clean: removes what a stopped agent has left of one node, by the node's run
 * directory and tag. For `muster down`, after the agent has ended; it runs in the node's network
 * namespace.
 *
 * Order: processes of the node's control groups, then everything that lives in its mount namespace
 * (container monitors), then its networks, control groups, the pin of the mount namespace (whose
 * mounts go with it), and the run directory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/ct/cgroup.h"
#include "agent/ct/mountns.h"
#include "agent/ct/rundir.h"
#include "agent/net/edge.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/opt.h"
#include "base/str.h"

#define KILL_USEC (20 * USEC_PER_SEC)
#define POLL_USEC 20000

struct config {
    char *run_dir, *tag, *cgroup;
    bool help;
};

#define O(m) offsetof(struct config, m)

/* clang-format off */
static const struct opt options[] = {
    { "run-dir", OPT_STR, O(run_dir), NULL, "DIR", "run directory of the agent" },
    { "tag", OPT_STR, O(tag), NULL, "TAG", "tag of the agent" },
    { "cgroup", OPT_STR, O(cgroup), NULL, "PATH", "parent of its sessions' cgroups (muster/TAG if unset)" },
    { "help", OPT_BOOL, O(help), NULL, NULL, "print this", 'h', true },
    OPT_END
};
/* clang-format on */

static char *pin_path(const struct config *c)
{
    return xasprintf("%s/ns/mnt", c->run_dir);
}

/* --- processes in the mount namespace ----------------------------------------------------- */

static bool lives_in(pid_t pid, const struct stat *ns)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    return stat(path, &st) == 0 && st.st_ino == ns->st_ino && st.st_dev == ns->st_dev;
}

/* Kill them; how many there were. */
static unsigned kill_round(const struct stat *ns)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    unsigned count = 0;
    uint64_t pid;

    while (proc && (e = readdir(proc))) {
        if (str_to_u64(e->d_name, INT32_MAX, &pid) < 0 || (pid_t)pid == getpid() ||
            !lives_in((pid_t)pid, ns))
            continue;
        (void)kill((pid_t)pid, SIGKILL);
        count++;
    }
    if (proc)
        closedir(proc);
    return count;
}

static int kill_in_namespace(const struct config *c, struct err *err)
{
    _cleanup_free_ char *pin = pin_path(c);
    uint64_t deadline = clock_mono_usec() + KILL_USEC;
    struct stat ns, own;

    if (stat(pin, &ns) < 0 || stat("/proc/self/ns/mnt", &own) < 0 || ns.st_dev != own.st_dev)
        return 0; /* no namespace is bound there */
    if (ns.st_ino == own.st_ino)
        return err_set(err, -EINVAL, "'%s' is the namespace of this very process", pin);
    while (kill_round(&ns) > 0) {
        if (clock_mono_usec() > deadline)
            return err_set(err, -EBUSY, "processes in the node's mount namespace do not die");
        usleep(POLL_USEC);
    }
    return 0;
}

/* --- networks ----------------------------------------------------------------------------- */

/* The sessions' namespaces are pinned in the node's mount namespace: a child goes there. */
static int remove_networks_there(const struct config *c)
{
    _cleanup_free_ char *pin = pin_path(c);
    _cleanup_close_ int fd = open(pin, O_RDONLY | O_CLOEXEC);
    struct node_net n = {0};
    struct err err = ERR_INIT;

    if (fd >= 0 && setns(fd, CLONE_NEWNS) < 0 && errno != EINVAL)
        err_sys(&err, -errno, "cannot enter '%s'", pin);
    snprintf(n.netns_dir, sizeof(n.netns_dir), "%s/netns", c->run_dir);
    STR_SET(n.tag, c->tag);
    STR_SET(n.fabric_addr, "127.0.0.1");
    if (err.code == 0)
        (void)node_net_remove(&n, &err);
    if (err.code < 0)
        fprintf(stderr, "muster-agent-clean: %s\n", err_text(&err));
    return err.code < 0 ? 1 : 0;
}

static int remove_networks(const struct config *c, struct err *err)
{
    pid_t pid = fork();
    int status;

    if (pid < 0)
        return err_sys(err, -errno, "cannot fork");
    if (pid == 0)
        _exit(remove_networks_there(c));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, -errno, "lost a child");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, -EIO, "the node's networks cannot be removed");
    return 0;
}

/* --- all together ------------------------------------------------------------------------- */

static int clean(const struct config *c, struct err *err)
{
    int r = cgroup_kill(c->cgroup, KILL_USEC, err);

    if (r == 0)
        r = kill_in_namespace(c, err);
    if (r == 0)
        r = remove_networks(c, err);
    if (r == 0)
        r = cgroup_remove(c->cgroup, KILL_USEC, err);
    if (r == 0)
        r = mountns_remove(c->run_dir, err);
    if (r == 0)
        r = rundir_remove(c->run_dir, err);
    if (r == 0 && str_starts(c->cgroup, "muster/"))
        (void)cgroup_remove_empty("muster", NULL);
    return r;
}

static int check(struct config *c, struct err *err)
{
    if (!c->run_dir || c->run_dir[0] != '/' || !c->tag)
        return err_set(err, -EINVAL, "--run-dir (absolute) and --tag are needed; see --help");
    if (strlen(c->tag) > 8)
        return err_set(err, -EINVAL, "the tag is too long");
    if (!c->cgroup)
        c->cgroup = xasprintf("muster/%s", c->tag);
    return 0;
}

int main(int argc, char **argv)
{
    struct config c = {0};
    struct err err = ERR_INIT;
    int rest, r = opt_parse(options, &c, argc, argv, &rest, &err);

    if (r == 0 && c.help) {
        puts("Usage: muster-agent-clean --run-dir DIR --tag TAG\n\n"
             "Remove what a stopped agent has left of a node.\n\nOptions:");
        opt_print_help(options, stdout);
        opt_free(options, &c);
        return 0;
    }
    if (r == 0)
        r = check(&c, &err);
    if (r == 0)
        r = clean(&c, &err);
    if (r < 0)
        fprintf(stderr, "muster-agent-clean: %s\n", err_text(&err));
    opt_free(options, &c);
    return r < 0 ? 1 : 0;
}
