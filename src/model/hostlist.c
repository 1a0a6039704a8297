/*
 * Slurm's way to write many names at once. Brackets are resolved from the left: each number takes
 * the place of its bracket, and what is behind is resolved in turn.
 */
#include "model/topology.h"

#define NUMBER_DIGITS_MAX 9
#define BRACKETS_MAX 3

struct expansion {
    size_t left; /* names that may still come */
    int (*fn)(const char *name, void *arg, struct err *err);
    void *arg;
};

static int expand(struct expansion *x, const char *text, unsigned depth, struct err *err);

/* "07" or "12-15" at *at: the ends and the width. */
static int read_range(const char **at, uint32_t *lo, uint32_t *hi, int *width, struct err *err)
{
    char digits[NUMBER_DIGITS_MAX + 1];
    uint32_t *to[] = {lo, hi};

    for (int i = 0; i < 2; i++) {
        size_t len = strspn(*at, "0123456789");

        if (len == 0 || len > NUMBER_DIGITS_MAX)
            return err_set(err, -EINVAL, "numbers in brackets are like [1-3,7]");
        memcpy(digits, *at, len);
        digits[len] = '\0';
        *to[i] = (uint32_t)strtoul(digits, NULL, 10);
        if (i == 0)
            *width = (int)len;
        *at += len;
        if (i == 0 && **at != '-') {
            *hi = *lo;
            return 0;
        }
        *at += i == 0;
    }
    return *lo <= *hi ? 0 : err_set(err, -EINVAL, "the range %u-%u goes backwards", *lo, *hi);
}

static int expand_bracket(
    struct expansion *x, const char *text, const char *open, unsigned depth, struct err *err)
{
    const char *close = strchr(open, ']'), *at = open + 1;

    if (!close)
        return err_set(err, -EINVAL, "a '[' is not closed");
    if (depth == BRACKETS_MAX)
        return err_set(err, -EINVAL, "more than %d brackets in a name", BRACKETS_MAX);
    do {
        uint32_t lo = 0, hi = 0;
        int width = 0, r = read_range(&at, &lo, &hi, &width, err);

        if (r == 0 && *at != ',' && at != close)
            r = err_set(err, -EINVAL, "numbers in brackets are like [1-3,7]");
        if (r == 0 && hi - lo >= x->left)
            r = err_set(err, -E2BIG, "too many names");
        for (uint32_t n = lo; r == 0 && n <= hi; n++) {
            _cleanup_free_ char *name = xasprintf(
                "%.*s%0*u%s", (int)(open - text), text, width, n, close + 1);
            r = expand(x, name, depth + 1, err);
        }
        if (r < 0)
            return r;
    } while (*at++ == ',');
    return 0;
}

static int expand(struct expansion *x, const char *text, unsigned depth, struct err *err)
{
    const char *open = strchr(text, '[');

    if (open)
        return expand_bracket(x, text, open, depth, err);
    if (x->left-- == 0)
        return err_set(err, -E2BIG, "too many names");
    return x->fn(text, x->arg, err);
}

/* Where the first of the list ends: at a comma outside of brackets. */
static size_t item_len(const char *text)
{
    size_t n = 0;

    for (int depth = 0; text[n] && (depth > 0 || text[n] != ','); n++)
        depth += (text[n] == '[') - (text[n] == ']');
    return n;
}

int hostlist_each(const char *text, size_t max,
    int (*fn)(const char *name, void *arg, struct err *err), void *arg, struct err *err)
{
    struct expansion x = {max, fn, arg};

    for (;;) {
        size_t len = item_len(text);
        _cleanup_free_ char *item = xstrndup(text, len);
        int r = expand(&x, item, 0, err);

        if (r < 0)
            return r;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}
