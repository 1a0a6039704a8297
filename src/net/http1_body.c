/* What comes behind a head: so many bytes, chunks, or all until the end. Owns nothing. */
#include "net/http1.h"

void http1_body_init(struct http1_body *body, const struct http1_head *head)
{
    *body = (struct http1_body){.chunked = head->chunked, .remaining = head->content_length};
    if (!body->chunked)
        body->state = body->remaining ? CHUNK_DATA : CHUNK_DONE;
}

/* RFC 9112 section 6.3. */
void http1_body_init_answer(struct http1_body *body, const struct http1_head *head, bool asked_head)
{
    bool none = asked_head || head->status < 200 || head->status == 204 || head->status == 304;

    http1_body_init(body, head);
    if (none) {
        body->state = CHUNK_DONE;
    } else if (!head->chunked && !http1_header(head, "content-length")) {
        body->until_close = true;
        body->remaining = UINT64_MAX;
        body->state = CHUNK_DATA;
    }
}

bool http1_body_is_done(const struct http1_body *body)
{
    return body->state == CHUNK_DONE;
}

static int parse_chunk_size(struct http1_body *body)
{
    uint64_t size = 0;
    unsigned i;

    for (i = 0; i < body->line_len; i++) {
        char c = body->line[i];
        int digit = c >= '0' && c <= '9' ? c - '0'
            : c >= 'a' && c <= 'f'       ? c - 'a' + 10
            : c >= 'A' && c <= 'F'       ? c - 'A' + 10
                                         : -1;

        if (digit < 0)
            return -EINVAL; /* extensions too: nobody we know sends any */
        size = size * 16 + (uint64_t)digit;
    }
    if (i == 0 || i > 15)
        return -EINVAL;
    body->remaining = size;
    body->state = size ? CHUNK_DATA : CHUNK_TRAILER;
    body->line_len = 0;
    return 0;
}

/* One byte of what stands between the data. */
static int take_framing(struct http1_body *body, char c)
{
    if (body->state == CHUNK_TRAILER && ++body->trailer_len > 4096)
        return -EINVAL;
    if (c != '\n') {
        if (body->line_len == sizeof(body->line)) {
            if (body->state != CHUNK_TRAILER)
                return -EINVAL;
            body->line_len--; /* the text of trailers is dropped */
        }
        body->line[body->line_len++] = c;
        return 0;
    }
    if (!body->line_len || body->line[--body->line_len] != '\r')
        return -EINVAL;
    if (body->state == CHUNK_SIZE)
        return parse_chunk_size(body);
    if (body->state == CHUNK_END) {
        if (body->line_len)
            return -EINVAL;
        body->state = CHUNK_SIZE;
    } else if (!body->line_len) {
        body->state = CHUNK_DONE;
    }
    body->line_len = 0;
    return 0;
}

static size_t take_data(struct http1_body *body, size_t len)
{
    size_t n = (size_t)MIN_OF((uint64_t)len, body->remaining);

    body->remaining -= n;
    if (!body->remaining)
        body->state = body->chunked ? CHUNK_END : CHUNK_DONE;
    return n;
}

int http1_body_take(struct http1_body *body, const char *data, size_t len, size_t *ret_used,
    const char **ret_piece, size_t *ret_len)
{
    size_t used = 0;
    int r;

    *ret_len = 0;
    while (used < len && body->state != CHUNK_DONE) {
        if (body->state == CHUNK_DATA) {
            *ret_piece = data + used;
            *ret_len = take_data(body, len - used);
            used += *ret_len;
            break;
        }
        r = take_framing(body, data[used++]);
        if (r < 0)
            return r;
    }
    *ret_used = used;
    return 0;
}
