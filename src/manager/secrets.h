/*
 * Credentials for registries, of a user or of the cluster. They leave the manager only through the
 * descriptor of an import worker; no answer, log line or event holds a password.
 */
#ifndef MANAGER_SECRETS_H
#define MANAGER_SECRETS_H

#include "base/json.h"
#include "manager/manager.h"

#define SECRET_TEXT_MAX 4096 /* of a password */

struct secret {
    char owner[NAME_MAX_LEN + 1]; /* "": the cluster's */
    char registry[IMAGE_REF_MAX + 1];
    char user[256];
    char *password;
    uint64_t created_usec;
};

/* Sets or replaces, and stages. -EINVAL. */
int secret_put(struct manager *m, const char *owner, const char *registry, const char *user,
    const char *password, struct err *err);
/* -ENOENT */
int secret_forget(struct manager *m, const char *owner, const char *registry, struct err *err);
int secret_load(struct manager *m, const json_t *body, struct err *err);
void secret_free(void *secret);

/* The cluster's and the user's, as credentials.h reads them; the user's win. NULL: none. */
json_t *secrets_auths(const struct manager *m, const char *user);

#endif
