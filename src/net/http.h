/*
 * Blocking HTTP client, for the command line and for worker threads. One struct http is
 * one connection kept alive; not shared between threads.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "base/buf.h"
#include "base/err.h"

struct http;

struct http_opts {
    const char *base_url; /* "http://127.0.0.1:7480"; paths are appended */
    const char *token;    /* bearer token or NULL */
    const char *ca_path, *cert_path, *key_path;
    const char *server_name; /* what its certificate must be for, instead of the URL's host */
    uint64_t connect_usec;   /* 0: 5 s */
};

struct http_call {
    const char *method, *path; /* path with its query, already encoded */
    const char *content_type;  /* of body; NULL: application/json */
    const void *body;
    size_t body_len;
    int body_fd;                /* > 0: the body is this file from its current offset */
    const char *const *headers; /* "Idempotency-Key: ...", NULL-terminated; may be NULL */
    uint64_t timeout_usec;      /* of the whole call; 0: 60 s; UINT64_MAX: none (streams) */
    /* Where the answer goes: out in memory (to its max, then -EMSGSIZE), or each piece to on_data
     * (a negative return ends the call with it). on_data is used for 2xx only. */
    struct buf *out;
    int (*on_data)(const char *data, size_t len, void *arg);
    void *arg;
    /* out */
    unsigned status; /* 0 when there was no answer */
    char content_type_got[64];
};

int http_new(const struct http_opts *opts, struct http **ret, struct err *err);
void http_free(struct http *h);
void http_freep(struct http **h);
/* 0 whenever an answer came, whatever its status; -ECONNREFUSED, -ETIMEDOUT, ... with a text that
 * names the address otherwise. */
int http_do(struct http *h, struct http_call *call, struct err *err);

/*
 * Who is there: the certificates (PEM) that the server of an https URL shows. They are not checked,
 * and nothing is said to it: what is found is to be compared with what is known. server_name: ask
 * for this name; NULL: the URL's host.
 */
int http_look(const char *url, const char *server_name, char **ret_chain, struct err *err);

/* Percent-encode for a path part or query value. Heap. */
char *http_encode(const char *text);

#endif
