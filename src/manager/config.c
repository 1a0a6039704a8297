/* The manager's options: every one stands in the table once. */
#include "manager/config.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"

#define LIFETIME_MIN_USEC (6 * USEC_PER_SEC) /* a tick that looks at them is a second */

#define O(member) offsetof(struct manager_config, member)

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

static int check_lifetime(const char *value, struct err *err)
{
    uint64_t usec;
    int r = duration_parse(value, &usec, err);

    if (r == 0 && usec < LIFETIME_MIN_USEC)
        return err_set(err, -EINVAL, "must be at least 6s");
    return r;
}

/* What can stand in a certificate. */
static int check_host(const char *value, struct err *err)
{
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_*";

    if (!value[0] || strspn(value, good) != strlen(value) || strlen(value) > 253)
        return err_set(err, -EINVAL, "must be a name or an address, without a port");
    return 0;
}

static int check_pair(const char *value, struct err *err)
{
    const char *equals = strchr(value, '=');

    if (equals && equals > value && equals[1])
        return 0;
    return err_set(err, -EINVAL, "must be two things with '=' between them");
}

static int check_attempts(const char *value, struct err *err)
{
    uint64_t n;

    if (str_to_u64(value, 100, &n) < 0 || n == 0)
        return err_set(err, -EINVAL, "must be a number from 1 to 100");
    return 0;
}

/* clang-format off */
const struct opt manager_options[] = {
    { "config", OPT_STR, O(config_path), NULL, "PATH", "read options from this YAML file", 'c', true },
    { "listen", OPT_STRV, O(listen), "127.0.0.1:7480", "HOST:PORT",
      "serve the API here; may be given several times", 'l' },
    { "state_dir", OPT_STR, O(state_dir), "/var/lib/muster", "DIR",
      "where the store, image blobs and keys are kept", 0, false, check_absolute },
    { "volumes_dir", OPT_STR, O(volumes_dir), NULL, "DIR",
      "folder of the volumes, at the same path on every node (STATE_DIR/volumes if unset)", 0, false,
      check_absolute },
    { "network.overlay", OPT_STR, O(overlay), "10.128.0.0/9", "CIDR",
      "addresses of session networks; each session takes a /22" },
    { "network.blocked", OPT_STRV, O(blocked), NULL, "CIDR",
      "addresses that sessions must not reach, beside the nodes' own" },
    { "import_program", OPT_STR, O(import_program), NULL, "PATH",
      "the image import worker (muster-import beside musterd if unset)", 0, false, check_absolute },
    { "image.insecure", OPT_STRV, O(insecure), NULL, "HOST[:PORT]",
      "import from this registry by plain HTTP, or with a certificate that cannot be checked" },
    { "image.mirror", OPT_STRV, O(mirrors), NULL, "HOST=MIRROR",
      "ask the registry MIRROR before HOST for images of HOST", 0, false, check_pair },
    { "image.ca", OPT_STRV, O(cas), NULL, "HOST=FILE",
      "certificates (PEM) to trust at the registry HOST instead of the system's", 0, false, check_pair },
    { "image.auto_import", OPT_STRV, O(auto_import), "*", "HOST[:PORT]",
      "import on first use from this registry; *: from every one that is named; docker.io: short names too" },
    { "image.stall", OPT_DURATION, O(stall_usec), "60s", "TIME",
      "give up on a registry that sends nothing for so long" },
    { "launch.prepare_timeout", OPT_DURATION, O(prepare_usec), "10m", "TIME",
      "give up a start whose containers are not ready by then" },
    { "launch.start_timeout", OPT_DURATION, O(start_usec), "60s", "TIME",
      "give up a start whose commands do not run by then" },
    { "launch.attempts", OPT_U64, O(start_attempts), "3", "N",
      "starts of a session that fail for the machines' reasons before it is given up", 0, false,
      check_attempts },
    { "agent.heartbeat", OPT_DURATION, O(heartbeat_usec), "5s", "TIME",
      "a node is unreachable when its agent was silent for three times this" },
    { "agent.fence", OPT_DURATION, O(fence_usec), "5m", "TIME",
      "an agent without a manager for so long ends its train sessions" },
    { "agent.lost", OPT_DURATION, O(lost_usec), "10m", "TIME",
      "a node unreachable for so long is given up, unless debug sessions are on it" },
    { "tls.cert", OPT_STR, O(tls_cert), NULL, "PATH",
      "the site's own certificate (PEM, with its chain) for people; agents use the cluster's", 0,
      false, check_absolute },
    { "tls.key", OPT_STR, O(tls_key), NULL, "PATH", "its key", 0, false, check_absolute },
    { "tls.names", OPT_STRV, O(tls_names), NULL, "NAME",
      "another name or address of this manager, for the certificate that it makes itself", 0, false,
      check_host },
    { "tls.lifetime", OPT_DURATION, O(tls_lifetime_usec), "90d", "TIME",
      "how long certificates last; they are renewed when a third is left", 0, false, check_lifetime },
    { "tls.off", OPT_BOOL, O(tls_off), NULL, NULL,
      "speak plain HTTP on all addresses: tokens and data can be read by others on the network" },
    { "new_ca", OPT_BOOL, O(new_ca), NULL, NULL,
      "make a new authority for this cluster and exit: every node has to join again", 0, true },
    { "log.level", OPT_STR, O(log_level), "info", "LEVEL", "err, warning, info or debug", 0, false,
      check_level },
    { "log.format", OPT_STR, O(log_format), "auto", "FORMAT", "auto, text or json", 0, false,
      check_format },
    { "help", OPT_BOOL, O(help), NULL, NULL, "print this", 'h', true },
    { "version", OPT_BOOL, O(version), NULL, NULL, "print the version", 0, true },
    OPT_END
};
/* clang-format on */

int manager_config_read(struct manager_config *c, int argc, char **argv, struct err *err)
{
    int rest, r;

    *c = (struct manager_config){0};
    r = opt_read(
        manager_options, c, O(config_path), "/etc/muster/musterd.yaml", argc, argv, &rest, err);
    if (r < 0)
        return r;
    if (rest < argc)
        return err_set(err, -EINVAL, "unexpected argument '%s'; see --help", argv[rest]);
    if (c->lost_usec < c->fence_usec + 3 * c->heartbeat_usec)
        return err_set(err, -EINVAL,
            "'agent.lost' must be at least 'agent.fence' and three heartbeats: a node may be given "
            "up only after its agent has ended its sessions itself");
    if (!c->tls_cert != !c->tls_key)
        return err_set(err, -EINVAL, "'tls.cert' and 'tls.key' go together");
    if (c->tls_off && c->tls_cert)
        return err_set(err, -EINVAL, "'tls.off' and 'tls.cert' exclude each other");
    if (!c->volumes_dir)
        c->volumes_dir = xasprintf("%s/volumes", c->state_dir);
    return 0;
}

void manager_config_done(struct manager_config *c)
{
    opt_free(manager_options, c);
}
