/*
 * The one error idiom: functions return 0 or a negative errno; when a person will read why, the
 * last parameter is a struct err on the caller's stack. err may be NULL everywhere.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/base.h"

struct err {
    int code; /* negative errno, 0 when nothing failed */
    char text[256];
};

#define ERR_INIT ((struct err){0})

/* Set code (negative errno) and text; return code. Text is cut at the buffer's end. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same, with ": strerror(-code)" appended. */
int err_sys(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Put "prefix: " before the text that is there; return err's code (-EIO if err is NULL). */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* err's text, or the errno's when there is none; never NULL. */
const char *err_text(const struct err *err);

/* For the analyzer, which does not see into another file: a code that comes back is negative, so
 * what stands behind "if (r < 0) return r;" is reached without an error only. */
#if defined(__clang_analyzer__) && !defined(ERR_ITSELF)
static inline int err_code_(int code)
{
    if (code >= 0)
        __builtin_unreachable();
    return code;
}
#define err_set(err, code, ...) err_code_((err_set)(err, code, __VA_ARGS__))
#define err_sys(err, code, ...) err_code_((err_sys)(err, code, __VA_ARGS__))
#define err_prefix(err, ...) err_code_((err_prefix)(err, __VA_ARGS__))
#endif

#endif
