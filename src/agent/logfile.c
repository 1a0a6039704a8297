/* Conmon's log format to frames. Owns nothing, touches no file. */
#include "agent/logfile.h"

#include <time.h>

#include "base/str.h"
#include "wire/logframe.h"

/* "2026-11-30T14:37:48.123456789+00:00 " */
#define STAMP_LEN 35
#define MERGE_MAX (64 * 1024)

static int digits(const char *s, int n)
{
    int v = 0;

    while (n-- > 0) {
        if (*s < '0' || *s > '9')
            return -1;
        v = v * 10 + (*s++ - '0');
    }
    return v;
}

static int parse_stamp(const char *s, uint64_t *ret)
{
    struct tm tm = {
        .tm_year = digits(s, 4) - 1900,
        .tm_mon = digits(s + 5, 2) - 1,
        .tm_mday = digits(s + 8, 2),
        .tm_hour = digits(s + 11, 2),
        .tm_min = digits(s + 14, 2),
        .tm_sec = digits(s + 17, 2),
    };
    int nsec = digits(s + 20, 9), zone = digits(s + 30, 2) * 60 + digits(s + 33, 2);
    time_t t;

    if (s[10] != 'T' || s[19] != '.' || nsec < 0 || (s[29] != '+' && s[29] != '-'))
        return -EINVAL;
    t = timegm(&tm);
    if (t < 0)
        return -EINVAL;
    t -= (s[29] == '+' ? 60 : -60) * zone;
    *ret = (uint64_t)t * 1000000 + (uint64_t)nsec / 1000;
    return 0;
}

ssize_t logline_parse(const char *text, size_t len, struct logline *ret)
{
    const char *nl = memchr(text, '\n', len), *p = text + STAMP_LEN;

    if (!nl)
        return 0;
    if (nl - text < STAMP_LEN + 10 || *p != ' ' || parse_stamp(text, &ret->usec) < 0)
        return -EINVAL;
    p++;
    if (memcmp(p, "stdout ", 7) == 0)
        ret->channel = 1;
    else if (memcmp(p, "stderr ", 7) == 0)
        ret->channel = 2;
    else
        return -EINVAL;
    p += 7;
    if ((*p != 'F' && *p != 'P') || p[1] != ' ')
        return -EINVAL;
    ret->newline = *p == 'F';
    ret->data = p + 2;
    ret->len = (size_t)(nl - ret->data);
    return nl + 1 - text;
}

static void flush(struct buf *out, struct logframe *f, struct buf *part)
{
    if (part->len == 0)
        return;
    f->len = (uint32_t)part->len;
    logframe_append(out, f, part->data);
    part->len = 0;
}

size_t logfile_to_frames(const char *text, size_t len, uint64_t base, struct buf *out)
{
    struct buf part = BUF_INIT(LOGFRAME_DATA_MAX);
    struct logframe f = {0};
    size_t at = 0;

    while (at < len) {
        struct logline l;
        ssize_t n = logline_parse(text + at, len - at, &l);
        if (n == 0)
            break;
        if (n < 0) {
            const char *nl = memchr(text + at, '\n', len - at);
            at = (size_t)(nl - text) + 1;
            continue;
        }
        if (f.channel != l.channel || part.len + l.len + 1 > MERGE_MAX || l.usec > f.usec + 100000)
            flush(out, &f, &part);
        if (part.len == 0) {
            f.channel = l.channel;
            f.usec = l.usec;
        }
        buf_append(&part, l.data, l.len);
        if (l.newline)
            buf_append(&part, "\n", 1);
        at += (size_t)n;
        f.next = base + at;
    }
    flush(out, &f, &part);
    buf_done(&part);
    return at;
}
