/*
 * A growing byte buffer, born with a maximum. data is always NUL-terminated behind len bytes (so
 * that text can be used as a string); NULL only before the first append.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/base.h"

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max; /* len never grows beyond it */
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})

void buf_done(struct buf *b);
/* 0, or -EMSGSIZE when it would grow beyond max (nothing is appended then). */
int buf_append(struct buf *b, const void *p, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Drop the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* Hand out the text (heap, never NULL), leaving the buffer empty. */
char *buf_take(struct buf *b);

#endif
