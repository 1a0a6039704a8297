/*
 * TLS settings for libwebsockets. OpenSSL contexts are made here for clients, and made once to be
 * thrown away for servers: libwebsockets makes its own from the same files, but cannot say what is
 * wrong with them.
 */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "base/str.h"
#include "net/lws_protocols.h"

struct tls_vhost {
    struct list link;
    char *key; /* host and the identity of the files */
    SSL_CTX *ctx;
    struct lws_vhost *vhost;
};

static void ctx_freep(SSL_CTX **ctx)
{
    SSL_CTX_free(*ctx);
}

static int openssl_failed(struct err *err, const char *what, const char *path)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    err_set(err, -EINVAL, "%s '%s': %s", what, path, reason ? reason : "not usable");
    ERR_clear_error();
    return -EINVAL;
}

static int check_readable(const char *what, const char *path, struct err *err)
{
    if (access(path, R_OK) < 0)
        return err_sys(err, -errno, "%s '%s'", what, path);
    return 0;
}

static int use_cert(SSL_CTX *ctx, const char *cert_path, const char *key_path, struct err *err)
{
    int r;

    if (!cert_path || !key_path)
        return err_set(err, -EINVAL, "a TLS certificate needs its key, and a key its certificate");
    r = check_readable("TLS certificate", cert_path, err);
    if (r < 0)
        return r;
    r = check_readable("TLS key", key_path, err);
    if (r < 0)
        return r;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ctx, cert_path) != 1)
        return openssl_failed(err, "TLS certificate", cert_path);
    if (SSL_CTX_use_PrivateKey_file(ctx, key_path, SSL_FILETYPE_PEM) != 1)
        return openssl_failed(err, "TLS key", key_path);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return openssl_failed(err, "TLS key", key_path);
    return 0;
}

static int use_ca(SSL_CTX *ctx, const char *ca_path, struct err *err)
{
    int r;

    if (!ca_path) {
        SSL_CTX_set_default_verify_paths(ctx);
        return 0;
    }
    r = check_readable("TLS authority", ca_path, err);
    if (r < 0)
        return r;
    ERR_clear_error();
    if (SSL_CTX_load_verify_locations(ctx, ca_path, NULL) != 1)
        return openssl_failed(err, "TLS authority", ca_path);
    return 0;
}

static int check_server_files(
    const char *cert_path, const char *key_path, const char *ca_path, struct err *err)
{
    _cleanup_(ctx_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    int r;

    if (!ctx)
        return err_set(err, -ENOMEM, "OpenSSL cannot make a context");
    r = use_cert(ctx, cert_path, key_path, err);
    if (r < 0 || !ca_path)
        return r;
    return use_ca(ctx, ca_path, err);
}

int tls_server_vhost(struct net *net, const char *cert_path, const char *key_path,
    const char *ca_path, struct lws_vhost **ret, struct err *err)
{
    struct lws_context_creation_info info = {0};
    struct lws_context *context;
    int r;

    r = check_server_files(cert_path, key_path, ca_path, err);
    if (r < 0)
        return r;
    r = net_context(net, NET_TLS, &context, err);
    if (r < 0)
        return r;
    /* The second option keeps libwebsockets from making a client context with the system's
     * certificates, which costs milliseconds and megabytes. */
    info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT |
        LWS_SERVER_OPTION_ADOPT_APPLY_LISTEN_ACCEPT_CONFIG;
    if (ca_path)
        info.options |= LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT |
            LWS_SERVER_OPTION_PEER_CERT_NOT_REQUIRED;
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.vhost_name = "tls";
    info.protocols = NET_PROTOCOLS;
    info.http_proxy_address = "";
    info.alpn = "http/1.1";
    info.ssl_cert_filepath = cert_path;
    info.ssl_private_key_filepath = key_path;
    info.ssl_ca_filepath = ca_path;
    *ret = lws_create_vhost(context, &info);
    if (!*ret)
        return err_set(
            err, -EINVAL, "libwebsockets cannot use the TLS certificate '%s'", cert_path);
    return 0;
}

static int make_client_ctx(const char *host, const char *ca_path, const char *cert_path,
    const char *key_path, SSL_CTX **ret, struct err *err)
{
    _cleanup_(ctx_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    X509_VERIFY_PARAM *param;
    int r;

    if (!ctx)
        return err_set(err, -ENOMEM, "OpenSSL cannot make a context");
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    r = use_ca(ctx, ca_path, err);
    if (r == 0 && (cert_path || key_path))
        r = use_cert(ctx, cert_path, key_path, err);
    if (r < 0)
        return r;
    param = SSL_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) != 1 &&
        X509_VERIFY_PARAM_set1_host(param, host, strlen(host)) != 1)
        return err_set(err, -EINVAL, "'%s' is no host that a certificate can name", host);
    ERR_clear_error();
    *ret = TAKE_PTR(ctx);
    return 0;
}

/* A file that was replaced has another identity. */
static char *file_identity(const char *path)
{
    struct stat st;

    if (!path || stat(path, &st) < 0)
        return xstrdup("-");
    return xasprintf("%s %ju %ju %jd.%09ld", path, (uintmax_t)st.st_ino, (uintmax_t)st.st_size,
        (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static char *vhost_key(
    const char *host, const char *ca_path, const char *cert_path, const char *key_path)
{
    _cleanup_free_ char *ca = file_identity(ca_path);
    _cleanup_free_ char *cert = file_identity(cert_path);
    _cleanup_free_ char *key = file_identity(key_path);

    return xasprintf("%s\n%s\n%s\n%s", host, ca, cert, key);
}

static struct tls_vhost *find_vhost(struct net *net, const char *key)
{
    list_for_each (it, &net->vhosts) {
        struct tls_vhost *v = LIST_ENTRY(it, struct tls_vhost, link);

        if (str_eq(v->key, key))
            return v;
    }
    return NULL;
}

static void tls_vhost_free(struct tls_vhost *v)
{
    SSL_CTX_free(v->ctx);
    free(v->key);
    free(v);
}

static struct lws_vhost *make_client_vhost(struct lws_context *context, SSL_CTX *ctx)
{
    struct lws_context_creation_info info = {0};

    info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.vhost_name = "client";
    info.protocols = NET_PROTOCOLS;
    info.http_proxy_address = "";
    info.provided_client_ssl_ctx = ctx;
    return lws_create_vhost(context, &info);
}

int tls_client_vhost(struct net *net, const char *host, const char *ca_path, const char *cert_path,
    const char *key_path, struct lws_vhost **ret, struct err *err)
{
    _cleanup_free_ char *key = vhost_key(host, ca_path, cert_path, key_path);
    struct tls_vhost *v = find_vhost(net, key);
    struct lws_context *context;
    SSL_CTX *ctx = NULL;
    int r;

    if (!v) {
        r = net_context(net, NET_TLS, &context, err);
        if (r < 0)
            return r;
        r = make_client_ctx(host, ca_path, cert_path, key_path, &ctx, err);
        if (r < 0)
            return r;
        v = xnew(struct tls_vhost);
        v->ctx = ctx;
        v->key = TAKE_PTR(key);
        v->vhost = make_client_vhost(context, ctx);
        if (!v->vhost) {
            tls_vhost_free(v);
            return err_set(err, -ENOMEM, "libwebsockets cannot make a vhost");
        }
        list_append(&net->vhosts, &v->link);
    }
    *ret = v->vhost;
    return 0;
}

void tls_vhosts_free(struct net *net)
{
    list_for_each_safe (it, &net->vhosts) {
        list_remove(it);
        tls_vhost_free(LIST_ENTRY(it, struct tls_vhost, link));
    }
}
