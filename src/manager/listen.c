/*
 * Listening, and the certificates on which it is done. Owns m->pki; the files of the site stay
 * theirs and are read again when they have changed.
 */
#include "manager/listen.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strv.h"
#include "manager/api.h"
#include "wire/join.h"

#define LOOK_USEC USEC_PER_SEC /* at the certificates */

bool address_is_loopback(const char *address)
{
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET, address, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_any(const char *host)
{
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET, host, &four) == 1)
        return four.s_addr == INADDR_ANY;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six);
}

int listen_parse(const char *text, char host[64], uint16_t *port, struct err *err)
{
    const char *colon = strrchr(text, ':');
    bool bracket = text[0] == '[' && colon && colon > text + 1 && colon[-1] == ']';
    const char *from = text + bracket;
    size_t len = colon ? (size_t)(colon - from) - bracket : 64;
    uint64_t n;

    if (len >= 64 || str_to_u64(colon + 1, 65535, &n) < 0)
        return err_set(err, -EINVAL, "'listen' must be HOST:PORT, not '%s'", text);
    memcpy(host, from, len);
    host[len] = '\0';
    *port = (uint16_t)n;
    return 0;
}

/* With TLS? Of texts that were parsed before. */
static bool wants_tls(const struct manager *m, const char *text)
{
    char host[64];
    uint16_t port;

    return !m->config.tls_off && listen_parse(text, host, &port, NULL) == 0 &&
        !address_is_loopback(host);
}

static bool any_tls(const struct manager *m)
{
    strv_for_each (s, m->config.listen)
        if (wants_tls(m, *s))
            return true;
    return false;
}

/* --- names -------------------------------------------------------------------------------- */

static char *own_host_name(void)
{
    char name[256] = "";

    gethostname(name, sizeof(name) - 1);
    return xstrdup(name[0] ? name : "localhost");
}

/* By which the certificate has to be good. */
static char **reached_by(const struct manager *m)
{
    _cleanup_free_ char *own = own_host_name();
    char **names = NULL, host[64];
    uint16_t port;

    strv_push(&names, JOIN_MANAGER_NAME);
    strv_push(&names, own);
    strv_for_each (s, m->config.listen)
        if (wants_tls(m, *s) && listen_parse(*s, host, &port, NULL) == 0 && !is_any(host) &&
            !strv_has(names, host))
            strv_push(&names, host);
    strv_for_each (s, m->config.tls_names)
        if (!strv_has(names, *s))
            strv_push(&names, *s);
    return names;
}

char **listen_urls(const struct manager *m)
{
    _cleanup_free_ char *own = own_host_name();
    char **urls = NULL, host[64];
    uint16_t port;

    strv_for_each (s, m->config.listen) {
        const char *name;
        if (!wants_tls(m, *s) || listen_parse(*s, host, &port, NULL) < 0)
            continue;
        name = !is_any(host) ? host : m->config.tls_names ? m->config.tls_names[0] : own;
        strv_pushf(&urls, strchr(name, ':') ? "https://[%s]:%u" : "https://%s:%u", name, port);
    }
    return urls;
}

/* --- certificates ------------------------------------------------------------------------- */

static int known_fingerprint(void *arg, const struct store_doc *doc)
{
    return str_copy(arg, CERT_FINGERPRINT_MAX, doc->name);
}

static int open_pki(struct manager *m, struct err *err)
{
    char known[CERT_FINGERPRINT_MAX] = "";
    int r = store_get(m->store, "cluster", "ca", known_fingerprint, known, err);

    if (r < 0 && r != -ENOENT)
        return r;
    r = pki_open(&m->pki, m->config.state_dir, known, m->cluster, clock_real_usec(), err);
    if (r < 0)
        return r;
    if (!known[0]) {
        store_put(m->store,
            &(struct store_doc){
                .kind = "cluster", .id = "ca", .name = m->pki.fingerprint, .body = "{}"});
        log_info("made the cluster's own authority %s in '%s'", m->pki.fingerprint, m->pki.folder);
    }
    return 0;
}

static void set_files(const struct manager *m, struct listen_opts *opts)
{
    bool site = m->config.tls_cert != NULL;

    opts->cert_path = site ? m->config.tls_cert : m->pki.server_path;
    opts->key_path = site ? m->config.tls_key : m->pki.server_path;
    opts->named.name = JOIN_MANAGER_NAME;
    opts->named.cert_path = opts->named.key_path = m->pki.server_path;
    opts->named.ca_path = m->pki.ca_path;
}

static int renew_server(struct manager *m, uint64_t now_usec, struct err *err)
{
    _cleanup_(strv_freep) char **names = reached_by(m);

    return pki_server(&m->pki, names, m->config.tls_lifetime_usec, now_usec, err);
}

/* Of the site's two files: another one when one of them was replaced. */
static uint64_t site_identity(const struct manager *m)
{
    const char *paths[] = {m->config.tls_cert, m->config.tls_key};
    uint64_t identity = 0;
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (paths[i] && stat(paths[i], &st) == 0)
            identity = identity * 31 + (uint64_t)st.st_mtim.tv_sec * 1000003 +
                (uint64_t)st.st_mtim.tv_nsec + st.st_ino;
    return identity;
}

void listen_tick(struct manager *m, uint64_t now_usec)
{
    uint64_t site = site_identity(m);
    struct listen_opts opts = {0};
    struct err err = ERR_INIT;
    int r = 0;

    if (!m->pki.ca || now_usec < m->tls_look_usec)
        return;
    m->tls_look_usec = now_usec + LOOK_USEC;
    if (cert_is_due(&m->pki.server, now_usec))
        r = renew_server(m, now_usec, &err);
    if (r == 0 && site == m->tls_site)
        return;
    set_files(m, &opts);
    if (r >= 0)
        r = server_renew_tls(m->net, &opts, &err);
    m->tls_site = site;
    if (r < 0) {
        log_err("certificates could not be renewed, the old ones stay: %s", err_text(&err));
        m->tls_look_usec = now_usec + 60 * LOOK_USEC;
    } else {
        log_info("certificates renewed; connections go on");
    }
}

/* --- listening ---------------------------------------------------------------------------- */

static int listen_one(struct manager *m, const char *text, struct err *err)
{
    char host[64];
    struct listen_opts opts = {.host = host, .fn = api_request, .arg = m};
    bool tls = wants_tls(m, text);
    int r = listen_parse(text, host, &opts.port, err);

    if (r < 0)
        return r;
    if (tls)
        set_files(m, &opts);
    r = server_listen(m->net, &opts, NULL, err);
    if (r < 0)
        return err_prefix(err, "cannot listen on %s", text);
    log_info("listening on %s://%s", tls ? "https" : "http", text);
    if (m->config.tls_off && !address_is_loopback(host))
        log_warning("'tls.off': what is said on %s can be read and changed by others", text);
    return 0;
}

int listen_start(struct manager *m, struct err *err)
{
    int r = 0;

    if (any_tls(m)) {
        r = open_pki(m, err);
        if (r == 0)
            r = renew_server(m, clock_real_usec(), err);
        m->tls_site = site_identity(m);
    }
    for (char **s = m->config.listen; r >= 0 && *s; s++)
        r = listen_one(m, *s, err);
    return r < 0 ? r : 0;
}
