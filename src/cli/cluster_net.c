/*
 * The networks of virtual nodes: made by ip(8) and nft(8) in batches. A node's links on the machine
 * join their bridges last, so that a node whose fabric link has joined is complete.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fs.h"
#include "base/proc.h"
#include "cli/cluster.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

#define NETNS_DIR "/run/netns"
#define FORWARD "/proc/sys/net/ipv4/ip_forward"
/* How the machine was before the first cluster, for the last one; a reboot clears both alike. */
#define MARKS CLUSTER_SHARED
#define MARK_FORWARD MARKS "/forward-was-off"
#define MARK_NETNS MARKS "/netns-dir-made"
#define BATCH_MAX (64 * 1024)

/* --- programs ----------------------------------------------------------------------------- */

static int run_with_input(const char *const *argv, const struct buf *input, struct err *err)
{
    _cleanup_close_ int fd = memfd_create("input", MFD_CLOEXEC);
    struct proc p = {.argv = argv, .in_fd = fd};

    if (fd < 0)
        return err_sys(err, -errno, "cannot make a file in memory");
    if (write(fd, input->data, input->len) != (ssize_t)input->len || lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, -EIO, "cannot write a file in memory");
    return proc_run(&p, NULL, err);
}

/* In netns, or the machine's own network when NULL. */
static int ip_batch(const char *netns, const struct buf *lines, struct err *err)
{
    const char *here[] = {"ip", "-batch", "-", NULL};
    const char *there[] = {"ip", "-n", netns, "-batch", "-", NULL};

    return run_with_input(netns ? there : here, lines, err);
}

static bool link_exists(const char *name)
{
    return if_nametoindex(name) != 0;
}

static bool is_netns(const char *name)
{
    _cleanup_free_ char *path = xasprintf(NETNS_DIR "/%s", name);
    struct statfs sf;

    return statfs(path, &sf) == 0 && sf.f_type == NSFS_MAGIC;
}

static void delete_link(const char *name)
{
    const char *argv[] = {"ip", "link", "delete", name, NULL};

    if (link_exists(name))
        (void)proc_run(&(struct proc){.argv = argv}, NULL, NULL);
}

static int delete_netns(const char *name, struct err *err)
{
    _cleanup_free_ char *path = xasprintf(NETNS_DIR "/%s", name);
    const char *argv[] = {"ip", "netns", "delete", name, NULL};

    if (is_netns(name))
        return proc_run(&(struct proc){.argv = argv}, NULL, err);
    (void)unlink(path); /* a file that nothing is bound to */
    return 0;
}

/* --- making ------------------------------------------------------------------------------- */

static void bridge_name(const struct cluster *c, const char *end, char name[IF_NAMESIZE])
{
    snprintf(name, IF_NAMESIZE, "%s-%s", c->tag, end);
}

static void port_name(const struct cluster_node *n, char end, char name[IF_NAMESIZE])
{
    snprintf(name, IF_NAMESIZE, "%s-%c", n->tag, end);
}

static int make_bridge(
    const struct cluster *c, const char *end, const char *address, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(BATCH_MAX);
    char name[IF_NAMESIZE];

    bridge_name(c, end, name);
    if (link_exists(name))
        return 0;
    buf_printf(&b, "link add %s type bridge\n", name);
    buf_printf(&b, "link set %s addrgenmode none\n", name);
    if (address)
        buf_printf(&b, "addr add %s/24 dev %s\n", address, name);
    buf_printf(&b, "link set %s up\n", name);
    return ip_batch(NULL, &b, err);
}

static bool node_is_made(const struct cluster_node *n)
{
    char port[IF_NAMESIZE];

    port_name(n, 'f', port);
    _cleanup_free_ char *master = xasprintf("/sys/class/net/%s/master", port);
    return is_netns(n->netns) && fs_exists(master);
}

static int make_inside(const struct cluster *c, const struct cluster_node *n, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(BATCH_MAX);
    char gateway[16];

    cluster_address(c, CLUSTER_MGMT, 1, gateway);
    buf_puts(&b, "link set lo up\n");
    buf_puts(&b, "link set mgmt addrgenmode none\nlink set fab addrgenmode none\n");
    buf_printf(&b, "addr add %s/24 dev mgmt\nlink set mgmt up\n", n->mgmt);
    buf_printf(&b, "addr add %s/24 dev fab\nlink set fab up\n", n->fabric);
    buf_printf(&b, "route add default via %s\n", gateway);
    return ip_batch(n->netns, &b, err);
}

static int make_node(const struct cluster *c, const struct cluster_node *n, struct err *err)
{
    const char *add[] = {"ip", "netns", "add", n->netns, NULL};
    _cleanup_(buf_done) struct buf make = BUF_INIT(BATCH_MAX), join = BUF_INIT(BATCH_MAX);
    char m[IF_NAMESIZE], f[IF_NAMESIZE];
    int r;

    if (node_is_made(n))
        return 0;
    port_name(n, 'm', m);
    port_name(n, 'f', f);
    delete_link(m);
    delete_link(f);
    r = delete_netns(n->netns, err);
    if (r == 0)
        r = proc_run(&(struct proc){.argv = add}, NULL, err);
    buf_printf(&make, "link add %s type veth peer name mgmt netns %s\n", m, n->netns);
    buf_printf(&make, "link add %s type veth peer name fab netns %s\n", f, n->netns);
    buf_printf(&make, "link set %s addrgenmode none\nlink set %s addrgenmode none\n", m, f);
    if (r == 0)
        r = ip_batch(NULL, &make, err);
    if (r == 0)
        r = make_inside(c, n, err);
    buf_printf(&join, "link set %s master %s-mg up\n", m, c->tag);
    buf_printf(&join, "link set %s master %s-fb up\n", f, c->tag);
    if (r == 0)
        r = ip_batch(NULL, &join, err);
    return r < 0 ? err_prefix(err, "the network of node %s", n->name) : 0;
}

/* The way out of the nodes: forwarding, and the machine's address on what leaves. */
static int make_way_out(const struct cluster *c, struct err *err)
{
    const char *argv[] = {"nft", "-f", "-", NULL};
    _cleanup_(buf_done) struct buf b = BUF_INIT(BATCH_MAX);
    char network[16];

    cluster_address(c, CLUSTER_MGMT, 0, network);
    buf_printf(&b, "table inet muster_up_%s\ndelete table inet muster_up_%s\n", c->tag, c->tag);
    buf_printf(&b,
        "table inet muster_up_%s {\n"
        "    chain way_out {\n"
        "        type nat hook postrouting priority srcnat\n"
        "        ip saddr %s/24 oifname != \"%s-mg\" masquerade\n"
        "    }\n}\n",
        c->tag, network, c->tag);
    return run_with_input(argv, &b, err);
}

static bool forward_is_off(void)
{
    FILE *f = fopen(FORWARD, "re");
    int c = f ? fgetc(f) : '1';

    if (f)
        fclose(f);
    return c == '0';
}

static int mark(const char *path, struct err *err)
{
    int r = fs_mkdir_p(MARKS, 0755, err);

    return r < 0 ? r : fs_write(path, "", 0, 0644, err);
}

/* What is to be undone is noted first. The agent of this machine turns forwarding on, too. */
static int note_before(struct cluster *c, struct err *err)
{
    int r = 0;

    if (cluster_is_virtual(c) && !fs_exists(NETNS_DIR))
        r = mark(MARK_NETNS, err);
    if (r == 0 && forward_is_off())
        r = mark(MARK_FORWARD, err);
    return r;
}

int cluster_net_make(struct cluster *c, struct err *err)
{
    char host[16];
    int r;

    r = note_before(c, err);
    if (r < 0 || !cluster_is_virtual(c))
        return r;
    cluster_address(c, CLUSTER_MGMT, 1, host);
    if (forward_is_off())
        r = fs_write_existing(FORWARD, "1", err);
    if (r == 0)
        r = make_bridge(c, "mg", host, err);
    if (r == 0)
        r = make_bridge(c, "fb", NULL, err);
    for (size_t i = 0; i < c->count && r == 0; i++)
        r = make_node(c, &c->nodes[i], err);
    return r == 0 ? make_way_out(c, err) : r;
}

int cluster_netns(const struct cluster_node *n, struct err *err)
{
    _cleanup_free_ char *path = NULL;
    int fd;

    if (!n->netns[0])
        return 0;
    path = xasprintf(NETNS_DIR "/%s", n->netns);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(err, -errno, "cannot open '%s'", path) : fd;
}

/* --- removing ----------------------------------------------------------------------------- */

static void remove_way_out(const struct cluster *c)
{
    _cleanup_free_ char *table = xasprintf("muster_up_%s", c->tag);
    const char *del[] = {"nft", "delete", "table", "inet", table, NULL};

    (void)proc_run(&(struct proc){.argv = del}, NULL, NULL);
}

/* A table of Muster's in the machine's own network: an agent or another cluster is there. */
static bool others_are_here(void)
{
    const char *list[] = {"nft", "list", "tables", "inet", NULL};
    _cleanup_(buf_done) struct buf tables = BUF_INIT(BATCH_MAX);

    return proc_run(&(struct proc){.argv = list, .out = &tables}, NULL, NULL) < 0 ||
        (tables.data && strstr(tables.data, "table inet muster_"));
}

/* ip(8) makes a mount of the folder; both go when nobody else has put anything there. */
static void remove_netns_dir(void)
{
    if (rmdir(NETNS_DIR) < 0 && errno == EBUSY && umount2(NETNS_DIR, UMOUNT_NOFOLLOW) == 0)
        (void)rmdir(NETNS_DIR);
}

static void put_back(void)
{
    if (others_are_here())
        return;
    if (fs_exists(MARK_FORWARD))
        (void)fs_write_existing(FORWARD, "0", NULL);
    if (fs_exists(MARK_NETNS))
        remove_netns_dir();
    (void)unlink(MARK_FORWARD); /* the folder goes with the lock */
    (void)unlink(MARK_NETNS);
}

static int remove_virtual(const struct cluster *c, struct err *err)
{
    char name[IF_NAMESIZE];
    int r = 0;

    for (size_t i = 0; i < c->count; i++) {
        port_name(&c->nodes[i], 'm', name);
        delete_link(name);
        port_name(&c->nodes[i], 'f', name);
        delete_link(name);
        r = r < 0 ? r : delete_netns(c->nodes[i].netns, err);
    }
    bridge_name(c, "mg", name);
    delete_link(name);
    bridge_name(c, "fb", name);
    delete_link(name);
    remove_way_out(c);
    return r;
}

int cluster_net_remove(const struct cluster *c, struct err *err)
{
    int fd = -1, r = cluster_machine_lock(&fd, err);

    if (r < 0)
        return r;
    r = cluster_is_virtual(c) ? remove_virtual(c, err) : 0;
    put_back();
    cluster_machine_unlock(fd);
    return r;
}
