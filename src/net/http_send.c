/*
 * The request of a call: its head, and a body from memory or a descriptor. Listens while it sends:
 * an answer that comes before all is sent ends the sending. Large bodies ask first (Expect, RFC
 * 9110 section 10.1.1).
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "net/http_internal.h"

#define HEAD_MAX ((size_t)64 << 10)
/* Bodies from here on are worth a question first, which is waited for so long. */
#define EXPECT_BYTES ((size_t)64 << 10)
#define EXPECT_USEC USEC_PER_SEC
/* In front of a chunk, and behind it. */
#define CHUNK_HEAD 16
#define CHUNK_TAIL 2

/* The rest of a body. */
struct source {
    const char *data;
    int fd;
    bool chunked; /* of fd: until its end */
    uint64_t left;
};

bool http_has_body(const struct http_call *call)
{
    return call->body_fd > 0 || call->body;
}

off_t http_body_start(const struct http_call *call)
{
    return call->body_fd > 0 ? lseek(call->body_fd, 0, SEEK_CUR) : 0;
}

/* From where a file stands to its end; chunks for what is no regular file. */
static struct source source_of(const struct http_call *call)
{
    struct source s = {.data = call->body, .fd = -1, .left = call->body_len};
    off_t at = http_body_start(call);
    struct stat st;

    if (call->body_fd <= 0)
        return s;
    s.fd = call->body_fd;
    s.chunked = at < 0 || fstat(s.fd, &st) < 0 || !S_ISREG(st.st_mode) || at > st.st_size;
    s.left = s.chunked ? UINT64_MAX : (uint64_t)(st.st_size - at);
    return s;
}

static bool asks_first(const struct http_call *call)
{
    return call->body_fd > 0 || (call->body && call->body_len >= EXPECT_BYTES);
}

static int add_body_fields(
    struct buf *head, const struct http_call *call, const struct source *source)
{
    const char *m = call->method;

    if (!http_has_body(call)) {
        if (str_eq(m, "POST") || str_eq(m, "PUT") || str_eq(m, "PATCH"))
            return buf_puts(head, "Content-Length: 0\r\n");
        return 0;
    }
    buf_printf(
        head, "Content-Type: %s\r\n", call->content_type ? call->content_type : "application/json");
    if (asks_first(call))
        buf_puts(head, "Expect: 100-continue\r\n");
    if (source->chunked)
        return buf_puts(head, "Transfer-Encoding: chunked\r\n");
    return buf_printf(head, "Content-Length: %" PRIu64 "\r\n", source->left);
}

static int add_fields(struct buf *head, const struct http *h, const struct http_call *call)
{
    char authority[URI_AUTHORITY_MAX];
    int r = 0;

    uri_format_authority(&h->uri, authority);
    buf_printf(head, "Host: %s\r\nAccept: */*\r\n", authority);
    if (h->token)
        r = buf_printf(head, "Authorization: Bearer %s\r\n", h->token);
    for (const char *const *p = call->headers; r == 0 && p && *p; p++) {
        if (!str_is_clean(*p, strlen(*p)))
            return -EINVAL;
        r = buf_printf(head, "%s\r\n", *p);
    }
    return r;
}

static bool is_sendable(const char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s > '~')
            return false;
    }
    return true;
}

static int make_head(
    const struct exchange *x, const struct source *source, struct buf *head, struct err *err)
{
    const struct http_call *call = x->call;
    int r;

    if (!is_sendable(call->method) || !is_sendable(call->path) ||
        (call->content_type && !str_is_clean(call->content_type, strlen(call->content_type))))
        return err_set(err, -EINVAL, "the request has characters that must be encoded");
    r = buf_printf(head, "%s %s%s HTTP/1.1\r\n", call->method, x->http->prefix, call->path);
    if (r == 0)
        r = add_fields(head, x->http, call);
    if (r == 0)
        r = add_body_fields(head, call, source);
    if (r == 0)
        r = buf_puts(head, "\r\n");
    if (r < 0)
        return err_set(err, r, "the request head is %s",
            r == -EMSGSIZE ? "too long" : "not proper: it has a control character");
    return 0;
}

static bool is_over(const struct exchange *x)
{
    return x->answered || x->ended;
}

/* What the peer has said meanwhile. 1: no more is to be sent. That it broke the connection is told
 * later, if no answer came before. */
static int listen_to_peer(struct exchange *x, struct err *err)
{
    int r = http_fill(x, NULL);

    if (r == -EAGAIN)
        return 0;
    if (r < 0)
        x->ended = true;
    r = http_take_head(x, err);
    return r < 0 ? r : is_over(x);
}

/* The peer takes no more: all that it said before is read. */
static int hear_last_words(struct exchange *x, struct err *err)
{
    int r = 0;

    while (r == 0) {
        r = http_fill(x, NULL);
        if (r < 0)
            x->ended = true;
        r = http_take_head(x, err);
        if (r == 0)
            r = is_over(x);
    }
    return r;
}

/* 0: sent, all of it. 1: the peer has answered or closed before that. */
static int send_all(struct exchange *x, const char *data, size_t len, struct err *err)
{
    struct http_link *l = &x->http->link;
    int r = 0;

    while (len && r == 0) {
        ssize_t n = http_link_try_write(l, data, len, err);

        if (n == -EPIPE || n == -ECONNRESET)
            return hear_last_words(x, err);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
            continue;
        }
        r = n == -EAGAIN ? http_link_wait_room(l, x->deadline, err) : (int)n;
        if (r == 0)
            r = listen_to_peer(x, err);
    }
    return r;
}

static int wait_to_go_on(struct exchange *x, struct err *err)
{
    uint64_t until = MIN_OF(clock_mono_usec() + EXPECT_USEC, x->deadline);
    int r = 0;

    while (r == 0 && !x->gone_on) {
        r = http_link_wait(&x->http->link, until, err);
        if (r == -ETIMEDOUT) /* old servers say nothing */
            return 0;
        if (r == 0)
            r = listen_to_peer(x, err);
    }
    return r;
}

static ssize_t read_source(const struct source *s, char *to, size_t room, struct err *err)
{
    ssize_t n;

    do
        n = read(s->fd, to, room);
    while (n < 0 && errno == EINTR);
    return n < 0 ? err_sys(err, -errno, "cannot read the body to send") : n;
}

static int send_file(struct exchange *x, struct source *s, char *buffer, struct err *err)
{
    int r = 0;

    while (s->left && r == 0) {
        ssize_t n = read_source(s, buffer, (size_t)MIN_OF(s->left, (uint64_t)HTTP_BUFFER), err);

        if (n == 0)
            return err_set(err, -EIO, "the file to send has become shorter");
        r = n < 0 ? (int)n : send_all(x, buffer, (size_t)n, err);
        if (r)
            return r;
        s->left -= (uint64_t)n;
        if (s->left)
            r = listen_to_peer(x, err);
    }
    return r;
}

/* Who feeds a pipe may take long: the peer is heard meanwhile. */
static int wait_for_source(struct exchange *x, const struct source *s, struct err *err)
{
    for (;;) {
        int r = http_link_wait_for(&x->http->link, s->fd, x->deadline, err);
        bool ready = r == 1;

        if (r >= 0)
            r = listen_to_peer(x, err);
        if (r || ready)
            return r;
    }
}

/* Each chunk with its length and its end in one piece. */
static int send_chunks(struct exchange *x, struct source *s, char *buffer, struct err *err)
{
    char length[CHUNK_HEAD + 1];

    for (;;) {
        int len, r = wait_for_source(x, s, err);
        ssize_t n;

        if (r)
            return r;
        n = read_source(s, buffer + CHUNK_HEAD, HTTP_BUFFER - CHUNK_HEAD - CHUNK_TAIL, err);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return send_all(x, "0\r\n\r\n", 5, err);
        len = snprintf(length, sizeof(length), "%zx\r\n", (size_t)n);
        memcpy(buffer + CHUNK_HEAD - len, length, (size_t)len);
        buffer[CHUNK_HEAD + n] = '\r';
        buffer[CHUNK_HEAD + n + 1] = '\n';
        r = send_all(x, buffer + CHUNK_HEAD - len, (size_t)len + (size_t)n + CHUNK_TAIL, err);
        if (r)
            return r;
    }
}

static int send_body(struct exchange *x, struct source *s, struct err *err)
{
    _cleanup_free_ char *buffer = NULL;

    if (s->fd < 0)
        return send_all(x, s->data, (size_t)s->left, err);
    buffer = xcalloc(1, HTTP_BUFFER);
    return s->chunked ? send_chunks(x, s, buffer, err) : send_file(x, s, buffer, err);
}

int http_send(struct exchange *x, struct err *err)
{
    _cleanup_(buf_done) struct buf head = BUF_INIT(HEAD_MAX + EXPECT_BYTES);
    struct source source = source_of(x->call);
    int r = make_head(x, &source, &head, err);

    if (r < 0)
        return r;
    if (source.fd < 0 && !asks_first(x->call) && source.left) /* small: in one packet */
        source.left = buf_append(&head, source.data, (size_t)source.left) < 0 ? source.left : 0;
    r = send_all(x, head.data, head.len, err);
    if (r == 0 && asks_first(x->call))
        r = wait_to_go_on(x, err);
    if (r == 0 && source.left)
        r = send_body(x, &source, err);
    x->sent = r == 0;
    return MIN_OF(r, 0);
}
