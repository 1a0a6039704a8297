/* Percent-encoding, request targets and WebSocket URLs. Owns nothing; every input is hostile. */
#include "net/uri.h"

#include "base/str.h"

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '.' || c == '_' || c == '~';
}

char *uri_encode(const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    char *encoded = xcalloc(1, 3 * strlen(text) + 1);
    char *to = encoded;

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (is_unreserved(c)) {
            *to++ = (char)c;
            continue;
        }
        *to++ = '%';
        *to++ = hex[c >> 4];
        *to++ = hex[c & 15];
    }
    return encoded;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int uri_decode(char *text, bool plus)
{
    char *to = text;

    for (; *text; text++) {
        int high, low;

        if (*text != '%') {
            *to++ = plus && *text == '+' ? ' ' : *text;
            continue;
        }
        high = hex_value(text[1]);
        low = high < 0 ? -1 : hex_value(text[2]);
        if (low < 0 || (high == 0 && low == 0))
            return -EINVAL;
        *to++ = (char)(high * 16 + low);
        text += 2;
    }
    *to = '\0';
    return 0;
}

static bool has_dot_part(const char *path)
{
    while (*path) {
        size_t len;

        path += strspn(path, "/");
        len = strcspn(path, "/");
        if ((len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.'))
            return true;
        path += len;
    }
    return false;
}

/* Printable ASCII but what RFC 3986 never allows; '#' would begin a fragment, which is not sent. */
static bool is_target(const char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s > '~' || strchr("\"<>\\^`{|}#", *s))
            return false;
    }
    return true;
}

int uri_split(char *target, char **ret_path, char **ret_query, struct err *err)
{
    char *query;

    if (target[0] != '/')
        return err_set(err, -EINVAL, "the request target must start with '/'");
    if (!is_target(target))
        return err_set(err, -EINVAL, "the request target has a character that must be encoded");
    query = strchr(target, '?');
    if (query)
        *query++ = '\0';
    if (uri_decode(target, false) < 0)
        return err_set(err, -EINVAL, "the path has a bad percent-encoding");
    if (has_dot_part(target))
        return err_set(err, -EINVAL, "the path has a '.' or '..' part");
    *ret_path = target;
    *ret_query = query ? query : target + strlen(target);
    return 0;
}

char *uri_query_get(const char *query, const char *key)
{
    while (*query) {
        size_t len = strcspn(query, "&");
        _cleanup_free_ char *pair = xstrndup(query, len);
        char *value = strchr(pair, '=');

        if (value)
            *value++ = '\0';
        if (uri_decode(pair, true) == 0 && str_eq(pair, key)) {
            if (value && uri_decode(value, true) < 0)
                return NULL;
            return xstrdup(value ? value : "");
        }
        query += len + (query[len] == '&');
    }
    return NULL;
}

static int parse_port(const char *text, size_t len, uint16_t *ret)
{
    _cleanup_free_ char *digits = xstrndup(text, len);
    uint64_t port;

    if (str_to_u64(digits, UINT16_MAX, &port) < 0 || port == 0)
        return -EINVAL;
    *ret = (uint16_t)port;
    return 0;
}

static bool is_host(const char *s, bool bracketed)
{
    if (!*s)
        return false;
    for (; *s; s++) {
        if (!is_unreserved((unsigned char)*s) && !(bracketed && *s == ':'))
            return false;
    }
    return true;
}

static int parse_port_of(const char *text, size_t len, struct uri *uri)
{
    return len == 0 ? 0 : *text == ':' ? parse_port(text + 1, len - 1, &uri->port) : -EINVAL;
}

/* What stands behind "scheme://". what: of the error text. */
static int parse_rest(const char *what, const char *host, struct uri *ret, struct err *err)
{
    const char *end = host + strcspn(host, "/?"), *host_end, *port;
    bool bracketed = *host == '[';

    host += bracketed;
    host_end = memchr(host, bracketed ? ']' : ':', (size_t)(end - host));
    if (!host_end && !bracketed)
        host_end = end;
    if (!host_end || (size_t)(host_end - host) >= sizeof(ret->host))
        return err_set(err, -EINVAL, "the %s has no proper host", what);
    memcpy(ret->host, host, (size_t)(host_end - host));
    ret->host[host_end - host] = '\0';
    if (!is_host(ret->host, bracketed))
        return err_set(err, -EINVAL, "the %s has no proper host", what);
    port = host_end + bracketed;
    ret->port = ret->tls ? 443 : 80;
    if (parse_port_of(port, (size_t)(end - port), ret) < 0)
        return err_set(err, -EINVAL, "the %s has no proper port", what);
    if (*end == '?' || !is_target(end))
        return err_set(err, -EINVAL, "the %s has no proper path", what);
    ret->path = *end ? end : "/";
    return 0;
}

int uri_parse_ws(const char *url, struct uri *ret, struct err *err)
{
    ret->tls = str_starts(url, "wss://");
    if (!ret->tls && !str_starts(url, "ws://"))
        return err_set(err, -EINVAL, "a WebSocket URL starts with ws:// or wss://");
    return parse_rest("WebSocket URL", url + (ret->tls ? 6 : 5), ret, err);
}

int uri_parse_http(const char *url, struct uri *ret, struct err *err)
{
    ret->tls = str_starts(url, "https://");
    if (!ret->tls && !str_starts(url, "http://"))
        return err_set(err, -EINVAL, "the address '%.100s' does not start with http:// or https://",
            url ? url : "");
    return parse_rest("address", url + (ret->tls ? 8 : 7), ret, err);
}

void uri_format_authority(const struct uri *uri, char text[URI_AUTHORITY_MAX])
{
    bool six = strchr(uri->host, ':');
    int n = snprintf(text, URI_AUTHORITY_MAX, six ? "[%s]" : "%s", uri->host);

    if (uri->port != (uri->tls ? 443 : 80))
        snprintf(text + n, URI_AUTHORITY_MAX - (size_t)n, ":%u", uri->port);
}
