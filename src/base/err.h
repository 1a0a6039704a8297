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

#endif
