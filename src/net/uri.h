/* Percent-encoding (RFC 3986) and the parts of a request target. Pure. */
#ifndef NET_URI_H
#define NET_URI_H

#include "base/err.h"

/* Everything but unreserved characters becomes %XX. Heap. */
char *uri_encode(const char *text);

/*
 * Decode in place, once. plus: '+' is a space (query values). -EINVAL for a '%' without two hex
 * digits and for a decoded NUL.
 */
int uri_decode(char *text, bool plus);

/*
 * Split a request target in place at '?' and decode its path. *ret_query stays encoded ("" without
 * one). -EINVAL: not starting with '/', bytes that do not belong in a target, bad encoding, or a
 * "." or ".." part in the decoded path.
 */
int uri_split(char *target, char **ret_path, char **ret_query, struct err *err);

/* The first value of key in a query, decoded. Heap; NULL if absent or badly encoded. */
char *uri_query_get(const char *query, const char *key);

/* "ws://host:port/path?query". host is without brackets; path has the query and starts with '/'. */
struct uri {
    bool tls;
    char host[256];
    uint16_t port;
    const char *path; /* into the text that was parsed, or "/" */
};

int uri_parse_ws(const char *url, struct uri *ret, struct err *err);
/* The same for http:// and https://. */
int uri_parse_http(const char *url, struct uri *ret, struct err *err);

/* "host:port" for the Host header, without the port where it is the scheme's own. */
#define URI_AUTHORITY_MAX 272
void uri_format_authority(const struct uri *uri, char text[URI_AUTHORITY_MAX]);

#endif
