/* What the two files of the module muster-tls.so share. Nothing else includes OpenSSL in net. */
#ifndef NET_TLS_MODULE_H
#define NET_TLS_MODULE_H

#include <openssl/ssl.h>

#include "net/tls_ops.h"

struct tls_settings {
    struct tls_config config;
    SSL_CTX *ctx;
    bool is_server;
    char *server_name; /* to ask for by name (SNI); NULL for addresses */
};

/* tls_stream.c */
struct tls *stream_open(struct tls_config *config, int fd);
void stream_free(struct tls *tls);
int stream_handshake(struct tls *tls, struct err *err);
ssize_t stream_read(struct tls *tls, void *data, size_t len, struct err *err);
ssize_t stream_write(struct tls *tls, const void *data, size_t len, struct err *err);
bool stream_wants_write(const struct tls *tls);
bool stream_has_pending(const struct tls *tls);
void stream_say_end(struct tls *tls);
bool stream_peer_name(const struct tls *tls, char *name, size_t size);

#endif
