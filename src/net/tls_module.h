/* What the two files of the module muster-tls.so share. Nothing else includes OpenSSL in net. */
#ifndef NET_TLS_MODULE_H
#define NET_TLS_MODULE_H

#include <openssl/ssl.h>

#include "net/tls_ops.h"

struct tls_settings {
    struct tls_config config;
    unsigned refs; /* its owner's, and one of each connection */
    SSL_CTX *ctx;
    bool is_server;
    bool unchecked;    /* tls_files.unchecked */
    char *server_name; /* to ask for by name (SNI); NULL for addresses */
    char *named;       /* who asks for this name gets named_ctx; NULL: no such */
    SSL_CTX *named_ctx;
};

/* tls_module.c: give up a reference. */
void settings_unref(struct tls_config *config);

/* tls_stream.c */
struct tls *stream_open(struct tls_config *config, int fd);
void stream_free(struct tls *tls);
int stream_handshake(struct tls *tls, struct err *err);
ssize_t stream_read(struct tls *tls, void *data, size_t len, struct err *err);
ssize_t stream_write(struct tls *tls, const void *data, size_t len, struct err *err);
bool stream_wants_write(const struct tls *tls);
bool stream_has_pending(const struct tls *tls);
void stream_say_end(struct tls *tls);
bool stream_peer(const struct tls *tls, struct cert_info *ret);
char *stream_peer_chain(const struct tls *tls);

/* cert_module.c: the cert_ functions of the table, and: */
int module_cert_key_new(char **ret_key, struct err *err);
int module_cert_request_new(const char *key, char **ret_request, struct err *err);
int module_cert_sign(const char *authority, const char *authority_key, const char *request,
    const struct cert_order *order, char **ret, struct err *err);
int module_cert_authority_new(
    const char *key, const struct cert_order *order, char **ret, struct err *err);
int module_cert_read(const char *text, struct cert_info *ret, struct err *err);
bool module_cert_is_for(const char *text, const char *host);
int module_cert_find(const char *text, const char *fingerprint, char **ret, struct err *err);
/* False when a part of it cannot be what we signed: a name that was cut, or has a NUL inside. */
bool cert_info_of(X509 *cert, struct cert_info *ret);
/* Append as PEM to text (heap or NULL). */
char *cert_append(char *text, X509 *cert);

#endif
