/*
 * Paths of a container's files. Only ids that were checked become names; everything else in a path
 * is a constant or comes from the agent's own configuration, whose length struct rootfs_dirs
 * bounds.
 */
#include "agent/ct/paths.h"

static char *join(
    char path[CT_PATH_MAX], const char *dir, const char *mid, const char *id, const char *rest)
{
    int n = snprintf(path, CT_PATH_MAX, "%s%s%s%s%s", dir, mid, id, *rest ? "/" : "", rest);

    assert(n > 0 && n < CT_PATH_MAX);
    return path;
}

char *ct_run_path(
    const struct rootfs_dirs *d, const char *id, const char *rest, char path[CT_PATH_MAX])
{
    return join(path, d->run, "/ct/", id, rest);
}

char *ct_state_path(
    const struct rootfs_dirs *d, const char *id, const char *rest, char path[CT_PATH_MAX])
{
    return join(path, d->state, "/ct/", id, rest);
}

char *ct_path(const char *dir, const char *rest, char path[CT_PATH_MAX])
{
    return join(path, dir, "", "", rest);
}

int ct_check_id(const char *what, const char *text, struct err *err)
{
    if (uuid_is_valid(text))
        return 0;
    return err_set(err, -EINVAL, "the %s's id is not a UUID", what);
}

const char *ct_digest_hex(const char *digest)
{
    const char *hex = digest + strlen("sha256:");

    if (!str_starts(digest, "sha256:"))
        return NULL;
    return strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64 ? hex : NULL;
}
