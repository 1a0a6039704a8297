/* TLS settings: files checked with errors that say what is wrong, and the vhosts that carry them.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "net/internal.h"

/* The files of a server. */
int tls_server_vhost(struct net *net, const char *cert_path, const char *key_path,
    const char *ca_path, struct lws_vhost **ret, struct err *err);

/*
 * A client's settings for one host (a name or an address): the peer's certificate must be valid
 * for it. Kept until net_free and used again as long as the files are the same.
 */
int tls_client_vhost(struct net *net, const char *host, const char *ca_path, const char *cert_path,
    const char *key_path, struct lws_vhost **ret, struct err *err);

#endif
