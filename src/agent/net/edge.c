/*
 * The calls of edge.h that make things: checked here, done by edge_solo.c and edge_shared.c. Every
 * step ensures one thing and may be repeated; the filter stands before the first link. Namespaces
 * are prepared before they are pinned, so a pinned one is never half prepared.
 */
#include "agent/net/edge.h"

#include <sys/socket.h>

#include "agent/net/edge_parts.h"
#include "agent/net/netns.h"
#include "agent/net/nft.h"
#include "agent/net/rules.h"
#include "base/fs.h"

void edge_container_netns(
    const struct node_net *n, const char *session_id, const char *name, char path[NETNS_PATH_MAX])
{
    snprintf(path, NETNS_PATH_MAX, "%s/%s.%s", n->netns_dir, session_id, name);
}

void edge_netns(const struct node_net *n, const char *session_id, char path[NETNS_PATH_MAX])
{
    snprintf(path, NETNS_PATH_MAX, "%s/%s", n->netns_dir, session_id);
}

struct sysctl {
    const char *name, *value;
};

static int set_sysctls(const struct sysctl *s, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int r = netns_sysctl(s[i].name, s[i].value, err);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

int edge_prepare_container(struct err *err)
{
    static const struct sysctl s[] = {
        {"ipv6/conf/all/disable_ipv6", "1"},
        {"ipv6/conf/default/disable_ipv6", "1"},
        {"ipv4/ip_unprivileged_port_start", "0"},
        {"ipv4/ip_local_reserved_ports", SESSION_MASTER_PORT_TEXT},
        {"ipv4/ping_group_range", "0 2147483647"},
    };

    return set_sysctls(s, ARRAY_LEN(s), err);
}

int edge_prepare_shared(struct err *err)
{
    static const struct sysctl s[] = {
        {"ipv6/conf/all/disable_ipv6", "1"},
        {"ipv6/conf/default/disable_ipv6", "1"},
        {"ipv4/conf/all/send_redirects", "0"},
        {"ipv4/conf/default/send_redirects", "0"},
        {"ipv4/ip_forward", "1"},
        {"bridge/bridge-nf-call-iptables", "0"},
        {"bridge/bridge-nf-call-ip6tables", "0"},
        {"bridge/bridge-nf-call-arptables", "0"},
    };

    return set_sysctls(s, ARRAY_LEN(s), err);
}

int edge_apply_filter(const struct plan *p, struct netlink *node, int edge_fd, struct err *err)
{
    _cleanup_(cidr_list_done) struct cidr_list blocked = {0};
    _cleanup_(buf_done) struct buf text = BUF_INIT(RULES_MAX);
    _cleanup_(netns_leave) struct netns_visit v = NETNS_HOME;
    int r = edge_blocked(p->n, node, &blocked, err);

    if (r < 0)
        return r;
    r = rules_edge(p, &blocked, &text);
    if (r < 0)
        return err_set(err, r, "the filter is too large");
    r = netns_enter(edge_fd, &v, err);
    if (r == 0)
        r = nft_apply(text.data, err);
    return r;
}

int edge_make(const struct node_net *n, const struct assignment *a, uint32_t index, struct err *err)
{
    struct plan p;
    int r = plan_make(n, a, index, &p, err);

    if (r == 0)
        r = fs_mkdir_p(n->netns_dir, 0700, err);
    if (r == 0)
        r = p.solo ? edge_make_solo(&p, err) : edge_make_shared(&p, err);
    if (r < 0)
        err_prefix(err, "network of session %.36s", a->session);
    return r;
}

int edge_add_container(
    const struct node_net *n, const struct assignment *a, uint32_t rank, struct err *err)
{
    struct plan p;
    int r = plan_make(n, a, 0, &p, err);

    if (r == 0 && rank >= a->peer_count)
        r = err_set(err, -EINVAL, "no container has rank %u", rank);
    if (r == 0 && !p.solo)
        r = edge_make_container(&p, rank, err);
    if (r < 0)
        err_prefix(err, "network of container '%s' of session %.36s",
            rank < a->peer_count ? a->peers[rank].name : "?", a->session);
    return r;
}

int edge_socket_in(const char *netns_path, int domain, int type)
{
    _cleanup_(netns_leave) struct netns_visit v = NETNS_HOME;
    _cleanup_close_ int fd = netns_open(netns_path, NULL);
    int r, s;

    if (fd < 0)
        return fd;
    r = netns_enter(fd, &v, NULL);
    if (r < 0)
        return r;
    s = socket(domain, type | SOCK_CLOEXEC, 0);
    return s < 0 ? -errno : s;
}
