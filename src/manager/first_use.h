/*
 * Images that nobody has imported yet: a session may name one of a registry, and waits without
 * holding anything until it is here.
 */
#ifndef MANAGER_FIRST_USE_H
#define MANAGER_FIRST_USE_H

#include "manager/manager.h"

/* The session runs this image: what only the image tells is checked and set. */
int first_use_take(struct session *s, const struct image *i, struct err *err);
/* May the image it names, which is not here, be imported for it? Then what can be checked is.
 * -ENOENT with what to do instead. */
int first_use_check(const struct manager *m, struct session *s, struct err *err);
/* It was accepted and waits for its image. */
bool first_use_waits(const struct session *s);
/* It was accepted: its image is imported now, or noted as used. */
void first_use_begin(struct manager *m, struct session *s);
/* After a start: of all that wait. */
void first_use_resume(struct manager *m);
/* An import has ended; error NULL: the image is here. */
void first_use_done(struct manager *m, const char *name, const char *error);
/* What a waiting one waits for. */
void first_use_reason(const struct manager *m, const struct session *s, char *text, size_t size);

#endif
