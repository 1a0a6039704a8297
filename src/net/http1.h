/*
 * HTTP/1.1 requests and answers (RFC 9112), read strictly: what two readers could take for
 * different things is refused, never guessed. Pure.
 */
#ifndef NET_HTTP1_H
#define NET_HTTP1_H

#include "base/err.h"

#define HTTP1_HEAD_MAX ((size_t)16 << 10)
#define HTTP1_HEADERS_MAX 64

struct http1_header {
    const char *name; /* lower case */
    const char *value;
};

struct http1_head {
    const char *method; /* of a request */
    char *target;
    unsigned status; /* of an answer */
    unsigned minor;  /* of HTTP/1.x */
    struct http1_header headers[HTTP1_HEADERS_MAX];
    unsigned header_count;
    bool chunked;
    uint64_t content_length;
    bool keep_alive;
    bool expect_continue;
    const char *ws_key; /* of a WebSocket handshake; NULL: no handshake */
};

/*
 * Length of the head at the start of data, its last empty line included; 0 when it is not complete;
 * -EMSGSIZE when it is too long; -EINVAL when it cannot become one; -EPROTO when its first byte
 * says that this is no HTTP at all. *scanned (0 at first) keeps what was looked at before.
 */
ssize_t http1_head_length(const char *data, size_t len, size_t *scanned);
/*
 * Parse a whole head of that length in place; ret points into text. -EINVAL and others with text;
 * *ret_status is the status to answer then (400, 431, 501, 505).
 */
int http1_parse_head(
    char *text, size_t len, struct http1_head *ret, unsigned *ret_status, struct err *err);
/* The same for the head of an answer. -EINVAL with text. */
int http1_parse_answer(char *text, size_t len, struct http1_head *ret, struct err *err);
/* 101 with all that RFC 6455 section 4.1 wants of it; extensions and protocols were not offered. */
bool http1_is_handshake_answer(const struct http1_head *head, const char *accept);
const char *http1_header(const struct http1_head *head, const char *name);

/* What comes behind a head. */
struct http1_body {
    uint64_t remaining; /* of the body, or of this chunk */
    bool chunked;
    bool until_close; /* of an answer: its end is that of the connection */
    enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER, CHUNK_DONE } state;
    char line[32];
    unsigned line_len;
    unsigned trailer_len;
};

void http1_body_init(struct http1_body *body, const struct http1_head *head);
/* asked_head: the answer is one to a HEAD request. */
void http1_body_init_answer(
    struct http1_body *body, const struct http1_head *head, bool asked_head);
bool http1_body_is_done(const struct http1_body *body);
/*
 * Take the next piece: *ret_used bytes of data were consumed, of which *ret_len at *ret_piece are
 * body (0: none, call again while bytes are left). -EINVAL for broken chunks.
 */
int http1_body_take(struct http1_body *body, const char *data, size_t len, size_t *ret_used,
    const char **ret_piece, size_t *ret_len);

const char *http1_reason(unsigned status);

#endif
