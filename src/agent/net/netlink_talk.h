/* One request and its answer: shared by the netlink files only. */
#ifndef AGENT_NET_NETLINK_TALK_H
#define AGENT_NET_NETLINK_TALK_H

#include <netlink/msg.h>

#include "agent/net/netlink.h"

void nl_msg_freep(struct nl_msg **m); /* for _cleanup_(nl_msg_freep) */

/* A message whose family header (ifinfomsg, ...) is set. Attributes are a handful of small ones:
 * they always fit, so putting them asserts. */
struct nl_msg *netlink_message(uint16_t type, int flags, const void *header, size_t len);
void netlink_put(struct nl_msg *m, int attr, const void *data, size_t len);
void netlink_put_u8(struct nl_msg *m, int attr, uint8_t v);
void netlink_put_u32(struct nl_msg *m, int attr, uint32_t v);
void netlink_put_text(struct nl_msg *m, int attr, const char *s);
struct nlattr *netlink_nest(struct nl_msg *m, int attr);

/* Called for each message of an answer; a negative result ends the dump with it. */
typedef int (*netlink_fn)(void *arg, struct nlmsghdr *h);

/* Send, and read until the acknowledgement or the end of the dump. 0, the kernel's errno with its
 * explanation as text, or what fn returned. The message stays the caller's. */
int netlink_talk(struct netlink *nl, struct nl_msg *m, netlink_fn fn, void *arg, struct err *err);

#endif
