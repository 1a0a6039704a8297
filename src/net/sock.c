/* Socket addresses and options. Owns nothing. */
#include "net/sock.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>

int sock_parse(const char *host, uint16_t port, union sock_address *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons(port);
        return 0;
    }
    return -EINVAL;
}

socklen_t sock_len(const union sock_address *address)
{
    return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

uint16_t sock_port(const union sock_address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
}

char *sock_text(const union sock_address *address, char text[SOCK_TEXT_MAX])
{
    text[0] = '\0';
    if (address->any.sa_family == AF_INET)
        inet_ntop(AF_INET, &address->v4.sin_addr, text, SOCK_TEXT_MAX);
    else
        inet_ntop(AF_INET6, &address->v6.sin6_addr, text, SOCK_TEXT_MAX);
    return text;
}

unsigned sock_take(const struct addrinfo *list, uint16_t port, union sock_address *to)
{
    unsigned count = 0;

    for (; list && count < SOCK_ADDRESSES_MAX; list = list->ai_next) {
        union sock_address *one = &to[count];

        memset(one, 0, sizeof(*one));
        if (list->ai_family != AF_INET && list->ai_family != AF_INET6)
            continue;
        memcpy(one, list->ai_addr, MIN_OF((size_t)list->ai_addrlen, sizeof(*one)));
        if (list->ai_family == AF_INET)
            one->v4.sin_port = htons(port);
        else
            one->v6.sin6_port = htons(port);
        count++;
    }
    return count;
}

void sock_tune(int fd)
{
    int on = 1, idle = 30, interval = 10, count = 3;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

int sock_connect(const union sock_address *to, int *ret_fd)
{
    _cleanup_close_ int fd = socket(
        to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    sock_tune(fd);
    if (connect(fd, &to->any, sock_len(to)) < 0 && errno != EINPROGRESS)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int sock_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    return -error;
}
