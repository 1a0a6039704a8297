/*
 * Owns the connection: opening it in a namespace, sending one request, reading the answer up to its
 * acknowledgement, with the kernel's extended error text. What requests mean is in netlink_link.c
 * and netlink_ip.c. libnl's own error numbers lose the errno, so the answer is read here.
 */
#include "agent/net/netlink.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include "agent/net/netlink_talk.h"
#include "agent/net/netns.h"

int netlink_open(struct netlink *nl, struct err *err)
{
    int on = 1;
    int r;

    nl->sock = nl_socket_alloc();
    if (!nl->sock)
        abort();
    r = nl_connect(nl->sock, NETLINK_ROUTE);
    if (r < 0) {
        netlink_close(nl);
        return err_set(err, -EIO, "cannot open a netlink socket: %s", nl_geterror(r));
    }
    /* only the error texts are lost without them */
    (void)setsockopt(nl_socket_get_fd(nl->sock), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    (void)setsockopt(nl_socket_get_fd(nl->sock), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
    return 0;
}

int netlink_open_in(struct netlink *nl, int netns_fd, struct err *err)
{
    _cleanup_(netns_leave) struct netns_visit v = NETNS_HOME;
    int r = netns_enter(netns_fd, &v, err);

    return r < 0 ? r : netlink_open(nl, err);
}

void netlink_close(struct netlink *nl)
{
    if (nl->sock)
        nl_socket_free(nl->sock);
    nl->sock = NULL;
}

int netlink_addr_parse(const char *text, struct netlink_addr *ret)
{
    struct netlink_addr a = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};

    if (inet_pton(a.family, text, a.bytes) != 1)
        return -EINVAL;
    *ret = a;
    return 0;
}

void nl_msg_freep(struct nl_msg **m)
{
    if (*m)
        nlmsg_free(*m);
}

struct nl_msg *netlink_message(uint16_t type, int flags, const void *header, size_t len)
{
    struct nl_msg *m = nlmsg_alloc_simple(type, flags);

    if (!m)
        abort();
    assert(nlmsg_append(m, (void *)(uintptr_t)header, len, NLMSG_ALIGNTO) == 0);
    return m;
}

void netlink_put(struct nl_msg *m, int attr, const void *data, size_t len)
{
    assert(nla_put(m, attr, (int)len, data) == 0);
}

void netlink_put_u8(struct nl_msg *m, int attr, uint8_t v)
{
    netlink_put(m, attr, &v, sizeof(v));
}

void netlink_put_u32(struct nl_msg *m, int attr, uint32_t v)
{
    netlink_put(m, attr, &v, sizeof(v));
}

void netlink_put_text(struct nl_msg *m, int attr, const char *s)
{
    netlink_put(m, attr, s, strlen(s) + 1);
}

struct nlattr *netlink_nest(struct nl_msg *m, int attr)
{
    struct nlattr *a = nla_nest_start(m, attr);

    assert(a);
    return a;
}

/* The text that the kernel put behind its error number (NLM_F_ACK_TLVS). */
static const char *kernel_text(struct nlmsghdr *h)
{
    struct nlmsgerr *e = nlmsg_data(h);
    size_t skip = sizeof(*e);
    struct nlattr *a;

    if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
        return NULL;
    if (!(h->nlmsg_flags & NLM_F_CAPPED))
        skip += e->msg.nlmsg_len - NLMSG_HDRLEN;
    if ((size_t)nlmsg_datalen(h) <= skip)
        return NULL;
    a = nla_find((struct nlattr *)((char *)e + NLMSG_ALIGN(skip)),
        nlmsg_datalen(h) - (int)NLMSG_ALIGN(skip), NLMSGERR_ATTR_MSG);
    if (!a || nla_len(a) < 1 || ((char *)nla_data(a))[nla_len(a) - 1] != '\0')
        return NULL;
    return nla_data(a);
}

static int answer_error(struct nlmsghdr *h, struct err *err)
{
    struct nlmsgerr *e = nlmsg_data(h);
    const char *text;

    if (nlmsg_datalen(h) < (int)sizeof(*e))
        return err_set(err, -EIO, "netlink: an answer too short");
    if (e->error == 0)
        return 0;
    text = kernel_text(h);
    if (text)
        return err_set(err, e->error, "%s (%s)", strerror(-e->error), text);
    return err_set(err, e->error, "%s", strerror(-e->error));
}

/* One datagram: 1 when more is to come. */
static int answer_part(
    unsigned char *data, int len, uint32_t seq, netlink_fn fn, void *arg, struct err *err)
{
    for (struct nlmsghdr *h = (struct nlmsghdr *)data; nlmsg_ok(h, len); h = nlmsg_next(h, &len)) {
        int r = 0;

        if (h->nlmsg_seq != seq)
            continue;
        if (h->nlmsg_type == NLMSG_DONE)
            return 0;
        if (h->nlmsg_type == NLMSG_ERROR)
            return answer_error(h, err);
        if (fn)
            r = fn(arg, h);
        if (r < 0)
            return r;
    }
    return 1;
}

int netlink_talk(struct netlink *nl, struct nl_msg *m, netlink_fn fn, void *arg, struct err *err)
{
    int r = nl_send_auto(nl->sock, m);
    uint32_t seq = nlmsg_hdr(m)->nlmsg_seq;

    if (r < 0)
        return err_set(err, -EIO, "cannot send to netlink: %s", nl_geterror(r));
    do {
        _cleanup_free_ unsigned char *data = NULL;
        struct sockaddr_nl from;

        r = nl_recv(nl->sock, &from, &data, NULL);
        if (r <= 0)
            return err_set(err, -EIO, "cannot read from netlink: %s", nl_geterror(r));
        r = answer_part(data, r, seq, fn, arg, err);
    } while (r == 1);
    return r;
}
