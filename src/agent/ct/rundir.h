/*
 * The agent's run directory: what is only true until the next reboot. In memory, like /run: a start
 * makes some dozens of small files, each of which is a millisecond on a disk.
 */
#ifndef AGENT_CT_RUNDIR_H
#define AGENT_CT_RUNDIR_H

#include "base/err.h"

/* Make it, and mount a tmpfs there if it is on anything else; not over one in use, of an agent that
 * did not do so. */
int rundir_make(const char *path, struct err *err);
/* Nothing is mounted below it any more. Unmount what rundir_make mounted, and remove it. */
int rundir_remove(const char *path, struct err *err);

#endif
