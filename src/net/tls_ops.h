/*
 * TLS behind a table of functions, so that OpenSSL is loaded with the first use of it and not with
 * the program: the module muster-tls.so (tls_module.c, tls_stream.c) has them, tls_load() finds it.
 * The rest of net calls only these.
 */
#ifndef NET_TLS_OPS_H
#define NET_TLS_OPS_H

#include "base/err.h"

/* PEM files. cert_path and key_path go together; any may be NULL where that makes sense. */
struct tls_files {
    const char *cert_path, *key_path, *ca_path;
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
 * wants_write. Other errors come with a text and are the end: -EPERM for what the other side is or
 * wants, -ECONNRESET and others for the socket.
 */
struct tls_ops {
    const char *version; /* of Muster: module and program are of one build */
    size_t size;
    /* A certificate with its key; ca_path: ask clients for one, and check it if there is one. */
    int (*config_server)(const struct tls_files *files, struct tls_config **ret, struct err *err);
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
    /* Common name of the peer's certificate, which was checked; false without one. */
    bool (*peer_name)(const struct tls *tls, char *name, size_t size);
};

#define TLS_MODULE_NAME "muster-tls.so"
#define TLS_MODULE_SYMBOL "muster_tls_ops"

/* Loads the module with the first call. -ENOSYS with a text that says what is to be installed. From
 * any thread. */
int tls_load(const struct tls_ops **ret, struct err *err);
/* Where the module is, for programs that stand where nobody looks for it (the unit tests). */
void tls_load_from(const char *path);

#endif
