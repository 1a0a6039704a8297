/* The answer to a call: its head, strictly, and its body to where the call wants it. */
#include "base/str.h"
#include "net/http_internal.h"

/* 100 Continue and its like before the answer itself. */
#define INTERIM_MAX 16

int http_fill(struct exchange *x, struct err *err)
{
    struct http *h = x->http;
    ssize_t n;

    if (h->in_at) {
        memmove(h->in, h->in + h->in_at, h->in_len);
        h->in_at = 0;
    }
    if (h->in_len == HTTP_BUFFER)
        return 0;
    n = http_link_try_read(&h->link, h->in + h->in_len, HTTP_BUFFER - h->in_len, err);
    if (n < 0)
        return (int)n;
    if (n == 0)
        x->ended = true;
    else
        x->heard = true;
    h->in_len += (size_t)n;
    return 0;
}

static int fill_and_wait(struct exchange *x, struct err *err)
{
    for (;;) {
        int r = http_fill(x, err);

        if (r != -EAGAIN)
            return r;
        r = http_link_wait(&x->http->link, x->deadline, err);
        if (r < 0)
            return r;
    }
}

static void in_drop(struct http *h, size_t len)
{
    h->in_at += len;
    h->in_len -= len;
}

static int bad_head(ssize_t r, struct err *err)
{
    if (r == -EMSGSIZE)
        return err_set(
            err, -EBADMSG, "the head of the answer is longer than %zu bytes", HTTP1_HEAD_MAX);
    if (r == -EPROTO)
        return err_set(err, -EBADMSG, "the answer is not HTTP (is TLS spoken there?)");
    return err_set(err, -EBADMSG, "the answer is not proper HTTP: a line does not end with CR LF");
}

/* One head of len bytes. 1xx are only noted. */
static int parse_head(struct exchange *x, size_t len, struct err *err)
{
    struct http *h = x->http;
    struct err why = ERR_INIT;

    free(x->text);
    x->text = xcalloc(1, len + 1);
    memcpy(x->text, h->in + h->in_at, len);
    in_drop(h, len);
    x->scanned = 0;
    if (http1_parse_answer(x->text, len, &x->head, &why) < 0)
        return err_set(err, -EBADMSG, "the answer is not proper HTTP: %.160s", err_text(&why));
    if (x->head.status == 101)
        return err_set(err, -EBADMSG, "the answer changes to another protocol, unasked");
    if (x->head.status < 200) {
        if (++x->interim > INTERIM_MAX)
            return err_set(err, -EBADMSG, "the answer does not come forward");
        x->gone_on |= x->head.status == 100;
        return 0;
    }
    x->answered = true;
    return 0;
}

int http_take_head(struct exchange *x, struct err *err)
{
    struct http *h = x->http;

    while (!x->answered && h->in_len) {
        ssize_t len = http1_head_length(h->in + h->in_at, h->in_len, &x->scanned);
        int r;

        if (len < 0)
            return bad_head(len, err);
        if (len == 0)
            return 0;
        r = parse_head(x, (size_t)len, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int http_receive_head(struct exchange *x, struct err *err)
{
    for (;;) {
        int r = http_take_head(x, err);

        if (r < 0 || x->answered)
            return r;
        if (x->ended)
            return err_set(err, -ECONNRESET,
                x->heard ? "the connection was closed in the middle of the answer"
                         : "the connection was closed without an answer");
        r = fill_and_wait(x, err);
        if (r < 0)
            return r;
    }
}

static int deliver(struct exchange *x, const char *data, size_t len, struct err *err)
{
    struct http_call *call = x->call;
    int r = 0;

    if (call->on_data && x->head.status < 300)
        r = call->on_data(data, len, call->arg);
    else if (call->out)
        r = buf_append(call->out, data, len);
    if (r == -EMSGSIZE && call->out && !(call->on_data && x->head.status < 300))
        return err_set(err, r, "the answer is longer than %zu bytes", call->out->max);
    return r < 0 ? err_sys(err, r, "the transfer was ended") : 0;
}

/* All that was read and belongs to the body. */
static int take_body(struct exchange *x, struct http1_body *body, struct err *err)
{
    struct http *h = x->http;

    while (h->in_len && !http1_body_is_done(body)) {
        const char *piece = NULL;
        size_t used, len;
        int r = http1_body_take(body, h->in + h->in_at, h->in_len, &used, &piece, &len);

        if (r < 0)
            return err_set(err, -EBADMSG, "the chunks of the answer are broken");
        in_drop(h, used);
        r = len ? deliver(x, piece, len, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int http_receive_body(struct exchange *x, struct err *err)
{
    struct http1_body body;
    int r;

    http1_body_init_answer(&body, &x->head, str_eq(x->call->method, "HEAD"));
    for (;;) {
        r = take_body(x, &body, err);
        if (r < 0 || http1_body_is_done(&body))
            break;
        if (x->ended && body.until_close)
            break;
        if (x->ended)
            return err_set(
                err, -ECONNRESET, "the connection was closed in the middle of the answer");
        r = fill_and_wait(x, err);
        if (r < 0)
            return r;
    }
    x->keep = r == 0 && x->sent && x->head.keep_alive && !body.until_close && !x->ended &&
        !x->http->in_len;
    return r;
}
