/*
 * Strings: comparison that knows NULL, numbers and sizes from people, untrusted bytes made
 * printable, names and UUIDs. Pure functions over bytes; nothing here keeps state or logs.
 * Everything that echoes its input in an error escapes it first.
 */
#include "base/str.h"

#include <sys/random.h>

#define ECHO_MAX 80 /* bytes of untrusted text in an error */
#define DISTANCE_MAX 64

bool str_eq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
    return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = s ? strlen(s) : 0;
    size_t m = strlen(suffix);

    return s && n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool str_is_empty(const char *s)
{
    return !s || !*s;
}

int str_copy(char *dst, size_t size, const char *src)
{
    size_t n = strlen(src);

    assert(size > 0);
    if (n >= size) {
        dst[0] = '\0';
        return -ENAMETOOLONG;
    }
    memcpy(dst, src, n + 1);
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The digits at s; -EINVAL if there are none, -ERANGE above max. *end is behind the last one. */
static int digits_parse(const char *s, uint64_t max, uint64_t *ret, const char **end)
{
    uint64_t n = 0;
    bool over = false;

    if (!is_digit(*s))
        return -EINVAL;
    for (; is_digit(*s); s++) {
        unsigned digit = (unsigned)(*s - '0');

        if (n > (max - MIN_OF(digit, max)) / 10 || digit > max)
            over = true;
        else
            n = n * 10 + digit;
    }
    *end = s;
    if (over)
        return -ERANGE;
    *ret = n;
    return 0;
}

int str_to_u64(const char *s, uint64_t max, uint64_t *ret)
{
    const char *end = s;
    uint64_t n = 0;
    int r;

    if (!s)
        return -EINVAL;
    r = digits_parse(s, max, &n, &end);
    if (*end)
        return -EINVAL;
    if (r < 0)
        return r;
    *ret = n;
    return 0;
}

int str_to_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = s && *s == '-';
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t magnitude;
    int64_t n;
    int r;

    r = str_to_u64(negative ? s + 1 : s, limit, &magnitude);
    if (r < 0)
        return r;
    n = negative ? (int64_t)-magnitude : (int64_t)magnitude;
    if (n < min || n > max)
        return -ERANGE;
    *ret = n;
    return 0;
}

/* Shift of a unit letter, -1 if it is none. */
static int unit_shift(char c)
{
    static const char units[] = "kmgtpKMGTP";
    const char *at = c ? strchr(units, c) : NULL;

    return at ? 10 * (int)((at - units) % 5 + 1) : -1;
}

/* ".5" behind the whole number: *ret of *ret_scale; no fraction is 0 of 1. */
static int fraction_parse(const char **s, uint64_t *ret, uint64_t *ret_scale)
{
    const char *p = *s;

    *ret = 0;
    *ret_scale = 1;
    if (*p != '.')
        return 0;
    if (!is_digit(*++p))
        return -EINVAL;
    for (; is_digit(*p); p++) {
        if (*ret_scale >= UINT64_C(1000000000000000))
            continue; /* less than a byte of a petabyte */
        *ret = *ret * 10 + (uint64_t)(*p - '0');
        *ret_scale *= 10;
    }
    *s = p;
    return 0;
}

static int size_parse_raw(const char *s, uint64_t *ret)
{
    const uint64_t max = UINT64_C(1) << 60;
    uint64_t whole, part, scale;
    int shift, r;
    bool over;

    r = digits_parse(s, max, &whole, &s);
    if (r == -EINVAL)
        return r;
    over = r == -ERANGE;
    r = fraction_parse(&s, &part, &scale);
    if (r < 0)
        return r;
    shift = unit_shift(*s);
    if (shift < 0 && scale > 1)
        return -EINVAL;
    if (shift > 0 && (*++s == 'i' || *s == 'I') && (s[1] != 'b' && s[1] != 'B'))
        return -EINVAL;
    if (shift > 0 && (*s == 'i' || *s == 'I'))
        s++;
    if (*s == 'b' || *s == 'B')
        s++;
    if (*s)
        return -EINVAL;
    shift = MAX_OF(shift, 0);
    if (over || whole > max >> shift)
        return -ERANGE;
    whole = (whole << shift) + (uint64_t)(((unsigned __int128)part << shift) / scale);
    if (whole > max)
        return -ERANGE;
    *ret = whole;
    return 0;
}

int size_parse(const char *s, uint64_t *ret_bytes, struct err *err)
{
    _cleanup_free_ char *echo = NULL;
    int r = s ? size_parse_raw(s, ret_bytes) : -EINVAL;

    if (r == 0)
        return 0;
    echo = str_escape(s ? s : "", s ? strlen(s) : 0, ECHO_MAX);
    if (r == -ERANGE)
        return err_set(err, r, "'%s' is too large; the most is 1024P", echo);
    return err_set(
        err, r, "'%s' is not a size; write bytes or, for example, 512M, 16GiB, 1.5T", echo);
}

char *size_format(uint64_t bytes, char text[SIZE_TEXT_MAX])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    uint64_t whole, tenth, one;

    while (unit + 1 < ARRAY_LEN(names) && bytes >> (10 * (unit + 1)))
        unit++;
    one = UINT64_C(1) << (10 * unit);
    whole = bytes / one;
    tenth = (bytes % one * 10 + one / 2) / one;
    if (tenth == 10) {
        tenth = 0;
        whole++;
    }
    if (whole == 1024 && unit + 1 < ARRAY_LEN(names)) {
        whole = 1;
        unit++;
    }
    if (tenth)
        snprintf(text, SIZE_TEXT_MAX, "%u.%u %s", (unsigned)whole, (unsigned)tenth, names[unit]);
    else
        snprintf(text, SIZE_TEXT_MAX, "%u %s", (unsigned)whole, names[unit]);
    return text;
}

/* Length of the UTF-8 sequence at s and its code point; 0 when it is not one (RFC 3629). */
static size_t utf8_decode(const unsigned char *s, size_t len, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n;
    uint32_t c;

    if (s[0] < 0x80) {
        *ret = s[0];
        return 1;
    }
    n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
        return 0;
    c = s[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fU);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return n;
}

/* C0, DEL, C1, and the characters that break or reorder a line on the screen. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) ||
        (c >= 0x2066 && c <= 0x2069);
}

/* Length of the printable character at s, 0 when it must be escaped. */
static size_t clean_len(const char *s, size_t len)
{
    uint32_t c;
    size_t n = utf8_decode((const unsigned char *)s, len, &c);

    return n && !is_control(c) ? n : 0;
}

char *str_escape(const char *s, size_t len, size_t max)
{
    size_t room = len > max / 4 ? max : len * 4;
    char *out = xcalloc(1, room + 8);
    size_t n = 0, cut = 0;

    for (size_t i = 0; i < len;) {
        size_t clean = clean_len(s + i, len - i);
        size_t width = clean ? clean : 4;

        if (n + width > max) {
            memcpy(out + cut, "...", 4);
            out[MIN_OF(cut + 3, max)] = '\0';
            return out;
        }
        if (clean)
            memcpy(out + n, s + i, clean);
        else
            snprintf(out + n, 5, "\\x%02x", (unsigned char)s[i]);
        n += width;
        i += clean ? clean : 1;
        if (n + 3 <= max)
            cut = n;
    }
    out[n] = '\0';
    return out;
}

bool str_is_clean(const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = clean_len(s + i, len - i);

        if (!n)
            return false;
        i += n;
    }
    return true;
}

static bool is_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int name_check(const char *what, const char *name, struct err *err)
{
    _cleanup_free_ char *echo = NULL;
    size_t len = name ? strlen(name) : 0;

    if (len == 0)
        return err_set(err, -EINVAL, "%s is empty", what);
    echo = str_escape(name, len, ECHO_MAX);
    if (len > NAME_MAX_LEN)
        return err_set(
            err, -EINVAL, "%s '%s' is longer than %d characters", what, echo, NAME_MAX_LEN);
    if (!is_alnum(name[0]))
        return err_set(err, -EINVAL, "%s '%s' must start with a letter or digit", what, echo);
    for (size_t i = 1; i < len; i++)
        if (!is_alnum(name[i]) && !strchr("-_.", name[i]))
            return err_set(err, -EINVAL, "%s '%s' may have only letters, digits, '-', '_' and '.'",
                what, echo);
    return 0;
}

unsigned str_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned row[DISTANCE_MAX + 1];

    if (n > DISTANCE_MAX || m > DISTANCE_MAX)
        return DISTANCE_MAX;
    for (unsigned j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 0; i < n; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < m; j++) {
            unsigned change = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            row[j + 1] = MIN_OF(change, MIN_OF(row[j], diagonal) + 1);
        }
    }
    return row[m];
}

void uuid_make(char text[UUID_TEXT_LEN + 1])
{
    unsigned char b[16];
    size_t at = 0;

    if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
        abort(); /* cannot happen for 256 bytes or less: random(7) */
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(b); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        snprintf(text + at, 3, "%02x", b[i]);
        at += 2;
    }
}

bool uuid_is_valid(const char *text)
{
    if (!text || strlen(text) != UUID_TEXT_LEN)
        return false;
    for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = is_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f');

        if (dash ? text[i] != '-' : !hex)
            return false;
    }
    return true;
}

bool digest_is_valid(const char *text)
{
    if (!str_starts(text, "sha256:") || strlen(text) != 7 + 64)
        return false;
    return strspn(text + 7, "0123456789abcdef") == 64;
}
