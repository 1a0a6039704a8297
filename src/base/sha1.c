/* SHA-1 as RFC 3174 writes it down (section 6.1), in one go over bytes in memory. Owns nothing. */
#include "base/sha1.h"

#define BLOCK 64

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void put_u32(uint8_t *to, uint32_t x)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void expand(const uint8_t *block, uint32_t w[80])
{
    for (unsigned t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
            (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
}

/* The function and the constant of round t (section 5). */
static uint32_t mix(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
    if (t < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (t < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (t < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t h[5], const uint8_t *block)
{
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], w[80];

    expand(block, w);
    for (unsigned t = 0; t < 80; t++) {
        uint32_t next = rotate(a, 5) + mix(t, b, c, d) + e + w[t];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sha1(const void *data, size_t len, uint8_t digest[SHA1_BYTES])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t whole = len / BLOCK * BLOCK, rest = len - whole;
    size_t padded = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    uint8_t last[2 * BLOCK] = {0};

    for (size_t at = 0; at < whole; at += BLOCK)
        add_block(h, (const uint8_t *)data + at);
    if (rest)
        memcpy(last, (const uint8_t *)data + whole, rest);
    last[rest] = 0x80;
    put_u32(last + padded - 8, (uint32_t)((uint64_t)len >> 29));
    put_u32(last + padded - 4, (uint32_t)(len << 3));
    for (size_t at = 0; at < padded; at += BLOCK)
        add_block(h, last + at);
    for (unsigned i = 0; i < 5; i++)
        put_u32(digest + 4 * i, h[i]);
}
