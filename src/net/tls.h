/* TLS settings as net's connections use them; how they work is behind struct tls_ops. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "net/internal.h"
#include "net/tls_ops.h"

/* A server's settings, from files that are checked. For tls_config_free. */
int tls_server(const struct tls_files *files, const struct tls_named *named,
    struct tls_config **ret, struct err *err);
/*
 * A client's settings for one host (a name or an address): the peer's certificate must be valid
 * for it. Kept until net_free and used again as long as the files are the same.
 */
int tls_client(struct net *net, const char *host, const struct tls_files *files,
    struct tls_config **ret, struct err *err);
/* config may be NULL. */
void tls_config_free(struct tls_config *config);

#endif
