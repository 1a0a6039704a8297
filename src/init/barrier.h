/*
 * The barrier: a file "go" whose appearance in a folder starts the command. The folder is the
 * agent's, mounted read-only here, so nobody inside can open it.
 */
#ifndef INIT_BARRIER_H
#define INIT_BARRIER_H

#include <stdbool.h>

struct barrier {
    const char *path; /* of the file; borrowed */
    int fd;           /* inotify; poll it for reading. -1 when there is no watch */
};

/*
 * Without a watch (inotify instances are counted per user and can run out) the caller asks
 * barrier_is_open() now and then instead; that is not an error.
 */
void barrier_init(struct barrier *barrier, const char *dir, const char *path);
void barrier_done(struct barrier *barrier);

/* Also drains the watch. Watch first, ask then: nothing is missed. */
bool barrier_is_open(struct barrier *barrier);

#endif
