/* What runtime.c and state.c share. Internal to this folder. */
#ifndef AGENT_CT_STATE_H
#define AGENT_CT_STATE_H

#include "agent/ct/runtime.h"

/* The runtime has a folder for it. */
bool state_exists(const struct runtime *rt, const char *id);
/* Write down pid and start time of init, so that a later agent can tell it from another process. */
int state_write_init(const struct runtime *rt, const char *id, pid_t pid, struct err *err);
/* init's pid if that process lives, else 0. */
pid_t state_init(const struct runtime *rt, const char *id, uint64_t *ret_start);

#endif
