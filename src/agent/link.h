/* The agent's connection to a manager: hello, orders in, reports out, coming back after a break. */
#ifndef AGENT_LINK_H
#define AGENT_LINK_H

#include "agent/agent.h"
#include "wire/link.h"

/* What the last manager said of addresses, before the network is set up: sessions that stand need
 * it also while no manager can be reached. */
void link_recall(struct agent *ag);
void link_start(struct agent *ag);
void link_stop(struct agent *ag);
/* Dropped when there is no connection: the next hello tells all. */
void link_report(struct agent *ag, const struct report *r);
void link_session_removed(struct agent *ag, const char *session, uint32_t attempt);
void link_tick(struct agent *ag, uint64_t now_usec);

/* stream.c: dial for a stream that the manager asked for. order is copied. */
void stream_open(struct agent *ag, const struct link_stream *order);
/* The manager's address in use. */
const char *link_manager(const struct agent *ag);
/* Dial a path of it, as this node. */
int link_connect(struct agent *ag, const char *path, const struct ws_events *events, void *arg,
    struct ws **ret, struct err *err);

#endif
