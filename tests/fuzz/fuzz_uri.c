/* URLs (from a configuration or an answer) and the percent-encoding both ways. */
#include "net/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int (*parse)(const char *, struct uri *, struct err *), const char *text)
{
    char authority[URI_AUTHORITY_MAX];
    struct uri uri;

    if (parse(text, &uri, NULL) < 0)
        return;
    if (!uri.host[0] || !uri.port || uri.path[0] != '/' || strpbrk(uri.path, "\r\n "))
        abort();
    uri_format_authority(&uri, authority);
    if (strpbrk(authority, "\r\n /"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    _cleanup_free_ char *encoded = uri_encode(text);

    if (uri_decode(encoded, false) < 0 || strcmp(encoded, text) != 0)
        abort();
    check(uri_parse_ws, text);
    check(uri_parse_http, text);
    uri_decode(text, true);
    return 0;
}
