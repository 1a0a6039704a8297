/* Inside of the registry client: one HTTP GET, and what its answer means. */
#ifndef IMAGE_HTTP_PULL_H
#define IMAGE_HTTP_PULL_H

#include <curl/curl.h>

#include "base/buf.h"
#include "image/registry.h"

#define HTTP_TRIES 4

struct pull {
    char *path; /* of the URL, for errors */
    CURL *easy; /* NULL: not started */
    struct curl_slist *headers;
    struct buf body;            /* a document; or what the registry said about an error */
    struct registry_blob *blob; /* NULL: into body */
    int write_error;
    bool too_long, stalled;
    curl_off_t moved; /* bytes, and when the last of them came */
    uint64_t moved_usec, stall_usec;
    long status;
    unsigned retry_after; /* seconds, 0: not said */
    char challenge[1024]; /* WWW-Authenticate */
    char curl_error[CURL_ERROR_SIZE];
    unsigned tries;
    uint64_t best;       /* most of the blob that any try had */
    uint64_t wait_until; /* monotonic; the next try */
    bool renewed;        /* the token, for this one */
};

struct pull_opts {
    const char *base;                          /* "https://HOST" */
    const char *ca, *user, *password, *bearer; /* NULL: none */
    const char *accept;
    bool insecure;
    uint64_t stall_usec;
};

enum pull_result { PULL_DONE, PULL_AGAIN, PULL_UNAUTHORIZED, PULL_FAILED };

/* Sets up the handle: p->path and p->blob are set. */
void pull_start(struct pull *p, const struct pull_opts *o);
/* After the transfer: what it came to; err says so unless it is done. With PULL_AGAIN wait_until is
 * set. Frees the handle. */
enum pull_result pull_end(struct pull *p, CURLcode code, struct err *err);
void pull_done(struct pull *p);

#endif
