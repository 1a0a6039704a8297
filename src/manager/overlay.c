/*
 * Session networks. Subnets are handed out round and round, so that one is not reused soon after
 * its session ended; VNIs are random 24-bit numbers, so that nobody can guess one and a reuse
 * within minutes is as good as impossible.
 */
#include "manager/overlay.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include "base/strv.h"
#include "model/ip.h"

#define SUBNET_BITS 22

int overlay_parse(const char *cidr, uint32_t *ret_base, uint32_t *ret_count, struct err *err)
{
    char address[INET_ADDRSTRLEN];
    const char *slash = strchr(cidr, '/');
    struct in_addr in;
    uint64_t bits = 0;

    if (!slash || (size_t)(slash - cidr) >= sizeof(address))
        return err_set(err, -EINVAL, "'network.overlay' must be like 10.128.0.0/9");
    memcpy(address, cidr, slash - cidr);
    address[slash - cidr] = '\0';
    if (inet_pton(AF_INET, address, &in) != 1 || str_to_u64(slash + 1, 20, &bits) < 0 || bits < 8)
        return err_set(err, -EINVAL, "'network.overlay' must be an IPv4 network of /8 to /20");
    *ret_base = ntohl(in.s_addr) & ~((UINT32_C(1) << (32 - bits)) - 1);
    *ret_count = UINT32_C(1) << (SUBNET_BITS - bits);
    return 0;
}

/* --- what is in use -------------------------------------------------------------------------- */

#define KEY_MAX 16

static const char *subnet_key(const struct session *s, char text[KEY_MAX])
{
    snprintf(text, KEY_MAX, "s%x", s->subnet);
    return text;
}

static const char *vni_key(const struct session *s, char text[KEY_MAX])
{
    snprintf(text, KEY_MAX, "v%x", s->vni);
    return text;
}

void overlay_take(struct manager *m, struct session *s)
{
    char key[KEY_MAX];

    if (!s->subnet)
        return;
    map_set(&m->networks, subnet_key(s, key), s);
    map_set(&m->networks, vni_key(s, key), s);
}

void overlay_free(struct manager *m, struct session *s)
{
    char key[KEY_MAX];

    if (map_get(&m->networks, subnet_key(s, key)) == s)
        map_remove(&m->networks, subnet_key(s, key));
    if (map_get(&m->networks, vni_key(s, key)) == s)
        map_remove(&m->networks, vni_key(s, key));
    s->subnet = s->vni = 0;
}

static bool is_used(const struct manager *m, const struct session *s)
{
    char key[KEY_MAX];

    return map_get(&m->networks, subnet_key(s, key)) || map_get(&m->networks, vni_key(s, key));
}

static uint32_t random_vni(void)
{
    uint32_t vni;

    do {
        if (getrandom(&vni, sizeof(vni), 0) != sizeof(vni))
            abort();
        vni &= 0xffffff;
    } while (vni == 0);
    return vni;
}

int overlay_assign(struct manager *m, struct session *s, struct err *err)
{
    uint32_t base = 0, count = 0;
    int r = overlay_parse(m->config.overlay, &base, &count, err);

    if (r < 0)
        return r;
    overlay_free(m, s);
    for (uint32_t tries = 0; tries < count; tries++) {
        uint64_t n = store_next(m->store, "subnet") % count;
        s->subnet = base + (uint32_t)(n << (32 - SUBNET_BITS));
        s->vni = random_vni();
        if (!is_used(m, s)) {
            overlay_take(m, s);
            return 0;
        }
    }
    s->subnet = s->vni = 0;
    return err_set(err, -ENOSPC, "all %u session networks of 'network.overlay' are in use", count);
}

void overlay_block(struct manager *m, char ***blocked)
{
    uint32_t base = 0, count = 0;

    if (overlay_parse(m->config.overlay, &base, &count, NULL) < 0)
        return; /* main.c has refused it */
    strv_push(blocked, m->config.overlay);
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        char text[IPV4_TEXT_MAX];

        if (s->subnet && (s->subnet - base) >> (32 - SUBNET_BITS) >= count)
            strv_pushf(blocked, "%s/%d", ipv4_format(s->subnet, text), SUBNET_BITS);
    }
}
