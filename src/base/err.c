/* Errors with text on the caller's stack. Owns nothing. */
#define ERR_ITSELF
#include "base/err.h"

PRINTF_LIKE(4, 0)
static int set_va(struct err *err, int code, bool with_errno, const char *fmt, va_list ap)
{
    assert(code < 0);
    char text[sizeof(err->text)]; /* an argument may be err's own text */

    if (!err)
        return code;
    vsnprintf(text, sizeof(text), fmt, ap);
    if (with_errno) {
        size_t n = strlen(text);
        char tmp[96];
        snprintf(text + n, sizeof(text) - n, ": %s", strerror_r(-code, tmp, sizeof(tmp)));
    }
    err->code = code;
    memcpy(err->text, text, sizeof(text));
    return code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_va(err, code, false, fmt, ap);
    va_end(ap);
    return code;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_va(err, code, true, fmt, ap);
    va_end(ap);
    return code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char old[sizeof(err->text)];
    va_list ap;
    size_t n;

    if (!err)
        return -EIO;
    memcpy(old, err->text, sizeof(old));
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    n = strlen(err->text);
    snprintf(err->text + n, sizeof(err->text) - n, ": %s", old);
    return err->code < 0 ? err->code : -EIO;
}

const char *err_text(const struct err *err)
{
    if (err->text[0])
        return err->text;
    return err->code ? strerror(-err->code) : "no error";
}
