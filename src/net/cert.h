/*
 * Certificates of an authority of our own: keys, requests, signing, and what a certificate says.
 * Text in, text out (PEM, RFC 7468); no files and no clock here. Keys are ECDSA on P-256, digests
 * are SHA-256. OpenSSL does the work, in the module that tls_load() opens: the first call costs
 * loading it.
 */
#ifndef NET_CERT_H
#define NET_CERT_H

#include "base/err.h"

/* Longest text that is taken for a request or a certificate with its chain. */
#define CERT_PEM_MAX ((size_t)64 << 10)
#define CERT_NAME_MAX 64 /* of a common name (RFC 5280, ub-common-name) and the other two */
#define CERT_FINGERPRINT_MAX 72
/* A certificate begins that much before it was made, for machines whose clocks are behind. */
#define CERT_BACKDATE_USEC (UINT64_C(300) * 1000000)

enum cert_use {
    CERT_AUTHORITY, /* signs certificates of the other two, and nothing below them */
    CERT_SERVER,
    CERT_CLIENT,
};

/* What is to stand in a certificate; nothing of it is taken from the request. */
struct cert_order {
    enum cert_use use;
    const char *name; /* common name */
    const char *role; /* organizational unit; may be NULL */
    const char *mark; /* serial number of the subject (2.5.4.5, not of the certificate); NULL */
    char *const *reached_by; /* names and addresses of a server; NULL: none */
    uint64_t from_usec, until_usec;
};

struct cert_info {
    char name[CERT_NAME_MAX + 1], role[CERT_NAME_MAX + 1], mark[CERT_NAME_MAX + 1];
    uint64_t from_usec, until_usec;
    bool is_authority;                      /* may sign, and signed itself */
    char fingerprint[CERT_FINGERPRINT_MAX]; /* "sha256:" and 64 digits, of the whole certificate */
};

/* A new key. Heap, like all texts below; who writes it to a file closes that to others. */
int cert_key_new(char **ret_key, struct err *err);
/* A request (PKCS #10, RFC 2986) that proves to have the key. */
int cert_request_new(const char *key, char **ret_request, struct err *err);
/*
 * Sign the key of a request, whose own signature is checked. -EINVAL for what is no such request,
 * or whose key is of another kind than ours.
 */
int cert_sign(const char *authority, const char *authority_key, const char *request,
    const struct cert_order *order, char **ret, struct err *err);
/* An authority that signs itself. */
int cert_authority_new(
    const char *key, const struct cert_order *order, char **ret, struct err *err);
/* Of the first certificate in text. -EINVAL. */
int cert_read(const char *text, struct cert_info *ret, struct err *err);
/* Is the first certificate in text good for a server that is reached by this name or address? */
bool cert_is_for(const char *text, const char *host);
/* The certificate in text (a chain) that has this fingerprint. -ENOENT. */
int cert_find(const char *text, const char *fingerprint, char **ret, struct err *err);
/* The first in text (a chain) that is an authority, and what it says. -ENOENT. */
int cert_authority(const char *text, char **ret, struct cert_info *ret_info);

/* "sha256:" and 64 lower-case digits: the form of a fingerprint. Pure. */
bool cert_fingerprint_is_valid(const char *text);
/* Two thirds of its time are over: get the next one. Pure. */
bool cert_is_due(const struct cert_info *info, uint64_t now_usec);

#endif
