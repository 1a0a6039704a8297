/* What happened, told to those who listen: event streams and requests that wait. */
#ifndef MANAGER_EVENTS_H
#define MANAGER_EVENTS_H

#include "manager/manager.h"

/* The store's on_commit. arg is the manager. */
void events_committed(void *arg, uint64_t revision, const struct store_event *events, size_t count);
void events_tick(struct manager *m, uint64_t now_usec);

#endif
