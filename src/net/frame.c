/* WebSocket frames. Owns nothing, keeps nothing. */
#include "net/frame.h"

int frame_parse(const uint8_t *data, size_t len, struct frame *ret)
{
    size_t need = 2, at = 2;
    uint64_t n;

    if (len < 2)
        return 0;
    *ret = (struct frame){.fin = data[0] & 0x80, .op = data[0] & 0x0f, .masked = data[1] & 0x80};
    if (data[0] & 0x70) /* extensions: none was agreed on */
        return -EPROTO;
    if (ret->op > FRAME_PONG || (ret->op > FRAME_BINARY && ret->op < FRAME_CLOSE))
        return -EPROTO;
    n = data[1] & 0x7f;
    if (ret->op >= FRAME_CLOSE && (!ret->fin || n > FRAME_CONTROL_MAX))
        return -EPROTO;
    need += (n == 126 ? 2 : n == 127 ? 8 : 0) + (ret->masked ? 4u : 0);
    if (len < need)
        return 0;
    if (n >= 126) {
        size_t bytes = n == 126 ? 2 : 8;

        for (n = 0; bytes; bytes--)
            n = n << 8 | data[at++];
    }
    if (n > INT64_MAX)
        return -EPROTO;
    ret->len = n;
    if (ret->masked)
        memcpy(ret->mask, data + at, 4);
    return (int)need;
}

size_t frame_format(
    enum frame_op op, bool fin, uint64_t len, const uint8_t *mask, uint8_t head[FRAME_HEAD_MAX])
{
    size_t bytes = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;

    head[0] = (uint8_t)((fin ? 0x80 : 0) | op);
    head[1] = (uint8_t)(bytes == 0 ? len : bytes == 2 ? 126 : 127);
    for (size_t i = 0; i < bytes; i++)
        head[2 + i] = (uint8_t)(len >> (8 * (bytes - 1 - i)));
    if (!mask)
        return 2 + bytes;
    head[1] |= 0x80;
    memcpy(head + 2 + bytes, mask, 4);
    return 6 + bytes;
}

void frame_mask(uint8_t *data, size_t len, const uint8_t mask[4], uint64_t at)
{
    uint8_t turned[4];
    size_t i = 0;
    uint32_t word;

    for (unsigned k = 0; k < 4; k++)
        turned[k] = mask[(at + k) & 3];
    memcpy(&word, turned, 4);
    for (; i + 4 <= len; i += 4) {
        uint32_t four;

        memcpy(&four, data + i, 4);
        four ^= word;
        memcpy(data + i, &four, 4);
    }
    for (; i < len; i++)
        data[i] ^= turned[i & 3];
}

/* Bytes of the sequence that starts at p (RFC 3629, table 3-7 of Unicode); 0: not UTF-8. */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
    uint8_t low = 0x80, high = 0xbf;
    size_t n;

    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (left < n)
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

bool frame_is_utf8(const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len) {
        size_t n;
        uint64_t eight;

        if (len >= 8) { /* most of what is sent is ASCII */
            memcpy(&eight, p, 8);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                p += 8;
                len -= 8;
                continue;
            }
        }
        n = utf8_sequence(p, len);
        if (!n)
            return false;
        p += n;
        len -= n;
    }
    return true;
}

bool frame_close_code_is_valid(unsigned code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
        (code >= 3000 && code <= 4999);
}

size_t frame_format_close(unsigned code, const char *text, uint8_t *payload)
{
    size_t len = strnlen(text, FRAME_CONTROL_MAX - 2);

    if (!frame_close_code_is_valid(code))
        return 0;
    while (len && !frame_is_utf8(text, len))
        len--;
    payload[0] = (uint8_t)(code >> 8);
    payload[1] = (uint8_t)code;
    memcpy(payload + 2, text, len);
    return 2 + len;
}
