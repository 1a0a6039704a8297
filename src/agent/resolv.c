/* A cluster's networks and a site's may overlap; then names are what is missed first. */
#include "agent/resolv.h"

#include "agent/ct/rootfs.h"
#include "agent/net/cidr.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/strv.h"
#include "model/ip.h"

static bool is_in(const struct cidr_list *l, uint32_t ip)
{
    for (size_t i = 0; i < l->count; i++)
        if (ip >= l->ranges[i].lo && ip <= l->ranges[i].hi)
            return true;
    return false;
}

void resolv_check(char *const *blocked)
{
    _cleanup_(cidr_list_done) struct cidr_list l = {0};
    _cleanup_free_ char *text = rootfs_resolv();
    _cleanup_(strv_freep) char **lines = strv_split(text, '\n');

    for (size_t i = 0; blocked && blocked[i]; i++)
        (void)cidr_list_add_text(&l, blocked[i], NULL);
    strv_for_each (line, lines) {
        char address[64];
        uint32_t ip;

        if (sscanf(*line, "nameserver %63s", address) != 1 || ipv4_parse(address, &ip) < 0)
            continue;
        if (is_in(&l, ip))
            log_warning("the name server %s is in a network that sessions must not reach: names do "
                        "not work in them; see 'network.overlay' and 'network.blocked'",
                address);
    }
}
