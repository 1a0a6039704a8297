/* What an IPv4 network may not overlap: from the machine's addresses, routes and name servers. */
#include "cli/ip_used.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include "base/fs.h"
#include "base/strv.h"
#include "model/ip.h"

#define FILE_MAX (1024 * 1024)

void ip_used_done(struct ip_used *u)
{
    free(u->ranges);
    *u = (struct ip_used){0};
}

void ip_used_add(struct ip_used *u, uint32_t ip, uint32_t mask)
{
    if (mask == 0) /* the default route is everywhere */
        return;
    u->ranges = xgrow(u->ranges, &u->cap, u->count + 1, sizeof(*u->ranges));
    u->ranges[u->count++] = (struct ip_range){.lo = ip & mask, .hi = ip | ~mask};
}

/* "eth0 0001020A 00000000 0001 0 0 0 00FFFFFF ...": in network byte order. */
void ip_used_add_routes(struct ip_used *u, const char *text)
{
    _cleanup_(strv_freep) char **lines = strv_split(text, '\n');
    unsigned ip, mask;

    strv_for_each (line, lines)
        if (sscanf(*line, "%*s %x %*x %*x %*d %*d %*d %x", &ip, &mask) == 2)
            ip_used_add(u, ntohl(ip), ntohl(mask));
}

void ip_used_add_name_servers(struct ip_used *u, const char *text)
{
    _cleanup_(strv_freep) char **lines = strv_split(text, '\n');

    strv_for_each (line, lines) {
        char address[64];
        uint32_t ip;
        if (sscanf(*line, " nameserver %63s", address) == 1 && ipv4_parse(address, &ip) == 0)
            ip_used_add(u, ip, UINT32_MAX);
    }
}

/* A file that is not there says nothing. */
static void add_file(
    struct ip_used *u, const char *path, void (*add)(struct ip_used *u, const char *text))
{
    _cleanup_free_ char *text = NULL;
    size_t len;

    if (fs_read(path, FILE_MAX, &text, &len, NULL) == 0)
        add(u, text);
}

int ip_used_add_machine(struct ip_used *u, struct err *err)
{
    struct ifaddrs *list;

    if (getifaddrs(&list) < 0)
        return err_sys(err, -errno, "cannot list addresses");
    for (struct ifaddrs *a = list; a; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && a->ifa_netmask)
            ip_used_add(u, ntohl(((struct sockaddr_in *)a->ifa_addr)->sin_addr.s_addr),
                ntohl(((struct sockaddr_in *)a->ifa_netmask)->sin_addr.s_addr));
    freeifaddrs(list);
    add_file(u, "/proc/net/route", ip_used_add_routes);
    add_file(u, "/etc/resolv.conf", ip_used_add_name_servers);
    add_file(u, "/run/systemd/resolve/resolv.conf", ip_used_add_name_servers);
    return 0;
}

bool ip_used_overlaps(const struct ip_used *u, struct ip_range range)
{
    for (size_t i = 0; i < u->count; i++)
        if (u->ranges[i].lo <= range.hi && u->ranges[i].hi >= range.lo)
            return true;
    return false;
}
