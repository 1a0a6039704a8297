/*
 * TLS behind a table of functions, so that OpenSSL is loaded with the first use of it and not with
 * the program: the module muster-tls.so (tls_module.c, tls_stream.c) has them, tls_load() finds it.
 * The rest of net calls only these.
 */
#ifndef NET_TLS_OPS_H
#define NET_TLS_OPS_H

#include "net/cert.h"

/* PEM files. cert_path and key_path go together; any may be NULL where that makes sense. */
struct tls_files {
    const char *cert_path, *key_path, *ca_path;
    bool unchecked; /* a client takes any certificate: to look at it, and say nothing */
};

/* A server's second face, shown to who asks for this name (SNI, RFC 6066 section 3). */
struct tls_named {
    const char *name; /* NULL: there is none */
    struct tls_files files;
};

/* What one side says of itself and demands of the other; shared by many connections, which keep it
 * alive on their own. */
struct tls_config {
    const struct tls_ops *ops;
};

/* One connection. Its socket stays the caller's, is never waited for, and raises no SIGPIPE. */
struct tls {
    const struct tls_ops *ops;
};

/*
 * handshake, read and write return -EAGAIN when the socket has to become readable, or writable if
 * wants_write. Other errors come with a text and are the end: -EPROTONOSUPPORT for a client that
 * speaks plain HTTP, -EPERM for what else the other side is or wants, -ECONNRESET and others for
 * the socket.
 */
struct tls_ops {
    const char *version; /* of Muster: module and program are of one build */
    size_t size;
    /* A certificate with its key; ca_path: ask clients for one, and check it if there is one. */
    int (*config_server)(const struct tls_files *files, const struct tls_named *named,
        struct tls_config **ret, struct err *err);
    /* The peer's certificate must be valid for host, a name or an address; ca_path NULL: by the
     * system's authorities. */
    int (*config_client)(
        const char *host, const struct tls_files *files, struct tls_config **ret, struct err *err);
    void (*config_free)(struct tls_config *config);

    struct tls *(*open)(struct tls_config *config, int fd);
    void (*free)(struct tls *tls);
    int (*handshake)(struct tls *tls, struct err *err);
    /* 0: the peer said that it sends no more. */
    ssize_t (*read)(struct tls *tls, void *data, size_t len, struct err *err);
    /* After -EAGAIN the same bytes must come again, and at least as many. */
    ssize_t (*write)(struct tls *tls, const void *data, size_t len, struct err *err);
    bool (*wants_write)(const struct tls *tls);
    /* Bytes are here that make the socket readable no more. */
    bool (*has_pending)(const struct tls *tls);
    /* Say that we send no more; as far as the socket takes it. */
    void (*say_end)(struct tls *tls);
    /* The peer's certificate, which was checked; false without one. */
    bool (*peer)(const struct tls *tls, struct cert_info *ret);
    /* All certificates that the peer sent. Heap. */
    char *(*peer_chain)(const struct tls *tls);

    /* cert.h */
    int (*cert_key_new)(char **ret_key, struct err *err);
    int (*cert_request_new)(const char *key, char **ret_request, struct err *err);
    int (*cert_sign)(const char *authority, const char *authority_key, const char *request,
        const struct cert_order *order, char **ret, struct err *err);
    int (*cert_authority_new)(
        const char *key, const struct cert_order *order, char **ret, struct err *err);
    int (*cert_read)(const char *text, struct cert_info *ret, struct err *err);
    bool (*cert_is_for)(const char *text, const char *host);
    int (*cert_find)(const char *text, const char *fingerprint, char **ret, struct err *err);
};

#define TLS_MODULE_NAME "muster-tls.so"
#define TLS_MODULE_SYMBOL "muster_tls_ops"

/* Loads the module with the first call. -ENOSYS with a text that says what is to be installed. From
 * any thread. */
int tls_load(const struct tls_ops **ret, struct err *err);
/* Where the module is, for programs that stand where nobody looks for it (the unit tests). */
void tls_load_from(const char *path);

#endif
