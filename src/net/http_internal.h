/*
 * What http.c (the connection and the life of a call), http_send.c (the request) and http_receive.c
 * (the answer) share.
 */
#ifndef NET_HTTP_INTERNAL_H
#define NET_HTTP_INTERNAL_H

#include "net/http.h"
#include "net/http1.h"
#include "net/http_link.h"

/* Of what was received, and of a body on its way out. */
#define HTTP_BUFFER ((size_t)64 << 10)

struct http {
    struct http_link link;
    struct tls_config *tls; /* made with the first connection */
    struct uri uri;
    char *base_url, *prefix, *token;
    char *ca_path, *cert_path, *key_path, *server_name;
    uint64_t connect_usec;
    char *in; /* HTTP_BUFFER bytes, of which in_len from in_at on are not used yet */
    size_t in_at, in_len;
};

/* One call while it runs. */
struct exchange {
    struct http *http;
    struct http_call *call;
    uint64_t deadline;
    bool heard;    /* a byte of an answer came */
    bool ended;    /* the peer sends no more */
    bool sent;     /* all of the request */
    bool gone_on;  /* 100 Continue came */
    bool answered; /* the head of the answer is there */
    bool keep;     /* the connection, after the answer */
    size_t scanned;
    unsigned interim;
    char *text; /* of the head */
    struct http1_head head;
};

bool http_has_body(const struct http_call *call);
/* Sends until all is sent or an answer is there. */
int http_send(struct exchange *x, struct err *err);
/* Where the body begins, for who may have to send it again; -1 where it cannot be. */
off_t http_body_start(const struct http_call *call);

/* Read once what is there. -EAGAIN: nothing. */
int http_fill(struct exchange *x, struct err *err);
/* Use what was read until the head of the answer is whole: x->answered. */
int http_take_head(struct exchange *x, struct err *err);
/* Read on until then. */
int http_receive_head(struct exchange *x, struct err *err);
int http_receive_body(struct exchange *x, struct err *err);

#endif
