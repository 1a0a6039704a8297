/*
 * What requests and answers have in common: lines, header fields, and how long the body is. Owns
 * nothing; every byte is from outside.
 */
#include "base/str.h"
#include "net/http1_internal.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_token_char(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

ssize_t http1_head_length(const char *data, size_t len, size_t *scanned)
{
    size_t at = *scanned;

    if (len && !at && !is_letter(data[0]))
        return -EPROTO;
    while (at < len) {
        const char *lf = memchr(data + at, '\n', len - at);

        if (!lf)
            break;
        at = (size_t)(lf - data) + 1;
        if (at < 2 || lf[-1] != '\r')
            return -EINVAL;
        if (at >= 4 && lf[-3] == '\r' && lf[-2] == '\n') {
            return at > HTTP1_HEAD_MAX ? -EMSGSIZE : (ssize_t)at;
        }
    }
    *scanned = len;
    return len > HTTP1_HEAD_MAX ? -EMSGSIZE : 0;
}

int http1_refuse(struct err *err, unsigned *ret_status, unsigned status, const char *text)
{
    *ret_status = status;
    return err_set(err, -EINVAL, "%s", text);
}

char *http1_take_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\n'); /* is there: the head was measured */

    end[-1] = '\0';
    *at = end + 1;
    return line;
}

bool http1_is_value(const char *s)
{
    for (; *s; s++) {
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
            return false;
    }
    return true;
}

static char *trim(char *s)
{
    size_t len;

    s += strspn(s, " \t");
    len = strlen(s);
    while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
        s[--len] = '\0';
    return s;
}

int http1_take_field(char *line, struct http1_head *head, unsigned *ret_status, struct err *err)
{
    char *p = line;

    for (; is_token_char(*p); p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    if (p == line || *p != ':')
        return http1_refuse(err, ret_status, 400, "a header line is not 'name: value'");
    *p++ = '\0';
    p = trim(p);
    if (!http1_is_value(p))
        return http1_refuse(err, ret_status, 400, "a header value has a control character");
    if (head->header_count == HTTP1_HEADERS_MAX)
        return http1_refuse(err, ret_status, 431, "too many header lines");
    head->headers[head->header_count++] = (struct http1_header){line, p};
    return 0;
}

const char *http1_header(const struct http1_head *head, const char *name)
{
    for (unsigned i = 0; i < head->header_count; i++) {
        if (str_eq(head->headers[i].name, name))
            return head->headers[i].value;
    }
    return NULL;
}

unsigned http1_count(const struct http1_head *head, const char *name)
{
    unsigned count = 0;

    for (unsigned i = 0; i < head->header_count; i++)
        count += str_eq(head->headers[i].name, name);
    return count;
}

int http1_check_framing(struct http1_head *head, unsigned *ret_status, struct err *err)
{
    const char *length = http1_header(head, "content-length");
    const char *coding = http1_header(head, "transfer-encoding");

    if (coding && (length || head->minor == 0))
        return http1_refuse(err, ret_status, 400,
            "'transfer-encoding' goes with neither 'content-length' nor HTTP/1.0");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return http1_refuse(
            err, ret_status, 501, "the only transfer coding understood is 'chunked'");
    if (length &&
        (strspn(length, "0123456789") != strlen(length) ||
            str_to_u64(length, INT64_MAX, &head->content_length) < 0))
        return http1_refuse(err, ret_status, 400, "'content-length' is not a number");
    head->chunked = coding;
    return 0;
}

bool http1_has_word(const struct http1_head *head, const char *name, const char *word)
{
    size_t len = strlen(word);

    for (unsigned i = 0; i < head->header_count; i++) {
        const char *p = head->headers[i].value;

        if (!str_eq(head->headers[i].name, name))
            continue;
        while (*p) {
            p += strspn(p, ", \t");
            if (strncasecmp(p, word, len) == 0 && (!p[len] || strchr(", \t", p[len])))
                return true;
            p += strcspn(p, ",");
        }
    }
    return false;
}
