/* WebSocket URLs (from a configuration or an answer) and the percent-encoding both ways. */
#include "net/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    _cleanup_free_ char *encoded = uri_encode(text);
    struct uri uri;

    if (uri_decode(encoded, false) < 0 || strcmp(encoded, text) != 0)
        abort();
    if (uri_parse_ws(text, &uri, NULL) == 0 &&
        (!uri.host[0] || !uri.port || uri.path[0] != '/' || strpbrk(uri.path, "\r\n ")))
        abort();
    uri_decode(text, true);
    return 0;
}
