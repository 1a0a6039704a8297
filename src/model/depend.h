/*
 * What a session waits for: other sessions, by number. The words are Slurm's (sbatch(1),
 * --dependency): after (it has begun), afterok, afternotok, afterany (it has ended so), and
 * singleton (no earlier session of the same name and owner is there).
 */
#ifndef MODEL_DEPEND_H
#define MODEL_DEPEND_H

#include "model/session.h"

#define DEPENDS_MAX 64

enum depend_kind { DEPEND_AFTER, DEPEND_OK, DEPEND_NOT_OK, DEPEND_ANY, DEPEND_SINGLETON };

struct depend {
    enum depend_kind kind;
    uint64_t num; /* 0 for singleton */
};

enum depend_state { DEPEND_WAITS, DEPEND_MET, DEPEND_NEVER };

/* "afterok:12", "singleton". -EINVAL with the forms. */
int depend_parse(const char *text, struct depend *ret, struct err *err);
/* Of one that names a session; other: as it is now, NULL: there is none any more. */
enum depend_state depend_state(const struct depend *d, const struct session *other);

#endif
