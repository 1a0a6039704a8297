/*
 * The strict reader of HTTP/1.1 requests. Owns nothing. A request with both Content-Length and
 * Transfer-Encoding, with two of either, with a bare LF, with a space before a colon or with a
 * folded line is an error: those are the ways in which one request is smuggled in another.
 */
#include "base/str.h"
#include "net/http1_internal.h"

static int parse_request_line(
    char *line, struct http1_head *head, unsigned *ret_status, struct err *err)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;
    size_t len;

    if (!version)
        return http1_refuse(
            err, ret_status, 400, "the request line is not 'METHOD target HTTP/1.1'");
    *target++ = '\0';
    *version++ = '\0';
    len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (!len || len > 16 || line[len])
        return http1_refuse(err, ret_status, 400, "the method is not a word in upper case");
    if (str_eq(version, "HTTP/1.1"))
        head->minor = 1;
    else if (str_eq(version, "HTTP/1.0"))
        head->minor = 0;
    else if (str_starts(version, "HTTP/"))
        return http1_refuse(err, ret_status, 505, "only HTTP/1.1 is spoken here");
    else
        return http1_refuse(
            err, ret_status, 400, "the request line is not 'METHOD target HTTP/1.1'");
    head->method = line;
    head->target = target;
    return 0;
}

static int check_single(const struct http1_head *head, unsigned *ret_status, struct err *err)
{
    static const char *const single[] = {"host", "content-length", "transfer-encoding",
        "authorization", "content-type", "origin", "upgrade", "sec-websocket-key", "expect"};

    for (size_t i = 0; i < ARRAY_LEN(single); i++) {
        if (http1_count(head, single[i]) > 1) {
            *ret_status = 400;
            return err_set(err, -EINVAL, "the header '%s' is there more than once", single[i]);
        }
    }
    if (head->minor == 1 && !http1_header(head, "host"))
        return http1_refuse(err, ret_status, 400, "the header 'host' is missing");
    return 0;
}

/* RFC 6455 section 4.2.1. */
static void find_handshake(struct http1_head *head)
{
    const char *key = http1_header(head, "sec-websocket-key");
    const char *version = http1_header(head, "sec-websocket-version");
    const char *upgrade = http1_header(head, "upgrade");

    if (head->minor == 1 && str_eq(head->method, "GET") && upgrade &&
        strcasecmp(upgrade, "websocket") == 0 && http1_has_word(head, "connection", "upgrade") &&
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
        return http1_refuse(err, ret_status, 400, "the request head has a NUL");
    r = parse_request_line(http1_take_line(&at), ret, ret_status, err);
    while (r == 0 && at < end)
        r = http1_take_field(http1_take_line(&at), ret, ret_status, err);
    if (r == 0)
        r = check_single(ret, ret_status, err);
    if (r == 0)
        r = http1_check_framing(ret, ret_status, err);
    if (r < 0)
        return r;
    ret->keep_alive = ret->minor == 1 ? !http1_has_word(ret, "connection", "close")
                                      : http1_has_word(ret, "connection", "keep-alive");
    ret->expect_continue = ret->minor == 1 && http1_has_word(ret, "expect", "100-continue");
    find_handshake(ret);
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
