/*
 * Between memory and store: loading at start, saving after a change, finding by what people type.
 */
#ifndef MANAGER_STATE_H
#define MANAGER_STATE_H

#include "manager/manager.h"

/* Read everything; make what a first start needs (cluster id, group "default", user "admin" with
 * STATE/admin.token, STATE/agent.token). Raises the epoch. */
int state_load(struct manager *m, struct err *err);
void state_done(struct manager *m);

/* A live session is m's from now on; or it is not any more. */
void session_add(struct manager *m, struct session *s);
void session_forget(struct manager *m, struct session *s);
struct session *session_by_num(const struct manager *m, uint64_t num); /* live; NULL */
/* Stage a document with this body, which is taken. */
void doc_put(struct manager *m, struct store_doc doc, json_t *body);
/* Stage the document, and an event that says what changed ("session.running", "node.up", ...). */
void session_save(struct manager *m, const struct session *s);
void node_save(struct manager *m, const struct mnode *n, const char *event);
/* Stage the removal, and free; nothing may be on it. */
void node_forget(struct manager *m, struct mnode *n);
void group_save(struct manager *m, const struct group *g);
void user_save(struct manager *m, const struct user *u);
void volume_save(struct manager *m, const struct volume *v);
/* event: "image.imported", ...; NULL: none. */
void image_save(struct manager *m, const struct image *i, const char *event);
void setting_save(struct manager *m, const char *id, json_t *body); /* taken */
/* Stage the removal, and free. */
void volume_forget(struct manager *m, struct volume *v);
void image_forget(struct manager *m, struct image *i);

/* A new token for the user (or an agent), saved by its hash; text is shown once. */
#define TOKEN_TEXT_MAX 64
void token_issue(struct manager *m, const char *user, bool agent, char text[TOKEN_TEXT_MAX]);

/* May the user see what is this owner's by name? Their own, an admin everybody's. */
bool user_may_see(const struct user *viewer, const char *owner);
/*
 * The session a person means. Live ones are borrowed; an ended one is read from the store and owned
 * by *ret_loaded (else NULL). viewer sees their own, an admin everybody's. -ENOENT, or -ENOTUNIQ
 * when an id prefix or a name fits several that live.
 */
int session_find(struct manager *m, const struct user *viewer, const char *ref,
    struct session **ret, struct session **ret_loaded, struct err *err);

/* The session of that number, if it has ended; to be freed. NULL: there is none. */
struct session *session_load_num(struct manager *m, uint64_t num);
/* Idempotency keys are kept for a day. */
void requests_forget_old(struct manager *m, uint64_t now_usec);

struct volume *volume_find(struct manager *m, const char *owner, const char *name);
/* Absolute path of a volume's folder. Heap. */
char *volume_path(const struct manager *m, const struct volume *v);

#endif
