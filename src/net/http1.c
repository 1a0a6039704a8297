/*
 * The strict reader of HTTP/1.1 requests. Owns nothing. A request with both Content-Length and
 * Transfer-Encoding, with two of either, with a bare LF, with a space before a colon or with a
 * folded line is an error: those are the ways in which one request is smuggled in another.
 */
#include "net/http1.h"

#include "base/str.h"

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
        (c && strchr("!#$%&'*+-.^_`|~", c));
}

ssize_t http1_head_length(const char *data, size_t len, size_t *scanned)
{
    size_t at = *scanned;

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

static int refuse(struct err *err, unsigned *ret_status, unsigned status, const char *text)
{
    *ret_status = status;
    return err_set(err, -EINVAL, "%s", text);
}

/* End the line at *at with NUL (it ends with CRLF) and step behind it. */
static char *take_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\n'); /* is there: the head was measured */

    end[-1] = '\0';
    *at = end + 1;
    return line;
}

static int parse_request_line(
    char *line, struct http1_head *head, unsigned *ret_status, struct err *err)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;
    size_t len;

    if (!version)
        return refuse(err, ret_status, 400, "the request line is not 'METHOD target HTTP/1.1'");
    *target++ = '\0';
    *version++ = '\0';
    len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (!len || len > 16 || line[len])
        return refuse(err, ret_status, 400, "the method is not a word in upper case");
    if (str_eq(version, "HTTP/1.1"))
        head->minor = 1;
    else if (str_eq(version, "HTTP/1.0"))
        head->minor = 0;
    else if (str_starts(version, "HTTP/"))
        return refuse(err, ret_status, 505, "only HTTP/1.1 is spoken here");
    else
        return refuse(err, ret_status, 400, "the request line is not 'METHOD target HTTP/1.1'");
    head->method = line;
    head->target = target;
    return 0;
}

static bool is_value(const char *s)
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

static int parse_header(char *line, struct http1_head *head, unsigned *ret_status, struct err *err)
{
    char *p = line;

    for (; is_token_char(*p); p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    if (p == line || *p != ':')
        return refuse(err, ret_status, 400, "a header line is not 'name: value'");
    *p++ = '\0';
    p = trim(p);
    if (!is_value(p))
        return refuse(err, ret_status, 400, "a header value has a control character");
    if (head->header_count == HTTP1_HEADERS_MAX)
        return refuse(err, ret_status, 431, "too many header lines");
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

static unsigned count_header(const struct http1_head *head, const char *name)
{
    unsigned count = 0;

    for (unsigned i = 0; i < head->header_count; i++)
        count += str_eq(head->headers[i].name, name);
    return count;
}

static int check_single(const struct http1_head *head, unsigned *ret_status, struct err *err)
{
    static const char *const single[] = {"host", "content-length", "transfer-encoding",
        "authorization", "content-type", "origin", "upgrade", "sec-websocket-key", "expect"};

    for (size_t i = 0; i < ARRAY_LEN(single); i++) {
        if (count_header(head, single[i]) > 1) {
            *ret_status = 400;
            return err_set(err, -EINVAL, "the header '%s' is there more than once", single[i]);
        }
    }
    if (head->minor == 1 && !http1_header(head, "host"))
        return refuse(err, ret_status, 400, "the header 'host' is missing");
    return 0;
}

static int check_framing(struct http1_head *head, unsigned *ret_status, struct err *err)
{
    const char *length = http1_header(head, "content-length");
    const char *coding = http1_header(head, "transfer-encoding");

    if (coding && (length || head->minor == 0))
        return refuse(err, ret_status, 400,
            "'transfer-encoding' goes with neither 'content-length' nor HTTP/1.0");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return refuse(err, ret_status, 501, "the only transfer coding understood is 'chunked'");
    if (length &&
        (strspn(length, "0123456789") != strlen(length) ||
            str_to_u64(length, INT64_MAX, &head->content_length) < 0))
        return refuse(err, ret_status, 400, "'content-length' is not a number");
    head->chunked = coding;
    return 0;
}

/* Is word one of the comma-separated words of a header value (all of its lines)? */
static bool header_has_word(const struct http1_head *head, const char *name, const char *word)
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

/* RFC 6455 section 4.2.1. */
static void find_handshake(struct http1_head *head)
{
    const char *key = http1_header(head, "sec-websocket-key");
    const char *version = http1_header(head, "sec-websocket-version");
    const char *upgrade = http1_header(head, "upgrade");

    if (head->minor == 1 && str_eq(head->method, "GET") && upgrade &&
        strcasecmp(upgrade, "websocket") == 0 && header_has_word(head, "connection", "upgrade") &&
        str_eq(version, "13") && key && strlen(key) == 24 && !head->chunked &&
        !head->content_length)
        head->ws_key = key;
}

int http1_parse_head(
    char *text, size_t len, struct http1_head *ret, unsigned *ret_status, struct err *err)
{
    char *end = text + len - 2; /* the empty line */
    char *at = text;
    int r;

    *ret = (struct http1_head){0};
    if (memchr(text, '\0', len))
        return refuse(err, ret_status, 400, "the request head has a NUL");
    r = parse_request_line(take_line(&at), ret, ret_status, err);
    while (r == 0 && at < end)
        r = parse_header(take_line(&at), ret, ret_status, err);
    if (r == 0)
        r = check_single(ret, ret_status, err);
    if (r == 0)
        r = check_framing(ret, ret_status, err);
    if (r < 0)
        return r;
    ret->keep_alive = ret->minor == 1 ? !header_has_word(ret, "connection", "close")
                                      : header_has_word(ret, "connection", "keep-alive");
    ret->expect_continue = ret->minor == 1 && header_has_word(ret, "expect", "100-continue");
    find_handshake(ret);
    return 0;
}

void http1_body_init(struct http1_body *body, const struct http1_head *head)
{
    *body = (struct http1_body){.chunked = head->chunked, .remaining = head->content_length};
    if (!body->chunked)
        body->state = body->remaining ? CHUNK_DATA : CHUNK_DONE;
}

bool http1_body_is_done(const struct http1_body *body)
{
    return body->state == CHUNK_DONE;
}

static int parse_chunk_size(struct http1_body *body)
{
    uint64_t size = 0;
    unsigned i;

    for (i = 0; i < body->line_len; i++) {
        char c = body->line[i];
        int digit = c >= '0' && c <= '9' ? c - '0'
            : c >= 'a' && c <= 'f'       ? c - 'a' + 10
            : c >= 'A' && c <= 'F'       ? c - 'A' + 10
                                         : -1;

        if (digit < 0)
            return -EINVAL; /* extensions too: nobody we know sends any */
        size = size * 16 + (uint64_t)digit;
    }
    if (i == 0 || i > 15)
        return -EINVAL;
    body->remaining = size;
    body->state = size ? CHUNK_DATA : CHUNK_TRAILER;
    body->line_len = 0;
    return 0;
}

/* One byte of what stands between the data. */
static int take_framing(struct http1_body *body, char c)
{
    if (body->state == CHUNK_TRAILER && ++body->trailer_len > 4096)
        return -EINVAL;
    if (c != '\n') {
        if (body->line_len == sizeof(body->line)) {
            if (body->state != CHUNK_TRAILER)
                return -EINVAL;
            body->line_len--; /* the text of trailers is dropped */
        }
        body->line[body->line_len++] = c;
        return 0;
    }
    if (!body->line_len || body->line[--body->line_len] != '\r')
        return -EINVAL;
    if (body->state == CHUNK_SIZE)
        return parse_chunk_size(body);
    if (body->state == CHUNK_END) {
        if (body->line_len)
            return -EINVAL;
        body->state = CHUNK_SIZE;
    } else if (!body->line_len) {
        body->state = CHUNK_DONE;
    }
    body->line_len = 0;
    return 0;
}

static size_t take_data(struct http1_body *body, size_t len)
{
    size_t n = (size_t)MIN_OF((uint64_t)len, body->remaining);

    body->remaining -= n;
    if (!body->remaining)
        body->state = body->chunked ? CHUNK_END : CHUNK_DONE;
    return n;
}

int http1_body_take(struct http1_body *body, const char *data, size_t len, size_t *ret_used,
    const char **ret_piece, size_t *ret_len)
{
    size_t used = 0;
    int r;

    *ret_len = 0;
    while (used < len && body->state != CHUNK_DONE) {
        if (body->state == CHUNK_DATA) {
            *ret_piece = data + used;
            *ret_len = take_data(body, len - used);
            used += *ret_len;
            break;
        }
        r = take_framing(body, data[used++]);
        if (r < 0)
            return r;
    }
    *ret_used = used;
    return 0;
}

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    /* clang-format off */
    {101, "Switching Protocols"}, {200, "OK"}, {201, "Created"}, {202, "Accepted"},
    {204, "No Content"}, {206, "Partial Content"}, {301, "Moved Permanently"}, {302, "Found"},
    {303, "See Other"}, {304, "Not Modified"}, {307, "Temporary Redirect"},
    {308, "Permanent Redirect"}, {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"},
    {404, "Not Found"}, {405, "Method Not Allowed"}, {406, "Not Acceptable"},
    {408, "Request Timeout"}, {409, "Conflict"}, {410, "Gone"}, {411, "Length Required"},
    {412, "Precondition Failed"}, {413, "Content Too Large"}, {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"}, {421, "Misdirected Request"}, {422, "Unprocessable Content"},
    {423, "Locked"}, {426, "Upgrade Required"}, {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
    {501, "Not Implemented"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
    {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}, {507, "Insufficient Storage"},
    /* clang-format on */
};

const char *http1_reason(unsigned status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Unknown";
}
