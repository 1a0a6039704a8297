/* Sessions that wait for others. */
#ifndef MANAGER_DEPENDS_H
#define MANAGER_DEPENDS_H

#include "manager/manager.h"

/* Of a new session: all that it names are there, and its owner may see them. -ENOENT. */
int depends_check(
    struct manager *m, const struct user *u, const struct session *s, struct err *err);
/* A session has ended: who waits is looked at once the store has it. */
void depends_ended(struct manager *m);
/* Something has begun or ended: who waits is looked at again. A session that can never start ends.
 * At the end of the turn's other work: sessions may be gone afterwards. */
void depends_look(struct manager *m);
/* One that is new, or has just been loaded: does it wait for others? */
void depends_note(struct manager *m, struct session *s);

#endif
