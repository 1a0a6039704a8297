/* Local times by strptime(3) and mktime(3). */
#include "cli/moment.h"

#include <ctype.h>
#include <time.h>

#include "base/clock.h"

static bool is_local(const char *text, const char *format, struct tm *tm)
{
    const char *end = strptime(text, format, tm);

    return end && *end == '\0';
}

/* The time of day that comes next. */
static int next_time(const char *text, uint64_t now_usec, struct tm *ret)
{
    time_t now = (time_t)(now_usec / USEC_PER_SEC);
    struct tm tm;

    localtime_r(&now, &tm);
    tm.tm_sec = 0;
    if (!is_local(text, "%H:%M", &tm) && !is_local(text, "%H:%M:%S", &tm))
        return -EINVAL;
    tm.tm_isdst = -1;
    *ret = tm;
    if (mktime(&tm) <= now)
        ret->tm_mday++;
    return 0;
}

static int local_time(const char *text, uint64_t now_usec, uint64_t *ret_usec)
{
    static const char *const formats[] = {
        "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"};
    struct tm tm = {.tm_isdst = -1};
    bool found = false;
    time_t t;

    for (size_t i = 0; !found && i < ARRAY_LEN(formats); i++) {
        tm = (struct tm){.tm_isdst = -1};
        found = is_local(text, formats[i], &tm);
    }
    if (!found && next_time(text, now_usec, &tm) < 0)
        return -EINVAL;
    t = mktime(&tm);
    if (t < 0)
        return -EINVAL;
    *ret_usec = (uint64_t)t * USEC_PER_SEC;
    return 0;
}

/* Not "30", which could be anything, and not "18:00", which is a time of day here. */
static bool is_duration(const char *text, uint64_t *ret)
{
    size_t len = strlen(text);

    return len > 0 && isalpha((unsigned char)text[len - 1]) && text[len - 1] != 'Z' &&
        duration_parse(text, ret, NULL) == 0;
}

int moment_parse(const char *text, uint64_t now_usec, uint64_t *ret_usec, struct err *err)
{
    uint64_t span;

    if (is_duration(text, &span))
        *ret_usec = now_usec + span;
    else if (local_time(text, now_usec, ret_usec) < 0 && clock_parse(text, ret_usec, NULL) < 0)
        return err_set(err, -EINVAL,
            "must be a time like 2h30m (from now), 18:00, 2026-12-24T18:00 or "
            "2026-12-24T18:00:00+09:00");
    return 0;
}
