/*
 * A temporary folder that does not outlive its owner: PARENT/import.XXXXXX, locked (flock(2)) as
 * long as the process lives. Whoever makes or removes one in the same parent removes those whose
 * owner is gone, too (a worker of a killed one may live a moment longer, so both); owners that live
 * are left alone.
 */
#ifndef IMAGE_SCRATCH_H
#define IMAGE_SCRATCH_H

#include "base/err.h"

struct scratch {
    char *path; /* NULL: none */
    int lock;
};

/* Makes parent, too. */
int scratch_make(const char *parent, struct scratch *ret, struct err *err);
/* Removes it. */
void scratch_done(struct scratch *s);

#endif
