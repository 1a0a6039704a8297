/*
 * Answers from a hostile server. How the bytes are cut must not change what is read, every refusal
 * says why, and a length that is taken is one length: chunks, a number, or the end, never two.
 */
#include "net/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes of the body and a sum over them; SIZE_MAX when it is refused. */
static size_t read_body(
    const struct http1_head *head, const char *data, size_t size, size_t step, unsigned *ret_sum)
{
    struct http1_body body;
    size_t at = 0, got = 0;

    *ret_sum = 0;
    http1_body_init_answer(&body, head, false);
    while (at < size && !http1_body_is_done(&body)) {
        const char *piece = NULL;
        size_t used, len;

        if (http1_body_take(&body, data + at, MIN_OF(step, size - at), &used, &piece, &len) < 0)
            return SIZE_MAX;
        if (!used)
            abort();
        for (size_t i = 0; i < len; i++)
            *ret_sum = *ret_sum * 31 + (uint8_t)piece[i];
        at += used;
        got += len;
    }
    if (body.until_close && (head->chunked || http1_header(head, "content-length")))
        abort();
    return got;
}

static void check_body(const struct http1_head *head, const char *rest, size_t rest_len)
{
    unsigned sum_one, sum_all;
    size_t one = read_body(head, rest, rest_len, 1, &sum_one);
    size_t all = read_body(head, rest, rest_len, SIZE_MAX, &sum_all);

    if (one != all || (all != SIZE_MAX && sum_one != sum_all))
        abort();
    if (http1_header(head, "content-length") && all > head->content_length)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    _cleanup_free_ char *copy = NULL;
    struct err err = ERR_INIT;
    struct http1_head head;
    size_t scanned = 0;
    ssize_t len = http1_head_length(text, size, &scanned);

    if (len <= 0)
        return 0;
    copy = xcalloc(1, (size_t)len + 1);
    memcpy(copy, text, (size_t)len);
    if (http1_parse_answer(copy, (size_t)len, &head, &err) < 0) {
        if (!err.text[0])
            abort();
        return 0;
    }
    if (head.status < 100 || head.status > 599)
        abort();
    if (head.chunked && (http1_header(&head, "content-length") || head.minor == 0))
        abort();
    if (http1_is_handshake_answer(&head, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") && head.status != 101)
        abort();
    check_body(&head, text + len, size - (size_t)len);
    return 0;
}
