/*
 * The small vocabulary that every file uses: cleanup at the declaration, handing a value out,
 * allocation that never fails. Knows nothing of Muster.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define UNUSED __attribute__((unused))

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

/* Run fn(&variable) when the variable's scope ends. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

/* Hand a value out of a scope whose cleanup would otherwise take it. */
#define TAKE_PTR(p) \
    ({ \
        __typeof__(p) take_ptr_ = (p); \
        (p) = NULL; \
        take_ptr_; \
    })
#define TAKE_FD(fd) \
    ({ \
        int take_fd_ = (fd); \
        (fd) = -1; \
        take_fd_; \
    })

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
}

/* Allocation: zeroed, and aborts the process when there is no memory. All free with free(3). */
void *xcalloc(size_t n, size_t size);
#define xnew(type) ((type *)xcalloc(1, sizeof(type)))
#define xnew_array(type, n) ((type *)xcalloc((n), sizeof(type)))
/* Grow an array to hold at least want elements; *cap is the count it can hold now. */
void *xgrow(void *array, size_t *cap, size_t want, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
void *xmemdup(const void *p, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);
char *xvasprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);

#endif
