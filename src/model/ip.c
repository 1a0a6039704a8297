/* Addresses as text, by inet_pton(3), which looks nothing up. */
#include "model/ip.h"

#include <arpa/inet.h>

#include "base/str.h"

char *ipv4_format(uint32_t ip, char text[IPV4_TEXT_MAX])
{
    snprintf(text, IPV4_TEXT_MAX, "%u.%u.%u.%u", ip >> 24, (ip >> 16) & 0xff, (ip >> 8) & 0xff,
        ip & 0xff);
    return text;
}

int ipv4_parse(const char *text, uint32_t *ret)
{
    struct in_addr addr;

    if (!text || inet_pton(AF_INET, text, &addr) != 1)
        return -EINVAL;
    *ret = ntohl(addr.s_addr);
    return 0;
}

/* Bits of an address of its family; 0 when it is none. */
static unsigned address_bits(const char *text)
{
    struct in6_addr addr;

    if (inet_pton(AF_INET, text, &addr) == 1)
        return 32;
    return inet_pton(AF_INET6, text, &addr) == 1 ? 128 : 0;
}

bool ip_is_valid(const char *text)
{
    return text && address_bits(text) > 0;
}

bool cidr_is_valid(const char *text)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = text ? strchr(text, '/') : NULL;
    uint64_t prefix;

    if (!slash || (size_t)(slash - text) >= sizeof(address))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    return address_bits(address) > 0 && str_to_u64(slash + 1, address_bits(address), &prefix) == 0;
}
