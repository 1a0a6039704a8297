/* The record of what `muster up` made, and the plan of a new one. */
#include "cli/cluster.h"

#include <arpa/inet.h>

#include "base/fs.h"
#include "base/proc.h"
#include "cli/ip_used.h"
#include "cli/text.h"

#define RECORD_MAX (1024 * 1024)
#define PORT_FIRST 7480
#define PORT_TRIES 100
#define SUBNETS 100

int cluster_check_dir(const char *value, struct err *err)
{
    return value[0] == '/' ? 0 : err_set(err, -EINVAL, "must be an absolute path");
}

void cluster_done(struct cluster *c)
{
    free(c->dir);
    free(c->node_cpus);
    free(c->node_mem);
    free(c->gpu);
    free(c->overlay);
    free(c->nodes);
    *c = (struct cluster){0};
}

static char *record_path(const char *dir)
{
    return xasprintf("%s/cluster.json", dir);
}

bool cluster_exists(const char *dir)
{
    _cleanup_free_ char *path = record_path(dir);

    return fs_exists(path);
}

bool cluster_is_virtual(const struct cluster *c)
{
    return c->count > 0 && c->nodes[0].netns[0];
}

char *cluster_command(const char *verb, const char *dir)
{
    bool here = str_eq(dir, CLUSTER_DIR), sudo = geteuid() != 0 || getenv("SUDO_UID");
    _cleanup_free_ char *quoted = text_quote(dir);

    return xasprintf(
        "%smuster %s%s%s", sudo ? "sudo " : "", verb, here ? "" : " --dir ", here ? "" : quoted);
}

/* --- reading and writing ------------------------------------------------------------------ */

static json_t *daemon_json(const struct daemon *d)
{
    json_t *o = json_object();

    json_set_u64(o, "pid", (uint64_t)d->pid);
    json_set_u64(o, "start_time", d->start_time);
    return o;
}

static void daemon_from_json(const json_t *o, struct daemon *ret)
{
    ret->pid = (pid_t)json_u64_or(o, "pid", 0);
    ret->start_time = json_u64_or(o, "start_time", 0);
}

static json_t *node_json(const struct cluster_node *n)
{
    json_t *o = json_object();

    json_set_str(o, "name", n->name);
    json_set_str(o, "tag", n->tag);
    json_set_str(o, "netns", n->netns);
    json_set_str(o, "mgmt", n->mgmt);
    json_set_str(o, "fabric", n->fabric);
    json_object_set_new(o, "agent", daemon_json(&n->agent));
    return o;
}

static int get_text(const json_t *o, const char *key, char *to, size_t size, struct err *err)
{
    const char *text;
    int r = json_get_str(o, key, &text, err);

    if (r == 0 && str_copy(to, size, text) < 0)
        r = err_set(err, -EINVAL, "'%s' is too long", key);
    return r;
}

static int node_from_json(const json_t *o, struct cluster_node *n, struct err *err)
{
    int r = get_text(o, "name", n->name, sizeof(n->name), err);

    if (r == 0)
        r = get_text(o, "tag", n->tag, sizeof(n->tag), err);
    if (r == 0)
        r = get_text(o, "netns", n->netns, sizeof(n->netns), err);
    if (r == 0)
        r = get_text(o, "mgmt", n->mgmt, sizeof(n->mgmt), err);
    if (r == 0)
        r = get_text(o, "fabric", n->fabric, sizeof(n->fabric), err);
    daemon_from_json(json_object_get(o, "agent"), &n->agent);
    return r;
}

static int nodes_from_json(const json_t *list, struct cluster *c, struct err *err)
{
    size_t n = json_array_size(list);
    int r = 0;

    if (n == 0 || n > CLUSTER_NODES_MAX)
        return err_set(err, -EINVAL, "'nodes' must have 1 to %d entries", CLUSTER_NODES_MAX);
    c->nodes = xnew_array(struct cluster_node, n);
    for (c->count = 0; c->count < n && r == 0; c->count++)
        r = node_from_json(json_array_get(list, c->count), &c->nodes[c->count], err);
    return r;
}

static int from_json(const json_t *o, struct cluster *c, struct err *err)
{
    int r = get_text(o, "tag", c->tag, sizeof(c->tag), err);

    if (r == 0)
        r = get_text(o, "boot_id", c->boot_id, sizeof(c->boot_id), err);
    if (r < 0)
        return r;
    c->port = (uint16_t)json_u64_or(o, "port", 0);
    c->subnet = (uint32_t)json_u64_or(o, "subnet", 0) & 0xff;
    c->node_cpus = xstrdup(json_str_or(o, "node_cpus", NULL));
    c->node_mem = xstrdup(json_str_or(o, "node_mem", NULL));
    c->gpu = xstrdup(json_str_or(o, "gpu", NULL));
    c->overlay = xstrdup(json_str_or(o, "overlay", NULL));
    daemon_from_json(json_object_get(o, "manager"), &c->manager);
    return nodes_from_json(json_object_get(o, "nodes"), c, err);
}

int cluster_load(const char *dir, struct cluster *ret, struct err *err)
{
    _cleanup_free_ char *path = record_path(dir), *text = NULL;
    _cleanup_(json_decrefp) json_t *o = NULL;
    struct cluster c = {.dir = xstrdup(dir)};
    size_t len;
    int r = fs_read(path, RECORD_MAX, &text, &len, err);

    if (r == 0)
        r = json_parse(text, len, RECORD_MAX, &o, err);
    if (r == 0)
        r = from_json(o, &c, err);
    if (r < 0) {
        cluster_done(&c);
        return r == -ENOENT ? r : err_prefix(err, "'%s'", path);
    }
    *ret = c;
    return 0;
}

int cluster_save(const struct cluster *c, struct err *err)
{
    _cleanup_(json_decrefp) json_t *o = json_object();
    _cleanup_free_ char *path = record_path(c->dir), *text = NULL;
    json_t *nodes = json_array();

    json_set_str(o, "tag", c->tag);
    json_set_str(o, "boot_id", c->boot_id);
    json_set_u64(o, "port", c->port);
    json_set_u64(o, "subnet", c->subnet);
    json_set_str(o, "node_cpus", c->node_cpus);
    json_set_str(o, "node_mem", c->node_mem);
    json_set_str(o, "gpu", c->gpu);
    json_set_str(o, "overlay", c->overlay);
    json_object_set_new(o, "manager", daemon_json(&c->manager));
    for (size_t i = 0; i < c->count; i++)
        json_array_append_new(nodes, node_json(&c->nodes[i]));
    json_object_set_new(o, "nodes", nodes);
    text = json_dumps(o, JSON_INDENT(2));
    return fs_write_atomic(path, text, strlen(text), 0644, err);
}

int cluster_forget(const struct cluster *c, struct err *err)
{
    _cleanup_free_ char *path = record_path(c->dir);

    if (unlink(path) < 0 && errno != ENOENT)
        return err_sys(err, -errno, "cannot remove '%s'", path);
    return 0;
}

/* --- the plan ----------------------------------------------------------------------------- */

void cluster_tag(const char *dir, char tag[9])
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    if (str_eq(dir, CLUSTER_DIR)) {
        snprintf(tag, 9, "m");
        return;
    }
    for (; *dir; dir++)
        hash = (hash ^ (unsigned char)*dir) * 1099511628211u;
    snprintf(
        tag, 9, "m%c%c%c", digits[hash % 36], digits[hash / 36 % 36], digits[hash / 1296 % 36]);
}

void cluster_address(const struct cluster *c, unsigned second, unsigned n, char text[16])
{
    snprintf(text, 16, "10.%u.%u.%u", second & 0xff, c->subnet & 0xff, n & 0xff);
}

static bool port_is_free(uint16_t port)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET};
    int one = 1;

    addr.sin_port = htons(port);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    return fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 1) == 0;
}

static int find_port(uint16_t *ret, struct err *err)
{
    for (unsigned i = 0; i < PORT_TRIES; i++)
        if (port_is_free((uint16_t)(PORT_FIRST + i))) {
            *ret = (uint16_t)(PORT_FIRST + i);
            return 0;
        }
    return err_set(err, -EADDRINUSE, "no port from %d to %d of 127.0.0.1 is free", PORT_FIRST,
        PORT_FIRST + PORT_TRIES - 1);
}

static struct ip_range subnet(unsigned second, unsigned third)
{
    uint32_t lo = (10u << 24) | (second << 16) | (third << 8);

    return (struct ip_range){lo, lo | 0xff};
}

/* The first pair that overlaps nothing. */
static int find_subnet(struct ip_used *used, uint32_t *ret, struct err *err)
{
    for (unsigned i = 0; i < SUBNETS; i++) {
        struct ip_range mgmt = subnet(CLUSTER_MGMT, i), fabric = subnet(CLUSTER_FABRIC, i);
        if (ip_used_overlaps(used, mgmt) || ip_used_overlaps(used, fabric))
            continue;
        ip_used_add(used, mgmt.lo, 0xffffff00);
        ip_used_add(used, fabric.lo, 0xffffff00);
        *ret = i;
        return 0;
    }
    return err_set(err, -EADDRINUSE,
        "the machine's addresses and routes leave no free network among 10.%d.0.0 and 10.%d.0.0",
        CLUSTER_MGMT, CLUSTER_FABRIC);
}

/* From where the networks of sessions are taken. What the machine talks to must be outside: it
 * cannot be reached from sessions. NULL: none is free, the manager has its default. */
static char *find_overlay(const struct ip_used *used)
{
    static const struct {
        const char *cidr;
        struct ip_range range;
    } choice[] = {
        {"10.128.0.0/9", {0x0a800000, 0x0affffff}},
        {"172.16.0.0/12", {0xac100000, 0xac1fffff}},
        {"100.64.0.0/10", {0x64400000, 0x647fffff}},
        {"10.0.0.0/9", {0x0a000000, 0x0a7fffff}},
        {"192.168.0.0/16", {0xc0a80000, 0xc0a8ffff}},
    };

    for (size_t i = 0; i < ARRAY_LEN(choice); i++)
        if (!ip_used_overlaps(used, choice[i].range))
            return xstrdup(choice[i].cidr);
    return NULL;
}

static int plan_networks(struct cluster *c, bool is_virtual, struct err *err)
{
    _cleanup_(ip_used_done) struct ip_used used = {0};
    int r = ip_used_add_machine(&used, err);

    if (r == 0 && is_virtual)
        r = find_subnet(&used, &c->subnet, err);
    if (r == 0)
        c->overlay = find_overlay(&used);
    return r;
}

static void plan_host_node(struct cluster *c)
{
    struct cluster_node *n = &c->nodes[0];
    char host[NAME_MAX_LEN + 1] = "";

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    STR_SET(n->name, name_check("a node", host, NULL) == 0 ? host : "node1");
    snprintf(n->tag, sizeof(n->tag), "%.4s0", c->tag);
    STR_SET(n->mgmt, "127.0.0.1");
    STR_SET(n->fabric, "127.0.0.1");
}

static void plan_virtual_node(struct cluster *c, unsigned k)
{
    struct cluster_node *n = &c->nodes[k - 1];

    snprintf(n->name, sizeof(n->name), "n%u", k);
    snprintf(n->tag, sizeof(n->tag), "%.4sn%u", c->tag, k % 1000);
    snprintf(n->netns, sizeof(n->netns), "%s-n%u", c->tag, k);
    cluster_address(c, CLUSTER_MGMT, 10 + k, n->mgmt);
    cluster_address(c, CLUSTER_FABRIC, 10 + k, n->fabric);
}

int cluster_plan(const char *dir, size_t count, struct cluster *ret, struct err *err)
{
    struct cluster c = {.dir = xstrdup(dir), .count = MAX_OF(count, 1u)};
    int r;

    cluster_tag(dir, c.tag);
    r = proc_boot_id(c.boot_id, err);
    if (r == 0)
        r = find_port(&c.port, err);
    if (r == 0)
        r = plan_networks(&c, count > 0, err);
    if (r < 0) {
        cluster_done(&c);
        return r;
    }
    c.nodes = xnew_array(struct cluster_node, c.count);
    if (count == 0)
        plan_host_node(&c);
    for (unsigned k = 1; k <= count; k++)
        plan_virtual_node(&c, k);
    *ret = c;
    return 0;
}
