/*
 * Allocation that aborts instead of failing: no caller has an out-of-memory path. Sizes that come
 * from outside are bounded by the callers before they get here.
 */
#include "base/base.h"

static void *or_die(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return or_die(calloc(n ? n : 1, size ? size : 1));
}

void *xgrow(void *array, size_t *cap, size_t want, size_t size)
{
    size_t n;

    if (want <= *cap)
        return array;
    n = *cap ? *cap : 8;
    while (n < want)
        n *= 2;
    array = or_die(reallocarray(array, n, size));
    memset((char *)array + *cap * size, 0, (n - *cap) * size);
    *cap = n;
    return array;
}

char *xstrdup(const char *s)
{
    return s ? or_die(strdup(s)) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    return or_die(strndup(s, n));
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xcalloc(1, n);

    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *xvasprintf(const char *fmt, va_list ap)
{
    char *s = NULL;

    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    return or_die(s);
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = xvasprintf(fmt, ap);
    va_end(ap);
    return s;
}
