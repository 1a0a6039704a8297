/*
 * The module muster-tls.so: OpenSSL contexts made of files, with errors that say what is wrong with
 * which file, and the table that the rest of net calls. Connections are in tls_stream.c.
 *
 * Nothing of a session is kept for the next one, neither in tickets nor in caches: each handshake
 * is a whole one and checks the certificates.
 */
#include "net/tls_module.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#define ALPN "\x08http/1.1"

extern const struct tls_ops muster_tls_ops __attribute__((visibility("default")));

void settings_unref(struct tls_config *config)
{
    struct tls_settings *s = (struct tls_settings *)config;

    if (!s || --s->refs > 0)
        return;
    SSL_CTX_free(s->ctx);
    SSL_CTX_free(s->named_ctx);
    free(s->named);
    free(s->server_name);
    free(s);
}

static void settings_unrefp(struct tls_settings **s)
{
    settings_unref(*s ? &(*s)->config : NULL);
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

static int use_cert(SSL_CTX *ctx, const struct tls_files *files, struct err *err)
{
    int r;

    if (!files->cert_path || !files->key_path)
        return err_set(err, -EINVAL, "a TLS certificate needs its key, and a key its certificate");
    r = check_readable("TLS certificate", files->cert_path, err);
    if (r < 0)
        return r;
    r = check_readable("TLS key", files->key_path, err);
    if (r < 0)
        return r;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert_path) != 1)
        return openssl_failed(err, "TLS certificate", files->cert_path);
    if (SSL_CTX_use_PrivateKey_file(ctx, files->key_path, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return openssl_failed(err, "TLS key", files->key_path);
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

static SSL_CTX *context_new(bool is_server)
{
    SSL_CTX *ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());

    if (!ctx)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
            SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_read_ahead(ctx, 1); /* one recv(2) for a record's head and body */
    return ctx;
}

static struct tls_settings *settings_new(bool is_server)
{
    struct tls_settings *s = xnew(struct tls_settings);

    s->config.ops = &muster_tls_ops;
    s->refs = 1;
    s->is_server = is_server;
    s->ctx = context_new(is_server);
    return s;
}

/* RFC 7301 section 3.2: who offers protocols and not ours is refused. */
static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
    const unsigned char *in, unsigned in_len, void *arg)
{
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, out_len, (const unsigned char *)ALPN, sizeof(ALPN) - 1, in,
            in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int ask_for_certificates(SSL_CTX *ctx, const char *ca_path, struct err *err)
{
    int r = use_ca(ctx, ca_path, err);

    if (r < 0)
        return r;
    SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(ca_path));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    ERR_clear_error();
    return 0;
}

static int no_context(struct err *err)
{
    return err_set(err, -ENOMEM, "OpenSSL cannot make a context");
}

static int server_context(const struct tls_files *files, SSL_CTX *ctx, struct err *err)
{
    int r;

    if (!ctx)
        return no_context(err);
    SSL_CTX_set_alpn_select_cb(ctx, select_protocol, NULL);
    r = use_cert(ctx, files, err);
    if (r == 0 && files->ca_path)
        r = ask_for_certificates(ctx, files->ca_path, err);
    return r;
}

/* Before anything of the context is used, so that the other one's certificate and its demand for
 * the client's are what counts (SSL_CTX_set_client_hello_cb(3)). */
static int choose_face(SSL *ssl, int *alert, void *arg)
{
    const struct tls_settings *s = arg;
    const unsigned char *ext;
    size_t len, want = strlen(s->named);

    /* A list with one name: 2 bytes its length, 1 byte its type (0), 2 bytes the name's length. */
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &ext, &len) != 1 ||
        len != want + 5 || ext[2] != TLSEXT_NAMETYPE_host_name ||
        memcmp(ext + 5, s->named, want) != 0)
        return SSL_CLIENT_HELLO_SUCCESS;
    SSL_set_SSL_CTX(ssl, s->named_ctx);
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(s->named_ctx), NULL);
    return SSL_CLIENT_HELLO_SUCCESS;
}

static int add_face(struct tls_settings *s, const struct tls_named *named, struct err *err)
{
    int r;

    s->named_ctx = context_new(true);
    r = server_context(&named->files, s->named_ctx, err);
    if (r < 0)
        return r;
    s->named = xstrdup(named->name);
    SSL_CTX_set_client_hello_cb(s->ctx, choose_face, s);
    return 0;
}

static int config_server(const struct tls_files *files, const struct tls_named *named,
    struct tls_config **ret, struct err *err)
{
    _cleanup_(settings_unrefp) struct tls_settings *s = settings_new(true);
    int r = server_context(files, s->ctx, err);

    if (r == 0 && named->name)
        r = add_face(s, named, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(s)->config;
    return 0;
}

static int demand_host(struct tls_settings *s, const char *host, struct err *err)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(s->ctx);

    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return 0;
    ERR_clear_error();
    if (X509_VERIFY_PARAM_set1_host(param, host, strlen(host)) != 1)
        return err_set(err, -EINVAL, "'%s' is no host that a certificate can name", host);
    s->server_name = xstrdup(host);
    return 0;
}

static int config_client(
    const char *host, const struct tls_files *files, struct tls_config **ret, struct err *err)
{
    _cleanup_(settings_unrefp) struct tls_settings *s = settings_new(false);
    int r;

    if (!s->ctx)
        return no_context(err);
    s->unchecked = files->unchecked;
    SSL_CTX_set_verify(s->ctx, files->unchecked ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(s->ctx, (const unsigned char *)ALPN, sizeof(ALPN) - 1);
    r = use_ca(s->ctx, files->ca_path, err);
    if (r == 0 && (files->cert_path || files->key_path))
        r = use_cert(s->ctx, files, err);
    if (r == 0)
        r = demand_host(s, host, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(s)->config;
    return 0;
}

const struct tls_ops muster_tls_ops = {
    .version = MUSTER_VERSION,
    .size = sizeof(struct tls_ops),
    .config_server = config_server,
    .config_client = config_client,
    .config_free = settings_unref,
    .open = stream_open,
    .free = stream_free,
    .handshake = stream_handshake,
    .read = stream_read,
    .write = stream_write,
    .wants_write = stream_wants_write,
    .has_pending = stream_has_pending,
    .say_end = stream_say_end,
    .peer = stream_peer,
    .peer_chain = stream_peer_chain,
    .cert_key_new = module_cert_key_new,
    .cert_request_new = module_cert_request_new,
    .cert_sign = module_cert_sign,
    .cert_authority_new = module_cert_authority_new,
    .cert_read = module_cert_read,
    .cert_is_for = module_cert_is_for,
    .cert_find = module_cert_find,
};
