/*
 * A growing byte buffer that never grows beyond its maximum. One byte more than len is always
 * allocated and zero, so that data is a string.
 */
#include "base/buf.h"

void buf_done(struct buf *b)
{
    free(b->data);
    *b = BUF_INIT(b->max);
}

static void reserve(struct buf *b, size_t len)
{
    if (len < b->cap)
        return;
    b->data = xgrow(b->data, &b->cap, len + 1, 1);
}

int buf_append(struct buf *b, const void *p, size_t n)
{
    if (n > b->max - b->len)
        return -EMSGSIZE;
    reserve(b, b->len + n);
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    _cleanup_free_ char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    s = xvasprintf(fmt, ap);
    va_end(ap);
    return buf_puts(b, s);
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0)
        return;
    b->len -= n;
    memmove(b->data, b->data + n, b->len);
    b->data[b->len] = '\0';
}

char *buf_take(struct buf *b)
{
    char *text = b->data ? TAKE_PTR(b->data) : xstrdup("");

    *b = BUF_INIT(b->max);
    return text;
}
