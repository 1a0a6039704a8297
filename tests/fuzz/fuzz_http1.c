/*
 * Request heads and bodies from an attacker. How the bytes are cut must not change what is read,
 * and what is taken must be unambiguous: one length or chunks, never both.
 */
#include "net/http1.h"
#include "net/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Length of the head when the bytes come step by step. */
static ssize_t measure(const char *data, size_t size, size_t step)
{
    size_t scanned = 0;

    for (size_t len = MIN_OF(step, size);; len = MIN_OF(len + step, size)) {
        ssize_t n = http1_head_length(data, len, &scanned);

        if (n || len == size)
            return n;
    }
}

/* Bytes of the body and a sum over them; SIZE_MAX when it is refused. */
static size_t read_body(
    const struct http1_head *head, const char *data, size_t size, size_t step, unsigned *ret_sum)
{
    struct http1_body body;
    size_t at = 0, got = 0;

    *ret_sum = 0;
    http1_body_init(&body, head);
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
    return got;
}

static void check_head(const struct http1_head *head, const char *rest, size_t rest_len)
{
    unsigned sum_one, sum_all;
    size_t one, all;

    if (head->chunked &&
        (head->content_length || http1_header(head, "content-length") || head->minor == 0))
        abort();
    all = read_body(head, rest, rest_len, SIZE_MAX, &sum_all);
    one = read_body(head, rest, rest_len, 1, &sum_one);
    if (all != one || (all != SIZE_MAX && sum_all != sum_one))
        abort();
    if (!head->chunked && all > head->content_length)
        abort();
}

static void check_path(char *target)
{
    char *path, *query;
    _cleanup_free_ char *value = NULL;

    if (uri_split(target, &path, &query, NULL) < 0)
        return;
    if (path[0] != '/' || strstr(path, "/../") || strstr(path, "/./"))
        abort();
    if (strlen(path) >= 3 && strcmp(path + strlen(path) - 3, "/..") == 0)
        abort();
    value = uri_query_get(query, "q");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    _cleanup_free_ char *copy = NULL;
    struct err err = ERR_INIT;
    struct http1_head head;
    unsigned status = 0;
    ssize_t len = measure(text, size, SIZE_MAX);

    /* Too long or bad may be noticed sooner or later, but a head is a head. */
    if ((len > 0) != (measure(text, size, 1) > 0) || (len > 0 && measure(text, size, 7) != len))
        abort();
    if (len <= 0)
        return 0;
    copy = xcalloc(1, (size_t)len + 1);
    memcpy(copy, text, (size_t)len);
    if (http1_parse_head(copy, (size_t)len, &head, &status, &err) < 0) {
        if (!err.text[0] || status < 400)
            abort(); /* every refusal says why */
        return 0;
    }
    check_head(&head, text + len, size - (size_t)len);
    check_path(head.target);
    return 0;
}
