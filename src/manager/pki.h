/*
 * The cluster's own authority, and the manager's certificate by it. Files in STATE/tls, closed to
 * others:
 *
 *   ca.key      the authority's key: whoever has it can be any node, or the manager
 *   ca.crt      its certificate; lasts for 25 years
 *   server.pem  key, certificate and authority for agents; for people, too, unless the site gave
 * its own. Made again when it is due, or when other names or a shorter time are configured
 *
 * No loop, no store: who calls says what time it is, and keeps the fingerprint.
 */
#ifndef MANAGER_PKI_H
#define MANAGER_PKI_H

#include "net/cert.h"

struct pki {
    char *folder, *ca_path, *server_path;
    char *ca, *ca_key; /* NULL: not open */
    char fingerprint[CERT_FINGERPRINT_MAX];
    struct cert_info server;
};

/*
 * Open the authority in state_dir, or make one when there is none. known: the fingerprint that the
 * store has, "" for none: another one, or none where one is known, is refused with what to do
 * (nodes would be locked out).
 */
int pki_open(struct pki *p, const char *state_dir, const char *known, const char *cluster,
    uint64_t now_usec, struct err *err);
/* Put a new authority in the place of what is there, if anything is. */
int pki_replace(
    struct pki *p, const char *state_dir, const char *cluster, uint64_t now_usec, struct err *err);
void pki_done(struct pki *p);

/* See to it that server.pem is good for all these names and not due. 1: it was made (again), read
 * it anew. */
int pki_server(struct pki *p, char *const *reached_by, uint64_t lifetime_usec, uint64_t now_usec,
    struct err *err);
/* A node's certificate, with the authority's behind it. ret_until: its end. */
int pki_node(const struct pki *p, const char *request, const char *node, const char *mark,
    uint64_t lifetime_usec, uint64_t now_usec, char **ret, uint64_t *ret_until, struct err *err);

#endif
