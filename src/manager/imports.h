/*
 * Imports: one worker process (muster-import) for each, however many people and sessions ask for
 * the same image meanwhile; all of them see its progress, and so does the stream of events.
 */
#ifndef MANAGER_IMPORTS_H
#define MANAGER_IMPORTS_H

#include "manager/api.h"

/*
 * Import ref under the name (image_ref_normal), or join in when that is under way. user: whose
 * secrets are used beside the cluster's. c: the call that gets the lines as they come (it is
 * ended); NULL: nobody waits for an answer.
 */
void import_ref(
    struct manager *m, const char *name, const char *ref, const char *user, struct call *c);
/* Import the request's body. On failure the call is still there. */
int import_upload(struct manager *m, const char *name, struct call *c, struct err *err);
/* What an import of that name is doing; false: there is none. */
bool import_status(const struct manager *m, const char *name, char *text, size_t size);

/* api_image.c: as the API shows it; a session that uses it, or NULL. */
json_t *image_json(const struct manager *m, const struct image *i);
const struct session *image_user(struct manager *m, const struct image *i);

#endif
