/* A point in time as people write it. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include "base/err.h"

/*
 * "2h30m" (from now), "18:00" (today, or tomorrow when that is past), "2026-12-24",
 * "2026-12-24T18:00[:00]" (local), or RFC 3339 with its zone. -EINVAL with a text that shows the
 * forms.
 */
int moment_parse(const char *text, uint64_t now_usec, uint64_t *ret_usec, struct err *err);

#endif
