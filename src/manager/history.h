/* What sessions that have ended took: read once at the start, for estimates. */
#ifndef MANAGER_HISTORY_H
#define MANAGER_HISTORY_H

#include "manager/manager.h"

int history_load(struct manager *m, struct err *err);

#endif
