/*
 * Time and durations, as numbers and as people write them. The only place that asks the kernel
 * for the time; no time zones but UTC, no locale.
 */
#include "base/clock.h"

#include <time.h>

#include "base/str.h"

#define DURATION_MAX_USEC (UINT64_C(3650) * 86400 * USEC_PER_SEC)
#define ECHO_MAX 80

static uint64_t now_usec(clockid_t id)
{
    struct timespec ts;
    int r = clock_gettime(id, &ts);

    assert(r == 0);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_real_usec(void)
{
    return now_usec(CLOCK_REALTIME);
}

uint64_t clock_mono_usec(void)
{
    return now_usec(CLOCK_MONOTONIC);
}

char *clock_format(uint64_t real_usec, char text[CLOCK_TEXT_MAX])
{
    time_t sec = (time_t)(real_usec / USEC_PER_SEC);
    struct tm tm;
    size_t n;

    gmtime_r(&sec, &tm);
    n = strftime(text, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, CLOCK_TEXT_MAX - n, ".%06uZ", (unsigned)(real_usec % USEC_PER_SEC));
    return text;
}

/* Exactly n digits at *s, between min and max; -1 otherwise. */
static int field(const char **s, int n, int min, int max)
{
    int value = 0;

    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return -1;
        value = value * 10 + (**s - '0');
    }
    return value >= min && value <= max ? value : -1;
}

static bool skip(const char **s, const char *one_of)
{
    if (!**s || !strchr(one_of, **s))
        return false;
    (*s)++;
    return true;
}

/* ".123456789" at *s: microseconds, the rest cut; 0 when there is no fraction. */
static int fraction(const char **s, uint64_t *ret)
{
    uint64_t unit = USEC_PER_SEC / 10;

    *ret = 0;
    if (!skip(s, "."))
        return 0;
    if (**s < '0' || **s > '9')
        return -EINVAL;
    for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
        *ret += unit * (uint64_t)(**s - '0');
    return 0;
}

/* "Z", "+01:00", "-05:30": seconds to take off. */
static int zone(const char **s, int64_t *ret)
{
    int sign = **s == '-' ? -1 : 1;
    int hours, minutes;

    *ret = 0;
    if (skip(s, "Zz"))
        return 0;
    if (!skip(s, "+-"))
        return -EINVAL;
    hours = field(s, 2, 0, 23);
    if (hours < 0 || !skip(s, ":"))
        return -EINVAL;
    minutes = field(s, 2, 0, 59);
    if (minutes < 0)
        return -EINVAL;
    *ret = sign * (hours * 3600 + minutes * 60);
    return 0;
}

/* The date and the time of day, checked by making the same date of the seconds again. */
static int date_time(const char **s, int64_t *ret_sec)
{
    struct tm tm = {0}, check;
    time_t sec;
    int day;

    tm.tm_year = field(s, 4, 1970, 9999) - 1900;
    if (tm.tm_year < 0 || !skip(s, "-"))
        return -EINVAL;
    tm.tm_mon = field(s, 2, 1, 12) - 1;
    if (tm.tm_mon < 0 || !skip(s, "-"))
        return -EINVAL;
    day = tm.tm_mday = field(s, 2, 1, 31);
    if (day < 0 || !skip(s, "Tt "))
        return -EINVAL;
    tm.tm_hour = field(s, 2, 0, 23);
    if (tm.tm_hour < 0 || !skip(s, ":"))
        return -EINVAL;
    tm.tm_min = field(s, 2, 0, 59);
    if (tm.tm_min < 0 || !skip(s, ":"))
        return -EINVAL;
    tm.tm_sec = field(s, 2, 0, 59);
    if (tm.tm_sec < 0)
        return -EINVAL;
    sec = timegm(&tm);
    if (!gmtime_r(&sec, &check) || check.tm_mday != day)
        return -EINVAL;
    *ret_sec = sec;
    return 0;
}

static int clock_parse_raw(const char *s, uint64_t *ret)
{
    int64_t sec, off;
    uint64_t part;

    if (date_time(&s, &sec) < 0 || fraction(&s, &part) < 0 || zone(&s, &off) < 0 || *s)
        return -EINVAL;
    if (sec - off < 0)
        return -EINVAL;
    *ret = (uint64_t)(sec - off) * USEC_PER_SEC + part;
    return 0;
}

int clock_parse(const char *text, uint64_t *ret_usec, struct err *err)
{
    _cleanup_free_ char *echo = NULL;

    if (text && clock_parse_raw(text, ret_usec) == 0)
        return 0;
    echo = str_escape(text ? text : "", text ? strlen(text) : 0, ECHO_MAX);
    return err_set(err, -EINVAL, "'%s' is not a time; write it like 2026-11-30T14:37:48Z", echo);
}

static const struct duration_unit {
    const char *name;
    uint64_t usec;
} units[] = {
    {"d", 86400 * USEC_PER_SEC},
    {"h", 3600 * USEC_PER_SEC},
    {"m", 60 * USEC_PER_SEC},
    {"s", USEC_PER_SEC},
    {"ms", USEC_PER_MSEC},
    {"us", 1},
};

/* A number that cannot overflow when it is multiplied by a day. */
static int number(const char **s, uint64_t *ret)
{
    uint64_t n = 0;

    if (**s < '0' || **s > '9')
        return -EINVAL;
    for (; **s >= '0' && **s <= '9'; (*s)++)
        n = MIN_OF(n * 10 + (uint64_t)(**s - '0'), DURATION_MAX_USEC + 1);
    *ret = n;
    return 0;
}

/* total + n * unit, held just above the maximum. */
static uint64_t add(uint64_t total, uint64_t n, uint64_t unit)
{
    if (n > DURATION_MAX_USEC / unit)
        return DURATION_MAX_USEC + 1;
    return MIN_OF(total + n * unit, DURATION_MAX_USEC + 1);
}

/* "1h30m": units in falling order, each once, a blank allowed between. */
static int with_units(const char *s, uint64_t *ret)
{
    size_t next = 0;
    uint64_t total = 0, n;

    do {
        size_t letters;

        if (number(&s, &n) < 0)
            return -EINVAL;
        letters = strspn(s, "dhmsu");
        while (next < ARRAY_LEN(units) &&
            (strlen(units[next].name) != letters || strncmp(units[next].name, s, letters) != 0))
            next++;
        if (next == ARRAY_LEN(units))
            return -EINVAL;
        total = add(total, n, units[next++].usec);
        s += letters;
        if (*s == ' ' && s[1])
            s++;
    } while (*s);
    *ret = total;
    return 0;
}

/* Slurm's forms: up to three numbers between colons; what the first one is depends on the rest. */
static int slurm(const char *s, uint64_t *ret)
{
    uint64_t part[3] = {0}, days = 0;
    size_t n = 0, first;
    bool has_days = strchr(s, '-') != NULL;
    uint64_t total;

    if (has_days && (number(&s, &days) < 0 || !skip(&s, "-")))
        return -EINVAL;
    do {
        if (n == ARRAY_LEN(part) || number(&s, &part[n++]) < 0)
            return -EINVAL;
    } while (skip(&s, ":"));
    if (*s)
        return -EINVAL;
    /* In units[]: hours are 1, minutes 2, seconds 3. */
    first = has_days || n == 3 ? 1 : 2;
    total = add(0, days, units[0].usec);
    for (size_t i = 0; i < n; i++)
        total = add(total, part[i], units[first + i].usec);
    *ret = total;
    return 0;
}

int duration_parse(const char *text, uint64_t *ret_usec, struct err *err)
{
    _cleanup_free_ char *echo = NULL;
    uint64_t usec = 0;
    int r = -EINVAL;

    if (text)
        r = strpbrk(text, "dhmsu") ? with_units(text, &usec) : slurm(text, &usec);
    if (r == 0 && usec <= DURATION_MAX_USEC) {
        *ret_usec = usec;
        return 0;
    }
    echo = str_escape(text ? text : "", text ? strlen(text) : 0, ECHO_MAX);
    if (r == 0)
        return err_set(err, -EINVAL, "'%s' is longer than 10 years", echo);
    return err_set(err, -EINVAL,
        "'%s' is not a duration; write 90s, 30m, 8h, 2d, 1h30m, or minutes, "
        "HH:MM:SS, D-HH:MM:SS",
        echo);
}

char *duration_format(uint64_t usec, char text[DURATION_TEXT_MAX])
{
    size_t i = 0;
    uint64_t rest;
    int n;

    if (usec == 0) {
        snprintf(text, DURATION_TEXT_MAX, "0s");
        return text;
    }
    while (usec < units[i].usec)
        i++;
    n = snprintf(
        text, DURATION_TEXT_MAX, "%ju%s", (uintmax_t)(usec / units[i].usec), units[i].name);
    if (i + 1 == ARRAY_LEN(units))
        return text;
    rest = usec % units[i].usec / units[i + 1].usec;
    if (rest)
        snprintf(
            text + n, DURATION_TEXT_MAX - (size_t)n, " %ju%s", (uintmax_t)rest, units[i + 1].name);
    return text;
}
