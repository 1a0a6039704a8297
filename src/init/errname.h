/*
 * Names of error numbers ("ENOENT"), the stable word that others can match on. strerrorname_np is
 * glibc's only.
 */
#ifndef INIT_ERRNAME_H
#define INIT_ERRNAME_H

/* Never NULL; "EUNKNOWN" for a number without a name here. */
const char *errname(int error);

#endif
