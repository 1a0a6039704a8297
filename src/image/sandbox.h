/* Giving up rights, for what reads the work of strangers. There is no way back. */
#ifndef IMAGE_SANDBOX_H
#define IMAGE_SANDBOX_H

#include "base/err.h"

enum sandbox {
    SANDBOX_NETWORK, /* no privileges; files that everybody may read, and the network */
    SANDBOX_OFFLINE, /* the same without the network; programs may be run */
    SANDBOX_ALONE,   /* nor any file that is not open already, nor the network, nor programs */
};

struct sandbox_limits {
    uint64_t file_bytes, memory_bytes;
};

#define SANDBOX_USER 65534 /* nobody */

/* Becomes nobody if it is root; sets limits and the filter of system calls. */
int sandbox_enter(enum sandbox kind, const struct sandbox_limits *limits, struct err *err);

/* Runs fn in a process of its own (SANDBOX_NETWORK or SANDBOX_OFFLINE), in a new folder that is all
 * it can write to and is its working directory. Blocks; err is what fn said. */
int sandbox_run(enum sandbox kind, const char *folder, const struct sandbox_limits *limits,
    int (*fn)(void *arg, struct err *err), void *arg, struct err *err);

#endif
