/*
 * The strict reader of HTTP/1.1 answers, for both of our clients. Owns nothing. What two readers
 * could take for different things is an error here as it is in requests.
 */
#include "base/str.h"
#include "net/http1_internal.h"

#define NOT_HTTP "the first line is not 'HTTP/1.1 STATUS reason'"

static int parse_status_line(char *line, struct http1_head *head, struct err *err)
{
    const char *status = line + strlen("HTTP/1.x ");

    if (str_starts(line, "HTTP/1.1 "))
        head->minor = 1;
    else if (!str_starts(line, "HTTP/1.0 "))
        return err_set(err, -EINVAL, NOT_HTTP);
    if (strspn(status, "0123456789") != 3 || (status[3] && status[3] != ' ') ||
        !http1_is_value(status))
        return err_set(err, -EINVAL, NOT_HTTP);
    head->status = (unsigned)(status[0] - '0') * 100 + (unsigned)(status[1] - '0') * 10 +
        (unsigned)(status[2] - '0');
    if (head->status < 100 || head->status > 599)
        return err_set(err, -EINVAL, "the status %u does not exist", head->status);
    return 0;
}

static int check_single(const struct http1_head *head, struct err *err)
{
    static const char *const single[] = {
        "content-length", "transfer-encoding", "upgrade", "sec-websocket-accept"};

    for (size_t i = 0; i < ARRAY_LEN(single); i++) {
        if (http1_count(head, single[i]) > 1)
            return err_set(err, -EINVAL, "the header '%s' is there more than once", single[i]);
    }
    return 0;
}

int http1_parse_answer(char *text, size_t len, struct http1_head *ret, struct err *err)
{
    char *end = text + len - 2; /* the empty line */
    char *at = text;
    unsigned unused;
    int r;

    *ret = (struct http1_head){0};
    if (memchr(text, '\0', len))
        return err_set(err, -EINVAL, "the head has a NUL");
    r = parse_status_line(http1_take_line(&at), ret, err);
    while (r == 0 && at < end)
        r = http1_take_field(http1_take_line(&at), ret, &unused, err);
    if (r == 0)
        r = check_single(ret, err);
    if (r == 0)
        r = http1_check_framing(ret, &unused, err);
    if (r < 0)
        return r;
    ret->keep_alive = ret->minor == 1 ? !http1_has_word(ret, "connection", "close")
                                      : http1_has_word(ret, "connection", "keep-alive");
    return 0;
}

bool http1_is_handshake_answer(const struct http1_head *head, const char *accept)
{
    const char *upgrade = http1_header(head, "upgrade");

    return head->status == 101 && head->minor == 1 && upgrade &&
        strcasecmp(upgrade, "websocket") == 0 && http1_has_word(head, "connection", "upgrade") &&
        str_eq(http1_header(head, "sec-websocket-accept"), accept) &&
        !http1_header(head, "sec-websocket-extensions") &&
        !http1_header(head, "sec-websocket-protocol");
}
