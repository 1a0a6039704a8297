/*
 * Named crash points. A build with -Dcrash_points=true reads MUSTER_CRASH at start:
 * "place.after_commit=kill", "container.after_mount=delay:10s", "net.after_link=fail", several
 * separated by commas, each optionally "@N" for the Nth time the point is passed (default 1) or
 * "@*" for every time. In other builds the calls cost nothing.
 *
 * Every point stands in crash_points.h, and a lint compares the table with the code and the tests:
 * a point without a test fails.
 */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#include "base/err.h"

#ifdef MUSTER_CRASH_POINTS
/* kill: raise SIGKILL. delay: sleep this thread. fail: -EIO with the point's name. */
int crash_point(const char *name, struct err *err);
#else
static inline int crash_point(const char *name, struct err *err)
{
    (void)name;
    (void)err;
    return 0;
}
#endif

#endif
