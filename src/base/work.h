/*
 * Blocking work off the loop: run() in a libuv worker thread on a copy of what it needs, done() on
 * the loop thread with the result. No locks: arg belongs to the worker between the two.
 */
#ifndef BASE_WORK_H
#define BASE_WORK_H

#include <uv.h>

#include "base/err.h"

typedef int (*work_run_fn)(void *arg, struct err *err);
typedef void (*work_done_fn)(void *arg, int result, const struct err *err);

/* done gets run's result and error text. Never fails; on loop shutdown pending work is finished. */
void work_start(uv_loop_t *loop, work_run_fn run, work_done_fn done, void *arg);

#endif
