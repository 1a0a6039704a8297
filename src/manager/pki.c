/* The authority's files and what is signed with them. */
#include "manager/pki.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "base/str.h"
#include "base/strv.h"
#include "wire/join.h"

#define AUTHORITY_USEC (UINT64_C(25) * 365 * 86400 * 1000000)

static void set_folder(struct pki *p, const char *state_dir)
{
    *p = (struct pki){.folder = xasprintf("%s/tls", state_dir)};
    p->ca_path = xasprintf("%s/ca.crt", p->folder);
    p->server_path = xasprintf("%s/server.pem", p->folder);
}

void pki_done(struct pki *p)
{
    free(p->folder);
    free(p->ca_path);
    free(p->server_path);
    free(p->ca);
    free(p->ca_key);
    *p = (struct pki){0};
}

static char *key_path(const struct pki *p)
{
    return xasprintf("%s/ca.key", p->folder);
}

static int read_key(struct pki *p, struct err *err)
{
    _cleanup_free_ char *path = key_path(p);
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys(err, -errno,
            "the authority's certificate '%s' is there, but its key is not; put back 'ca.key' from "
            "the backup, or see 'musterd --new-ca'",
            p->ca_path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, -EPERM,
            "'%s' is the authority's key and others have rights on it (mode %03o); run: chmod 600 "
            "%s",
            path, (unsigned)st.st_mode & 0777, path);
    return fs_read(path, CERT_PEM_MAX, &p->ca_key, NULL, err);
}

static int read_authority(struct pki *p, struct err *err)
{
    struct cert_info info;
    int r = read_key(p, err);

    if (r == 0)
        r = fs_read(p->ca_path, CERT_PEM_MAX, &p->ca, NULL, err);
    if (r == 0)
        r = cert_read(p->ca, &info, err);
    if (r == 0 && !info.is_authority)
        r = err_set(err, -EINVAL, "it is no certificate of an authority");
    if (r < 0)
        return err_prefix(err, "'%s'", p->ca_path);
    STR_SET(p->fingerprint, info.fingerprint);
    return 0;
}

/* The key first: a certificate without one is what a damaged folder looks like. */
static int make_authority(struct pki *p, const char *cluster, uint64_t now_usec, struct err *err)
{
    _cleanup_free_ char *name = xasprintf("Muster %s", cluster), *path = key_path(p);
    _cleanup_free_ char *key = NULL, *cert = NULL;
    struct cert_order order = {.use = CERT_AUTHORITY,
        .name = name,
        .from_usec = now_usec - CERT_BACKDATE_USEC,
        .until_usec = now_usec + AUTHORITY_USEC};
    int r = cert_key_new(&key, err);

    if (r == 0)
        r = cert_authority_new(key, &order, &cert, err);
    if (r == 0)
        r = fs_mkdir_p(p->folder, 0700, err);
    if (r == 0)
        r = fs_write_atomic(path, key, strlen(key), 0600, err);
    if (r == 0)
        r = fs_write_atomic(p->ca_path, cert, strlen(cert), 0644, err);
    return r < 0 ? r : read_authority(p, err);
}

static int open_folder(
    struct pki *p, const char *known, const char *cluster, uint64_t now_usec, struct err *err)
{
    bool there = fs_exists(p->ca_path);
    int r;

    if (!there && known[0])
        return err_set(err, -ENOENT,
            "'%s' is not there, but nodes know this cluster by it; put back the folder from the "
            "backup, or see 'musterd --new-ca'",
            p->ca_path);
    r = there ? read_authority(p, err) : make_authority(p, cluster, now_usec, err);
    if (r == 0 && known[0] && !str_eq(known, p->fingerprint))
        return err_set(err, -EPERM,
            "'%s' is another authority than the one by which nodes know this cluster (%.15s...); "
            "put that back, or see 'musterd --new-ca'",
            p->ca_path, known);
    return r;
}

int pki_open(struct pki *p, const char *state_dir, const char *known, const char *cluster,
    uint64_t now_usec, struct err *err)
{
    int r;

    set_folder(p, state_dir);
    r = open_folder(p, known, cluster, now_usec, err);
    if (r < 0)
        pki_done(p);
    return r;
}

int pki_replace(
    struct pki *p, const char *state_dir, const char *cluster, uint64_t now_usec, struct err *err)
{
    int r;

    set_folder(p, state_dir);
    if (unlink(p->server_path) < 0 && errno != ENOENT)
        r = err_sys(err, -errno, "cannot remove '%s'", p->server_path);
    else
        r = make_authority(p, cluster, now_usec, err);
    if (r < 0)
        pki_done(p);
    return r;
}

/* --- signing ------------------------------------------------------------------------------ */

/* Times of a certificate that is made now. */
static void set_times(struct cert_order *o, uint64_t lifetime_usec, uint64_t now_usec)
{
    o->from_usec = now_usec - CERT_BACKDATE_USEC;
    o->until_usec = now_usec + lifetime_usec;
}

/* One that lasts longer than it would now was made before that was configured. */
static bool is_good(const struct pki *p, const char *text, char *const *reached_by,
    uint64_t lifetime_usec, uint64_t now_usec, struct cert_info *ret)
{
    _cleanup_free_ char *authority = NULL;

    if (cert_read(text, ret, NULL) < 0 || cert_is_due(ret, now_usec) ||
        ret->until_usec > now_usec + lifetime_usec ||
        cert_find(text, p->fingerprint, &authority, NULL) < 0)
        return false;
    strv_for_each (name, reached_by)
        if (!cert_is_for(text, *name))
            return false;
    return true;
}

static int make_server(struct pki *p, char *const *reached_by, uint64_t lifetime_usec,
    uint64_t now_usec, struct err *err)
{
    _cleanup_free_ char *key = NULL, *request = NULL, *cert = NULL, *all = NULL;
    struct cert_order order = {.use = CERT_SERVER,
        .name = JOIN_MANAGER_NAME,
        .role = JOIN_ROLE_MANAGER,
        .reached_by = reached_by};
    int r = cert_key_new(&key, err);

    set_times(&order, lifetime_usec, now_usec);
    if (r == 0)
        r = cert_request_new(key, &request, err);
    if (r == 0)
        r = cert_sign(p->ca, p->ca_key, request, &order, &cert, err);
    if (r == 0)
        r = cert_read(cert, &p->server, err);
    if (r < 0)
        return err_prefix(err, "the manager's certificate");
    all = xasprintf("%s%s%s", key, cert, p->ca);
    return fs_write_atomic(p->server_path, all, strlen(all), 0600, err);
}

int pki_server(struct pki *p, char *const *reached_by, uint64_t lifetime_usec, uint64_t now_usec,
    struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int r;

    if (fs_read(p->server_path, CERT_PEM_MAX, &text, NULL, NULL) == 0 &&
        is_good(p, text, reached_by, lifetime_usec, now_usec, &p->server))
        return 0;
    r = make_server(p, reached_by, lifetime_usec, now_usec, err);
    return r < 0 ? r : 1;
}

int pki_node(const struct pki *p, const char *request, const char *node, const char *mark,
    uint64_t lifetime_usec, uint64_t now_usec, char **ret, uint64_t *ret_until, struct err *err)
{
    _cleanup_free_ char *cert = NULL;
    struct cert_order order = {
        .use = CERT_CLIENT, .name = node, .role = JOIN_ROLE_NODE, .mark = mark};
    int r;

    set_times(&order, lifetime_usec, now_usec);
    r = cert_sign(p->ca, p->ca_key, request, &order, &cert, err);
    if (r < 0)
        return r;
    *ret = xasprintf("%s%s", cert, p->ca);
    *ret_until = order.until_usec;
    return 0;
}
