/* The body of a request: whole in memory, or in pieces, never more than was allowed. */
#include "net/server_internal.h"

static void begin(struct request *rq, enum body_mode mode, uint64_t max, void *arg)
{
    assert(rq->mode == BODY_UNASKED && rq->reply == REPLY_NONE);
    rq->mode = mode;
    rq->body_max = max;
    rq->body_arg = arg;
    if (!rq->head.chunked && rq->head.content_length > max) {
        server_refuse(rq, 413, "the request body is too long");
        return;
    }
    /* Told to go on only when nothing has come yet: RFC 9110 section 10.1.1. */
    if (rq->head.expect_continue && !http1_body_is_done(&rq->body) &&
        rq->sc->in.len == rq->sc->in_used)
        conn_send(rq->sc->conn, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    server_later(rq->sc);
}

void request_read_body(struct request *rq,
    void (*fn)(struct request *rq, const char *body, size_t len, void *arg), void *arg)
{
    rq->whole = fn;
    rq->memory.max = rq->sc->net->limits.body_max;
    begin(rq, BODY_MEMORY, rq->memory.max, arg);
}

void request_stream_body(struct request *rq, uint64_t max,
    int (*fn)(struct request *rq, const char *data, size_t len, void *arg), void *arg)
{
    rq->piece = fn;
    begin(rq, BODY_PIECES, max, arg);
}

static void give_piece(struct request *rq, const char *data, size_t len)
{
    if (rq->mode == BODY_MEMORY)
        buf_append(&rq->memory, data, len); /* fits: its maximum is body_max */
    else if (rq->piece(rq, data, len, rq->body_arg) < 0 && rq->reply == REPLY_NONE)
        server_refuse(rq, 500, "the request body could not be taken");
}

static void give_end(struct request *rq)
{
    rq->body_given = true;
    if (rq->mode == BODY_MEMORY)
        rq->whole(rq, rq->memory.data ? rq->memory.data : "", rq->memory.len, rq->body_arg);
    else
        give_piece(rq, NULL, 0);
}

/* The next bytes of the body, without telling anyone. 0, or an error of its framing. */
static int take(struct request *rq, const char **ret_piece, size_t *ret_len, bool *ret_moved)
{
    struct server_conn *sc = rq->sc;
    size_t left = sc->in.len - sc->in_used, used = 0;
    int r;

    *ret_len = 0;
    *ret_moved = false;
    if (!left)
        return 0;
    r = http1_body_take(&rq->body, sc->in.data + sc->in_used, left, &used, ret_piece, ret_len);
    server_in_drop(sc, used);
    *ret_moved = used > 0;
    return r;
}

bool body_pump(struct request *rq)
{
    const char *piece;
    size_t len;
    bool moved;

    if (rq->mode == BODY_UNASKED || rq->body_given || rq->reply != REPLY_NONE)
        return false;
    if (http1_body_is_done(&rq->body)) {
        give_end(rq);
        return true;
    }
    if (take(rq, &piece, &len, &moved) < 0) {
        server_refuse(rq, 400, "the chunks of the request body are broken");
        return true;
    }
    rq->body_seen += len;
    if (rq->body_seen > rq->body_max)
        server_refuse(rq, 413, "the request body is too long");
    else if (len)
        give_piece(rq, piece, len);
    return moved;
}

bool body_drop_rest(struct request *rq)
{
    const char *piece;
    size_t len;
    bool moved;

    do {
        if (http1_body_is_done(&rq->body))
            return true;
        if (take(rq, &piece, &len, &moved) < 0)
            return false;
    } while (moved);
    return false;
}
