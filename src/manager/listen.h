/*
 * Where the API is served: plain HTTP on loopback addresses, TLS on all others. People see the
 * site's certificate, or ours; agents ask for JOIN_MANAGER_NAME, see ours, and show their own.
 */
#ifndef MANAGER_LISTEN_H
#define MANAGER_LISTEN_H

#include "manager/manager.h"

/* Open what TLS needs, and listen. */
int listen_start(struct manager *m, struct err *err);
/* Certificates that are due, or that the site has replaced. */
void listen_tick(struct manager *m, uint64_t now_usec);
/* "https://HOST:PORT" of where others reach this manager with TLS; heap vector. */
char **listen_urls(const struct manager *m);

/* "10.1.0.1:7480", "[::]:7480" or "::1:7480". */
int listen_parse(const char *text, char host[64], uint16_t *port, struct err *err);
/* 127.0.0.0/8 or ::1. Pure. */
bool address_is_loopback(const char *address);

#endif
