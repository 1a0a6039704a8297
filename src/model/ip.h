/* Addresses as text. Pure: nothing is looked up. */
#ifndef MODEL_IP_H
#define MODEL_IP_H

#include "base/err.h"

/* Host byte order -> "10.128.0.2". */
#define IPV4_TEXT_MAX 16
char *ipv4_format(uint32_t ip, char text[IPV4_TEXT_MAX]);
/* Four decimal parts, nothing else. -EINVAL. */
int ipv4_parse(const char *text, uint32_t *ret);

bool ip_is_valid(const char *text); /* IPv4 or IPv6, no zone, no brackets */
/* "10.0.0.0/8", "fd00::/8": an address, a slash, a prefix length that it can have. */
bool cidr_is_valid(const char *text);

#endif
