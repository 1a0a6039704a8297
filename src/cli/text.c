/* Values of API documents as people read them. */
#include "cli/text.h"

#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

#define TEXT_MAX 4096
#define WORDS_MAX (1024 * 1024)
#define NO_TIME UINT64_MAX

char *text_clean(const char *s)
{
    return str_escape(s, strlen(s), TEXT_MAX);
}

char *text_member(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    if (json_is_string(v) && json_string_length(v) > 0)
        return text_clean(json_string_value(v));
    if (json_is_integer(v))
        return xasprintf("%lld", (long long)json_integer_value(v));
    return xstrdup("-");
}

char *text_cpus(const json_t *r)
{
    double n = json_number_value(json_object_get(r, "cpus"));

    return xasprintf("%.10g", n);
}

char *text_mem(const json_t *r)
{
    char text[SIZE_TEXT_MAX];

    return xstrdup(size_format(json_u64_or(r, "mem", 0), text));
}

char *text_resources(const json_t *r)
{
    _cleanup_free_ char *cpus = text_cpus(r), *mem = text_mem(r);
    uint64_t gpus = json_u64_or(r, "gpus", 0);
    const char *s = str_eq(cpus, "1") ? "" : "s";

    if (gpus == 0)
        return xasprintf("%s CPU%s, %s", cpus, s, mem);
    return xasprintf(
        "%s CPU%s, %s, %llu GPU%s", cpus, s, mem, (unsigned long long)gpus, gpus == 1 ? "" : "s");
}

char *text_usec(uint64_t usec, bool utc)
{
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    char text[64];
    struct tm tm;

    if (!(utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
        return xstrdup("-");
    strftime(text, sizeof(text), utc ? "%Y-%m-%d %H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &tm);
    return xstrdup(text);
}

uint64_t text_read_time(const json_t *obj, const char *key, uint64_t missing)
{
    const char *text = json_str_or(obj, key, NULL);
    uint64_t usec;

    return text && clock_parse(text, &usec, NULL) == 0 ? usec : missing;
}

char *text_time(const json_t *obj, const char *key, bool utc)
{
    uint64_t usec = text_read_time(obj, key, NO_TIME);

    return usec != NO_TIME ? text_usec(usec, utc) : xstrdup("-");
}

char *text_span(const json_t *obj, const char *from, const char *to)
{
    char text[DURATION_TEXT_MAX];
    uint64_t a = text_read_time(obj, from, NO_TIME), b;

    if (a == NO_TIME)
        return xstrdup("-");
    b = text_read_time(obj, to, clock_real_usec());
    b = b > a ? (b - a) / USEC_PER_SEC * USEC_PER_SEC : 0;
    return xstrdup(duration_format(b, text));
}

char *text_state(const json_t *session)
{
    _cleanup_free_ char *state = text_member(session, "state");
    _cleanup_free_ char *result = text_member(session, "result");

    if (!str_eq(state, "ended") || str_eq(result, "-"))
        return TAKE_PTR(state);
    return xstrdup(result);
}

char *text_reason(const json_t *session)
{
    return text_clean(json_str_or(json_object_get(session, "reason"), "text", ""));
}

char *text_quote(const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "-_./:=@%+,";
    struct buf b = BUF_INIT(WORDS_MAX);

    if (word[0] && strspn(word, safe) == strlen(word))
        return xstrdup(word);
    buf_puts(&b, "'");
    for (; *word; word++)
        buf_append(&b, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    buf_puts(&b, "'");
    return buf_take(&b);
}

char *text_words(const json_t *list)
{
    struct buf b = BUF_INIT(WORDS_MAX);
    _cleanup_free_ char *text = NULL;
    const json_t *word;
    size_t i;

    json_array_foreach (list, i, word) {
        _cleanup_free_ char *quoted = text_quote(
            json_is_string(word) ? json_string_value(word) : "");
        buf_printf(&b, "%s%s", i ? " " : "", quoted);
    }
    text = buf_take(&b);
    return text_clean(text);
}

char *text_numbers(const json_t *list)
{
    struct buf b = BUF_INIT(TEXT_MAX);
    const json_t *n;
    size_t i;

    json_array_foreach (list, i, n)
        buf_printf(&b, "%s%lld", i ? "," : "", (long long)json_integer_value(n));
    return buf_take(&b);
}
