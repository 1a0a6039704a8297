/* Reads the last sessions that ended, oldest first, so that newer ones win. Keeps nothing itself.
 */
#include "manager/history.h"

#include "base/json.h"
#include "wire/session.h"

/* The last ones say enough, and a start must not take long. */
#define SESSIONS_READ 2000

struct reading {
    struct session *list[SESSIONS_READ]; /* newest first */
    size_t count;
};

/* One that cannot be read teaches nothing. */
static int read_one(void *arg, const struct store_doc *doc)
{
    struct reading *r = arg;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct session *s = NULL;

    if (r->count < SESSIONS_READ &&
        json_parse(doc->body, strlen(doc->body), SIZE_MAX, &body, NULL) == 0 &&
        session_from_json_stored(body, &s, NULL) == 0)
        r->list[r->count++] = s;
    return 0;
}

int history_load(struct manager *m, struct err *err)
{
    struct store_filter ended = {.kind = "session", .state = "ended", .limit = SESSIONS_READ};
    _cleanup_free_ struct reading *reading = xnew(struct reading);
    int r = store_list(m->store, &ended, read_one, reading, err);

    while (reading->count-- > 0) {
        struct session *s = reading->list[reading->count];
        estimator_learn(&m->estimator, s);
        session_free(s);
    }
    return r;
}
