/* Paths as text. Nothing is looked up: whether links lie in the way is the agent's to care. */
#ifndef MODEL_PATH_H
#define MODEL_PATH_H

#include "base/err.h"

/* Absolute; no empty, "." or ".." part; no slash at the end (but "/"); no control characters. */
bool path_is_clean(const char *path);
/* -EINVAL with the rule and the path, when it is not clean; what: "'workdir'". */
int path_check(const char *what, const char *path, struct err *err);
/* One is the other, or lies below it. Both clean. */
bool path_overlaps(const char *a, const char *b);

#endif
