/*
 * Who we are at a registry: the "auths" of Docker's config.json (also what podman and skopeo
 * write), and the entry for one repository. Pure. Nothing of it is ever printed but the user's name
 * and where it is from.
 */
#ifndef IMAGE_CREDENTIALS_H
#define IMAGE_CREDENTIALS_H

#include "base/json.h"

#define CREDENTIALS_MAX_BYTES ((size_t)256 * 1024)

struct credentials {
    char *user, *password; /* NULL: none */
    char *token;           /* "registrytoken": used as it is */
    char *from;            /* for people: "a secret of alice", a file's path */
};

/* It has the form: {"auths": {"HOST[:PORT][/PATH]": {"auth": BASE64} | {"username", "password"} |
 * {"registrytoken"}}}. -EINVAL with the entry's name. */
int credentials_check(const json_t *doc, struct err *err);
/* The most specific entry for HOST/NAME; docker.io's is also found by its old names. "from" of an
 * entry (ours, not Docker's) or else from. -ENOENT. doc NULL: none. */
int credentials_find(const json_t *doc, const char *from, const char *host, const char *name,
    struct credentials *ret);
/* One entry of "auths", and the registry that its key means ("docker.io"; heap). -EINVAL. */
int credentials_read(
    const char *key, const json_t *entry, char **ret_registry, struct credentials *ret);
void credentials_done(struct credentials *c);

#endif
