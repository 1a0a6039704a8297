/* Socket addresses and what every TCP connection of ours is set to. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/base.h"

union sock_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct addrinfo;

#define SOCK_ADDRESSES_MAX 8
#define SOCK_TEXT_MAX 46

/* "10.9.0.1" or "fd00::1"; -EINVAL for what is no address. */
int sock_parse(const char *host, uint16_t port, union sock_address *ret);
socklen_t sock_len(const union sock_address *address);
uint16_t sock_port(const union sock_address *address);
char *sock_text(const union sock_address *address, char text[SOCK_TEXT_MAX]);
/* The IPv4 and IPv6 addresses of a list, at most SOCK_ADDRESSES_MAX; returns how many. */
unsigned sock_take(const struct addrinfo *list, uint16_t port, union sock_address *to);

/* Small messages leave at once, and a peer whose machine vanished is noticed in about a minute even
 * when we have nothing to say. */
void sock_tune(int fd);
/* A socket that connects, without waiting. 0 or a negative errno; -EINPROGRESS is 0, too. */
int sock_connect(const union sock_address *to, int *ret_fd);
/* How that went, once the socket is writable. */
int sock_error(int fd);

#endif
