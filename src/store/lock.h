/* One manager a file: an exclusive lock that dies with the process that holds it. */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "base/err.h"

/*
 * Lock "PATH.lock" (made if it is not there, mode 0600, never removed: removing would race with the
 * next one's open) with flock(2), and write our pid into it. The caller closes the descriptor to
 * unlock. -EBUSY "another manager has 'PATH' open (pid N)".
 */
int lock_take(const char *path, int *ret_fd, struct err *err);

#endif
