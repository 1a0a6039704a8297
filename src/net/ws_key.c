/* The keys of a WebSocket handshake: random bytes, SHA-1 and base64. Owns nothing. */
#include "net/ws_key.h"

#include <sys/random.h>

#include "base/sha1.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* RFC 4648 section 4; to has room for 4 characters for each 3 bytes begun, and a NUL. */
static void base64(const uint8_t *data, size_t len, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        uint32_t three = (uint32_t)data[i] << 16;

        if (i + 1 < len)
            three |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < len)
            three |= data[i + 2];
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = i + 1 < len ? digits[three >> 6 & 63] : '=';
        *to++ = i + 2 < len ? digits[three & 63] : '=';
    }
    *to = '\0';
}

void ws_random(void *to, size_t len)
{
    ssize_t n;

    do /* so few bytes come whole, and wait only while the machine boots: getrandom(2) */
        n = getrandom(to, len, 0);
    while (n < 0 && errno == EINTR);
    assert(n == (ssize_t)len);
}

void ws_key_make(char key[WS_KEY_LEN + 1])
{
    uint8_t bytes[16];

    ws_random(bytes, sizeof(bytes));
    base64(bytes, sizeof(bytes), key);
}

void ws_key_accept(const char *key, char accept[WS_ACCEPT_LEN + 1])
{
    char text[WS_KEY_LEN + sizeof(GUID)];
    uint8_t digest[SHA1_BYTES];
    int len = snprintf(text, sizeof(text), "%.24s" GUID, key);

    sha1(text, (size_t)len, digest);
    base64(digest, sizeof(digest), accept);
}
