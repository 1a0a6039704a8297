/* Streams between people and containers: exec, logs, TCP. See gateway.c. */
#ifndef MANAGER_GATEWAY_H
#define MANAGER_GATEWAY_H

#include "manager/manager.h"

/* Streams whose agent does not come. */
void gateway_tick(struct manager *m, uint64_t now_usec);
/* Close what the node's agent has open. */
void gateway_drop_node(struct manager *m, const char *node, const char *why);

#endif
