/* The agent's options: every one stands in the table once. */
#include "agent/config.h"

#include <arpa/inet.h>

#include "agent/identity.h"
#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"
#include "model/resources.h"
#include "net/uri.h"

#define O(member) offsetof(struct agent_config, member)

static int check_level(const char *value, struct err *err)
{
    enum log_level level;

    if (log_level_parse(value, &level) < 0)
        return err_set(err, -EINVAL, "must be err, warning, info or debug");
    return 0;
}

static int check_format(const char *value, struct err *err)
{
    if (!str_eq(value, "auto") && !str_eq(value, "text") && !str_eq(value, "json"))
        return err_set(err, -EINVAL, "must be auto, text or json");
    return 0;
}

static int check_absolute(const char *value, struct err *err)
{
    return value[0] == '/' ? 0 : err_set(err, -EINVAL, "must be an absolute path");
}

static int check_address(const char *value, struct err *err)
{
    struct in6_addr any;

    if (inet_pton(AF_INET, value, &any) == 1 || inet_pton(AF_INET6, value, &any) == 1)
        return 0;
    return err_set(err, -EINVAL, "must be an IP address");
}

static int check_cpus(const char *value, struct err *err)
{
    uint32_t milli;

    return cpus_parse(value, &milli, err);
}

static int check_name(const char *value, struct err *err)
{
    return name_check("a node's name", value, err);
}

static int check_tag(const char *value, struct err *err)
{
    size_t n = strlen(value);

    if (n == 0 || n > 8 || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789") != n)
        return err_set(err, -EINVAL, "must be 1 to 8 lower-case letters and digits");
    return 0;
}

/* clang-format off */
const struct opt agent_options[] = {
    { "config", OPT_STR, O(config_path), NULL, "PATH", "read options from this YAML file", 'c', true },
    { "name", OPT_STR, O(name), NULL, "NAME", "name of this node (that by which it joined, or the host's, if unset)", 'n',
      false, check_name },
    { "manager", OPT_STRV, O(manager), NULL, "URL",
      "address of a manager; several are tried in turn (where it joined, or http://127.0.0.1:7480, if "
      "unset)", 'm' },
    { "token_file", OPT_STR, O(token_file), "/etc/muster/agent.token", "PATH",
      "file with the agents' token, for a manager on this machine", 0, false, check_absolute },
    { "tls.off", OPT_BOOL, O(tls_off), NULL, NULL,
      "let managers on other machines be http://: tokens and data can be read on the network" },
    { "state_dir", OPT_STR, O(state_dir), "/var/lib/muster/agent", "DIR",
      "what survives a reboot: logs, writable layers, blobs", 0, false, check_absolute },
    { "run_dir", OPT_STR, O(run_dir), "/run/muster", "DIR", "what does not", 0, false,
      check_absolute },
    { "blobs_dir", OPT_STR, O(blobs_dir), NULL, "DIR",
      "image blobs; may be a folder shared by all nodes (STATE_DIR/blobs if unset)", 0, false,
      check_absolute },
    { "guest_dir", OPT_STR, O(guest_dir), "/usr/lib/muster/guest", "DIR",
      "what containers see as /opt/muster", 0, false, check_absolute },
    { "addr.mgmt", OPT_STR, O(addr_mgmt), NULL, "IP",
      "this node's management address (from where it joined, or 127.0.0.1, if unset)", 0, false,
      check_address },
    { "addr.fabric", OPT_STR, O(addr_fabric), NULL, "IP",
      "address for traffic between containers (addr.mgmt if unset)", 0, false, check_address },
    { "cpus", OPT_STR, O(cpus), NULL, "N", "CPUs to give to sessions (all if unset)", 0, false,
      check_cpus },
    { "mem", OPT_SIZE, O(mem), NULL, "SIZE",
      "memory to give to sessions (all but mem_reserved if unset)" },
    { "mem_reserved", OPT_SIZE, O(mem_reserved), "1G", "SIZE", "memory kept for the system" },
    { "gpu", OPT_STR, O(gpu), "auto", "SPEC", "auto, none, or fake:MODEL:COUNT for pretend GPUs" },
    { "tag", OPT_STR, O(tag), "m0", "TAG",
      "tells several agents on one machine apart (names of links, cgroups, filter tables)", 0, false,
      check_tag },
    { "cgroup", OPT_STR, O(cgroup), NULL, "PATH", "parent of the sessions' cgroups (muster/TAG)" },
    { "crun", OPT_STR, O(crun), "/usr/bin/crun", "PATH", "OCI runtime", 0, false, check_absolute },
    { "conmon", OPT_STR, O(conmon), "/usr/bin/conmon", "PATH", "container monitor", 0, false,
      check_absolute },
    { "seccomp", OPT_STR, O(seccomp), "/usr/share/containers/seccomp.json", "PATH",
      "seccomp profile of containers", 0, false, check_absolute },
    { "pids_max", OPT_U64, O(pids_max), "32768", "N", "processes and threads of a container" },
    { "logs.keep", OPT_DURATION, O(log_keep_usec), "14d", "TIME",
      "how long a container's log is kept after its end" },
    { "logs.max", OPT_SIZE, O(log_max), "4G", "SIZE",
      "how much of a container's log is kept; the oldest part goes first" },
    { "log.level", OPT_STR, O(log_level), "info", "LEVEL", "err, warning, info or debug", 0, false,
      check_level },
    { "log.format", OPT_STR, O(log_format), "auto", "FORMAT", "auto, text or json", 0, false,
      check_format },
    { "help", OPT_BOOL, O(help), NULL, NULL, "print this", 'h', true },
    { "version", OPT_BOOL, O(version), NULL, NULL, "print the version", 0, true },
    OPT_END
};
/* clang-format on */

static void default_name(struct agent_config *c)
{
    char host[NAME_MAX_LEN + 1] = "";

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    c->name = xstrdup(host[0] ? host : "node");
}

bool agent_config_uses_tls(const struct agent_config *c)
{
    strv_for_each (url, c->manager)
        if (str_starts(*url, "https://"))
            return true;
    return false;
}

/* A certificate is for one name: another one here would be refused by the manager. */
static int check_joined_name(const struct agent_config *c, const struct joined *j, struct err *err)
{
    if (!c->name || !j->node || str_eq(c->name, j->node) || !agent_config_uses_tls(c))
        return 0;
    return err_set(err, -EINVAL,
        "'name' is '%s', but this machine joined as '%s'; remove 'name', or join again: 'muster "
        "node "
        "add %s'",
        c->name, j->node, c->name);
}

/* What is not configured is as it was when the machine joined. */
static int fill_joined(struct agent_config *c, struct err *err)
{
    struct joined j = {0};
    int r = joined_read(c->state_dir, &j, err);

    if (r < 0 && r != -ENOENT)
        return r;
    if (!c->manager)
        c->manager = TAKE_PTR(j.manager);
    if (!c->manager)
        strv_push(&c->manager, "http://127.0.0.1:7480");
    r = check_joined_name(c, &j, err);
    if (!c->addr_mgmt && agent_config_uses_tls(c))
        c->addr_mgmt = TAKE_PTR(j.addr_mgmt);
    if (!c->addr_mgmt)
        c->addr_mgmt = xstrdup("127.0.0.1");
    if (!c->name && agent_config_uses_tls(c))
        c->name = TAKE_PTR(j.node);
    if (!c->name)
        default_name(c);
    joined_done(&j);
    return r;
}

static bool is_here(const char *host)
{
    struct in_addr four;

    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return str_eq(host, "localhost") || str_eq(host, "::1");
}

static int check_managers(const struct agent_config *c, struct err *err)
{
    strv_for_each (url, c->manager) {
        struct uri uri;
        int r = uri_parse_http(*url, &uri, err);
        if (r < 0)
            return err_prefix(err, "'manager'");
        if (!uri.tls && !is_here(uri.host) && !c->tls_off)
            return err_set(err, -EINVAL,
                "'manager' is '%s', which others on the network could read and change: use https "
                "and "
                "join ('muster node add' says how), or set 'tls.off'",
                *url);
    }
    return 0;
}

int agent_config_read(struct agent_config *c, int argc, char **argv, struct err *err)
{
    int rest, r;

    *c = (struct agent_config){0};
    r = opt_read(
        agent_options, c, O(config_path), "/etc/muster/muster-agent.yaml", argc, argv, &rest, err);
    if (r < 0)
        return r;
    if (rest < argc)
        return err_set(err, -EINVAL, "unexpected argument '%s'; see --help", argv[rest]);
    r = fill_joined(c, err);
    if (r == 0)
        r = check_managers(c, err);
    if (r < 0)
        return r;
    if (!c->blobs_dir)
        c->blobs_dir = xasprintf("%s/blobs", c->state_dir);
    if (!c->addr_fabric)
        c->addr_fabric = xstrdup(c->addr_mgmt);
    if (!c->cgroup)
        c->cgroup = xasprintf("muster/%s", c->tag);
    return 0;
}

void agent_config_done(struct agent_config *c)
{
    opt_free(agent_options, c);
}
