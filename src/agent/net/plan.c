/* Owns the scheme of names and addresses; touches nothing. */
#include "agent/net/plan.h"

#include <ctype.h>

const uint8_t gateway_mac[MAC_LEN] = {0x02, 0x4d, 0, 0, 0, 1};

#define VXLAN_OVERHEAD_4 50 /* Ethernet 14 + VXLAN 8 + UDP 8 + IPv4 20 */
#define VXLAN_OVERHEAD_6 70
#define MTU_DEFAULT 1500u
#define MTU_MAX 65535u /* of a veth; lo has one more */
#define MTU_MIN 576u

void mac_of_ip(uint32_t ip, uint8_t mac[MAC_LEN])
{
    mac[0] = 0x02;
    mac[1] = 0x4d;
    for (int i = 0; i < 4; i++)
        mac[2 + i] = (uint8_t)(ip >> (24 - 8 * i));
}

void port_name(uint32_t rank, char name[LINK_NAME_MAX])
{
    snprintf(name, LINK_NAME_MAX, "p%u", rank);
}

void uplink_prefix(const struct node_net *n, char prefix[LINK_NAME_MAX])
{
    snprintf(prefix, LINK_NAME_MAX, "m-%s-", n->tag);
}

static bool same_host(const char *text, const struct netlink_addr *host)
{
    struct netlink_addr a;

    return netlink_addr_parse(text, &a) == 0 && a.family == host->family &&
        memcmp(a.bytes, host->bytes, sizeof(a.bytes)) == 0;
}

bool plan_is_remote(const struct plan *p, const struct assigned_peer *peer)
{
    return !same_host(peer->fabric, &p->fabric);
}

bool plan_has_remote(const struct plan *p)
{
    for (uint32_t i = 0; i < p->a->peer_count; i++)
        if (plan_is_remote(p, &p->a->peers[i]))
            return true;
    return false;
}

uint32_t edge_mtu(const struct node_net *n, const struct assignment *a)
{
    uint32_t mtu = n->fabric_mtu == 0 || n->fabric_mtu > MTU_MAX ? MTU_DEFAULT : n->fabric_mtu;

    if (a->vni == 0)
        return mtu;
    mtu -= MIN_OF(mtu, strchr(n->fabric_addr, ':') ? VXLAN_OVERHEAD_6 : VXLAN_OVERHEAD_4);
    return MAX_OF(mtu, MTU_MIN);
}

int plan_check_node(const struct node_net *n, struct err *err)
{
    struct netlink_addr a;
    size_t len = strnlen(n->tag, sizeof(n->tag));

    if (len == 0 || len >= sizeof(n->tag))
        return err_set(err, -EINVAL, "a node's tag must have 1 to 8 characters");
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)n->tag[i]) && !isdigit((unsigned char)n->tag[i]))
            return err_set(err, -EINVAL, "a node's tag must be of a-z and 0-9");
    if (netlink_addr_parse(n->fabric_addr, &a) < 0)
        return err_set(err, -EINVAL, "the fabric address '%s' is no address", n->fabric_addr);
    if (n->uplink_base % 4 != 0)
        return err_set(err, -EINVAL, "the uplinks' base must be a multiple of 4");
    return 0;
}

static int check_name(const char *name, struct err *err)
{
    for (size_t i = 0; name[i]; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]))
            return err_set(err, -EINVAL, "a container's name must be of a-z and 0-9");
    return name[0] ? 0 : err_set(err, -EINVAL, "a container has no name");
}

static int check_peer(const struct assignment *a, const struct assigned_peer *peer, struct err *err)
{
    uint32_t hosts = (1u << (32 - SESSION_PREFIX)) - 1;
    struct netlink_addr fabric;

    if ((peer->ip & ~hosts) != a->subnet || (peer->ip & hosts) == 0 || (peer->ip & hosts) == hosts)
        return err_set(
            err, -EINVAL, "the address of '%s' is not in the session's network", peer->name);
    if (netlink_addr_parse(peer->fabric, &fabric) < 0)
        return err_set(err, -EINVAL, "'%s' has no fabric address", peer->name);
    return check_name(peer->name, err);
}

static int check_assignment(const struct assignment *a, struct err *err)
{
    if (!uuid_is_valid(a->session))
        return err_set(err, -EINVAL, "the session's id is no UUID");
    if (a->peer_count == 0 || a->peer_count >= 1u << (32 - SESSION_PREFIX))
        return err_set(err, -EINVAL, "a session of %u containers cannot be", a->peer_count);
    if (a->subnet % (1u << (32 - SESSION_PREFIX)) != 0)
        return err_set(err, -EINVAL, "the session's network is no /%d", SESSION_PREFIX);
    if (a->vni >= 1u << 24)
        return err_set(err, -EINVAL, "VNI %u has more than 24 bits", a->vni);
    for (uint32_t i = 0; i < a->peer_count; i++) {
        int r = check_peer(a, &a->peers[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

int plan_make(const struct node_net *n, const struct assignment *a, uint32_t index,
    struct plan *ret, struct err *err)
{
    struct plan p = {.n = n, .a = a, .index = index, .solo = a->peer_count == 1};
    int r = plan_check_node(n, err);

    if (r == 0)
        r = check_assignment(a, err);
    if (r < 0)
        return r;
    if (index >= UPLINK_COUNT)
        return err_set(err, -EINVAL, "edge number %u is not below %u", index, UPLINK_COUNT);
    netlink_addr_parse(n->fabric_addr, &p.fabric);
    if (plan_has_remote(&p) && a->vni == 0)
        return err_set(err, -EINVAL, "containers on several nodes, but no VNI");
    p.mtu = edge_mtu(n, a);
    p.up_node = n->uplink_base + 4 * index + 1;
    p.up_edge = p.up_node + 1;
    snprintf(p.uplink, sizeof(p.uplink), "m-%s-%03x", n->tag, index);
    *ret = p;
    return 0;
}
