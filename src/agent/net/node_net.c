/*
 * The node's own namespace: forwarding, the table with the way out, watching over it. Keeps, per
 * table, the text that the kernel showed right after it was set: repairing is comparing with that.
 */
#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/net/edge.h"
#include "agent/net/edge_parts.h"
#include "agent/net/netns.h"
#include "agent/net/nft.h"
#include "agent/net/rules.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/strv.h"

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map known; /* "NAMESPACE TABLE" -> listing, heap */

/* Setting and repairing take turns: a table just set must not look changed to a repair. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static char *known_key(const char *table)
{
    _cleanup_close_ int fd = netns_open_current();
    struct stat s = {0};

    if (fd >= 0)
        (void)fstat(fd, &s);
    return xasprintf("%llu %s", (unsigned long long)s.st_ino, table);
}

static void known_set(const char *table, const char *listing)
{
    _cleanup_free_ char *key = known_key(table);

    pthread_mutex_lock(&known_lock);
    free(listing ? map_set(&known, key, xstrdup(listing)) : map_remove(&known, key));
    pthread_mutex_unlock(&known_lock);
}

static bool known_is(const char *table, const char *listing)
{
    _cleanup_free_ char *key = known_key(table);
    const char *want;
    bool same;

    pthread_mutex_lock(&known_lock);
    want = map_get(&known, key);
    same = want && strcmp(want, listing) == 0;
    pthread_mutex_unlock(&known_lock);
    return same;
}

/* Set the table; ret_listing: as the kernel shows it then. With table_lock held. */
static int set_table(const struct node_net *n, char **ret_listing, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(RULES_MAX);
    char table[32];
    int r = rules_node(n, &text, err);

    rules_node_table(n, table);
    if (r == 0)
        r = nft_apply(text.data, err);
    if (r == 0)
        r = nft_list_table(table, ret_listing, err);
    if (r == 0)
        known_set(table, *ret_listing);
    return r;
}

static int block_own_address(void *arg, uint32_t index, const struct netlink_addr *a)
{
    uint32_t ip;

    if (a->family != AF_INET || index == LOOPBACK_INDEX)
        return 0;
    memcpy(&ip, a->bytes, sizeof(ip));
    ip = ntohl(ip);
    if ((ip & 0xffff0000u) != LINK_LOCAL_NET) /* uplinks: blocked anyway, and they come and go */
        cidr_list_add(arg, ip, ip);
    return 0;
}

int edge_blocked(
    const struct node_net *n, struct netlink *node, struct cidr_list *ret, struct err *err)
{
    char **cidrs = n->blocked;
    int r = 0;

    strv_for_each (cidr, cidrs)
        if (r == 0)
            r = cidr_list_add_text(ret, *cidr, err);
    if (r == 0)
        r = netlink_each_addr(node, block_own_address, ret, err);
    cidr_list_normalise(ret);
    return r;
}

/* The edges that stand get the new list too. Their own second fence: the node's table judges the
 * same packets, so an edge that is just being made or removed and refuses is no harm. */
static int refresh_edges(const struct node_net *n, struct err *err)
{
    _cleanup_(netlink_close) struct netlink node = {0};
    _cleanup_(cidr_list_done) struct cidr_list blocked = {0};
    _cleanup_(buf_done) struct buf text = BUF_INIT(RULES_MAX);
    _cleanup_(strv_freep) char **sessions = NULL;
    int r = edge_list(n, &sessions, err);

    if (r < 0 || !sessions)
        return r;
    r = netlink_open(&node, err);
    if (r == 0)
        r = edge_blocked(n, &node, &blocked, err);
    if (r < 0)
        return r;
    r = rules_edge_blocked(&blocked, &text);
    if (r < 0)
        return err_set(err, r, "too many blocked networks");
    strv_for_each (s, sessions) {
        _cleanup_(netns_leave) struct netns_visit v = NETNS_HOME;
        _cleanup_close_ int fd = -1;
        char path[NETNS_PATH_MAX];

        edge_netns(n, *s, path);
        fd = netns_open(path, NULL);
        if (fd < 0) {
            edge_container_netns(n, *s, "main1", path);
            fd = netns_open(path, NULL);
        }
        if (fd >= 0 && netns_enter(fd, &v, NULL) == 0)
            (void)nft_apply(text.data, NULL);
    }
    return 0;
}

int node_net_setup(const struct node_net *n, struct err *err)
{
    _cleanup_free_ char *listing = NULL;
    int r = plan_check_node(n, err);

    if (r == 0)
        r = fs_mkdir_p(n->netns_dir, 0700, err);
    if (r == 0) {
        pthread_mutex_lock(&table_lock);
        r = set_table(n, &listing, err);
        pthread_mutex_unlock(&table_lock);
    }
    if (r == 0)
        r = netns_sysctl("ipv4/ip_forward", "1", err);
    if (r == 0)
        r = refresh_edges(n, err);
    if (r < 0)
        err_prefix(err, "node network");
    return r;
}

/* With table_lock held. */
static int repair_table(const struct node_net *n, struct err *err)
{
    _cleanup_free_ char *before = NULL, *after = NULL;
    char table[32];
    int r;

    rules_node_table(n, table);
    if (nft_list_table(table, &before, NULL) == 0 && known_is(table, before))
        return 0;
    r = set_table(n, &after, err);
    if (r != 0)
        return r;
    return !before || strcmp(before, after) != 0;
}

int node_net_repair(const struct node_net *n, struct err *err)
{
    int r = plan_check_node(n, err);

    if (r == 0)
        r = netns_sysctl("ipv4/ip_forward", "1", err);
    if (r == 0) {
        pthread_mutex_lock(&table_lock);
        r = repair_table(n, err);
        pthread_mutex_unlock(&table_lock);
    }
    if (r < 0)
        err_prefix(err, "cannot repair the node's network");
    return r;
}

int node_net_remove(const struct node_net *n, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(256);
    char table[32];
    int r = plan_check_node(n, err);

    if (r == 0) /* the edges first: while links are left, so is the fence */
        r = edge_remove_all(n, err);
    if (r < 0)
        return err_prefix(err, "cannot remove the node's network"), r;
    rules_node_table(n, table);
    known_set(table, NULL);
    assert(rules_node_remove(n, &text) == 0);
    r = nft_apply(text.data, err);
    if (r < 0)
        err_prefix(err, "cannot remove the node's network");
    return r;
}

int node_net_watch(int *ret_fd, struct err *err)
{
    _cleanup_close_ int fd = socket(
        AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
    struct sockaddr_nl any = {.nl_family = AF_NETLINK};
    int group = NFNLGRP_NFTABLES;

    if (fd < 0)
        return err_sys(err, -errno, "cannot open a netfilter socket");
    if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
        setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
        return err_sys(err, -errno, "cannot watch nftables");
    *ret_fd = TAKE_FD(fd);
    return 0;
}

void node_net_drain(int fd)
{
    char data[8192];

    /* ENOBUFS: events were lost, which the caller does not need one by one */
    while (recv(fd, data, sizeof(data), MSG_DONTWAIT | MSG_TRUNC) >= 0 || errno == ENOBUFS ||
        errno == EINTR)
        continue;
}

struct fabric_search {
    struct netlink_addr addr;
    uint32_t index;
};

static int find_device(void *arg, uint32_t index, const struct netlink_addr *a)
{
    struct fabric_search *f = arg;

    if (a->family == f->addr.family && memcmp(a->bytes, f->addr.bytes, sizeof(a->bytes)) == 0)
        f->index = index;
    return 0;
}

int node_net_find_fabric(struct node_net *n, struct err *err)
{
    _cleanup_(netlink_close) struct netlink nl = {0};
    _cleanup_free_ struct netlink_link *links = NULL;
    struct fabric_search f = {0};
    size_t count = 0;
    int r;

    if (netlink_addr_parse(n->fabric_addr, &f.addr) < 0)
        return err_set(err, -EINVAL, "the fabric address '%s' is no address", n->fabric_addr);
    r = netlink_open(&nl, err);
    if (r == 0)
        r = netlink_each_addr(&nl, find_device, &f, err);
    if (r == 0)
        r = netlink_link_list(&nl, &links, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (links[i].index != f.index)
            continue;
        STR_SET(n->fabric_dev, links[i].name);
        /* The loopback's 65536 is more than any other device may have, or a document may say. */
        n->fabric_mtu = links[i].mtu > UINT16_MAX ? 1500 : links[i].mtu;
        return 0;
    }
    return err_set(err, -ENODEV, "no device has the fabric address '%s'", n->fabric_addr);
}
