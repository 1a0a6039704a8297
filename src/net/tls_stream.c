/*
 * One TLS connection on a socket of somebody else: OpenSSL reads and writes through a BIO that
 * never waits and never raises SIGPIPE. Owns the SSL, not the socket.
 */
#include <openssl/err.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/tls_module.h"

struct stream {
    struct tls tls;
    struct tls_settings *settings;
    SSL *ssl;
    int fd;
    int sys; /* errno of the socket that broke */
    bool eof;
    bool wants_write;
    bool broken; /* nothing may be called any more */
};

static BIO_METHOD *method;

static int bio_read(BIO *bio, char *data, int len)
{
    struct stream *s = BIO_get_data(bio);
    ssize_t n = recv(s->fd, data, (size_t)len, MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (n == 0)
        s->eof = true;
    else if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    else if (n < 0)
        s->sys = errno;
    return (int)n;
}

static int bio_write(BIO *bio, const char *data, int len)
{
    struct stream *s = BIO_get_data(bio);
    ssize_t n = send(s->fd, data, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    else if (n < 0)
        s->sys = errno;
    return (int)n;
}

static long bio_ctrl(BIO *bio, int cmd, long number, void *arg)
{
    if (cmd == BIO_CTRL_EOF)
        return ((struct stream *)BIO_get_data(bio))->eof;
    return cmd == BIO_CTRL_FLUSH;
}

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster socket");
    assert(method);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_ctrl(method, bio_ctrl);
}

static struct stream *stream_of(const struct tls *tls)
{
    return (struct stream *)tls;
}

void stream_free(struct tls *tls)
{
    struct stream *s = stream_of(tls);

    if (!s)
        return;
    SSL_free(s->ssl);
    settings_unref(&s->settings->config);
    free(s);
}

struct tls *stream_open(struct tls_config *config, int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tls_settings *settings = (struct tls_settings *)config;
    struct stream *s = xnew(struct stream);
    BIO *bio;

    pthread_once(&once, make_method);
    s->tls.ops = config->ops;
    s->settings = settings;
    settings->refs++;
    s->fd = fd;
    s->ssl = SSL_new(settings->ctx);
    bio = BIO_new(method);
    assert(s->ssl && bio); /* no memory */
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    if (settings->is_server)
        SSL_set_accept_state(s->ssl);
    else
        SSL_set_connect_state(s->ssl);
    if (settings->server_name)
        SSL_set_tlsext_host_name(s->ssl, settings->server_name);
    return &s->tls;
}

/* What a person can use of OpenSSL's reasons. */
static const char *reason_text(unsigned long code)
{
    const char *reason = ERR_reason_error_string(code);

    switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
        return "the other side does not speak TLS here";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the other side says that our certificate has run out, or its clock or ours is "
               "wrong";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the other side does not accept our certificate, or its authority";
    default:
        return reason ? reason : "the connection failed";
    }
}

/* A certificate outside its time is as likely a clock that is wrong. */
static const char *clock_text(long verify, char text[64])
{
    char now[CLOCK_TEXT_MAX];

    text[0] = '\0';
    if (verify == X509_V_ERR_CERT_NOT_YET_VALID || verify == X509_V_ERR_CERT_HAS_EXPIRED)
        snprintf(text, 64, "; is it %.16sZ? That is this machine's clock",
            clock_format(clock_real_usec(), now));
    return text;
}

static int explain(struct stream *s, struct err *err)
{
    unsigned long code = ERR_peek_last_error();
    long verify = SSL_get_verify_result(s->ssl);
    char clock[64];

    if (ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
        return err_set(err, -EPROTONOSUPPORT, "TLS: %s", reason_text(code));
    if (s->sys)
        return err_sys(err, -s->sys, "TLS");
    if (s->eof)
        return err_set(err, -ECONNRESET, "TLS: the other side closed the connection");
    if (verify != X509_V_OK && !s->settings->unchecked)
        return err_set(err, -EPERM, "the certificate of the other side is not accepted: %s%s",
            X509_verify_cert_error_string(verify), clock_text(verify, clock));
    return err_set(err, -EPERM, "TLS: %s", reason_text(code));
}

/* After a call that returned n <= 0. */
static int failed(struct stream *s, int n, struct err *err)
{
    int r;

    s->wants_write = false;
    switch (SSL_get_error(s->ssl, n)) {
    case SSL_ERROR_WANT_WRITE:
        s->wants_write = true;
        return -EAGAIN;
    case SSL_ERROR_WANT_READ:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        r = explain(s, err);
        s->broken = true;
        ERR_clear_error();
        return r;
    }
}

static int is_broken(struct err *err)
{
    return err_set(err, -ECONNRESET, "the connection is broken");
}

int stream_handshake(struct tls *tls, struct err *err)
{
    struct stream *s = stream_of(tls);
    int n;

    if (s->broken)
        return is_broken(err);
    ERR_clear_error();
    n = SSL_do_handshake(s->ssl);
    if (n == 1) {
        s->wants_write = false;
        return 0;
    }
    n = failed(s, n, err);
    return n ? n : err_set(err, -ECONNRESET, "TLS: the other side closed the connection");
}

ssize_t stream_read(struct tls *tls, void *data, size_t len, struct err *err)
{
    struct stream *s = stream_of(tls);
    int n;

    if (s->broken)
        return is_broken(err);
    ERR_clear_error();
    n = SSL_read(s->ssl, data, (int)MIN_OF(len, (size_t)INT32_MAX));
    if (n <= 0)
        return failed(s, n, err);
    s->wants_write = false;
    return n;
}

ssize_t stream_write(struct tls *tls, const void *data, size_t len, struct err *err)
{
    struct stream *s = stream_of(tls);
    int n;

    if (s->broken)
        return is_broken(err);
    ERR_clear_error();
    n = SSL_write(s->ssl, data, (int)MIN_OF(len, (size_t)INT32_MAX));
    if (n > 0) {
        s->wants_write = false;
        return n;
    }
    n = failed(s, n, err);
    return n ? n : err_set(err, -EPIPE, "TLS: the other side closed the connection");
}

bool stream_wants_write(const struct tls *tls)
{
    return stream_of(tls)->wants_write;
}

bool stream_has_pending(const struct tls *tls)
{
    return !stream_of(tls)->broken && SSL_has_pending(stream_of(tls)->ssl);
}

void stream_say_end(struct tls *tls)
{
    struct stream *s = stream_of(tls);

    if (s->broken || !SSL_is_init_finished(s->ssl))
        return;
    ERR_clear_error();
    SSL_shutdown(s->ssl);
    ERR_clear_error();
}

bool stream_peer(const struct tls *tls, struct cert_info *ret)
{
    X509 *cert = SSL_get1_peer_certificate(stream_of(tls)->ssl);
    bool known = cert && cert_info_of(cert, ret);

    X509_free(cert);
    return known;
}

char *stream_peer_chain(const struct tls *tls)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(stream_of(tls)->ssl);
    char *text = NULL;

    for (int i = 0; i < sk_X509_num(chain); i++) /* -1 of none */
        text = cert_append(text, sk_X509_value(chain, i));
    return text ? text : xstrdup("");
}
