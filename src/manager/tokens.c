/* Making and hashing tokens by libsodium. Keeps nothing. */
#include "manager/tokens.h"

#include <sodium.h>

#define TOKEN_BYTES 32

void token_make(const char *prefix, char text[TOKEN_TEXT_MAX])
{
    const size_t at = strlen(prefix);
    unsigned char bytes[TOKEN_BYTES];
    int r = sodium_init();

    assert(r >= 0); /* fails only when the system has no random bytes at all */
    randombytes_buf(bytes, sizeof(bytes));
    assert(at <= 20);
    memcpy(text, prefix, at);
    sodium_bin2base64(text + at, TOKEN_TEXT_MAX - at, bytes, sizeof(bytes),
        sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof(bytes));
}

void token_hash(const char *token, char hex[TOKEN_HASH_MAX])
{
    unsigned char hash[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(hash, (const unsigned char *)token, strlen(token));
    sodium_bin2hex(hex, TOKEN_HASH_MAX, hash, sizeof(hash));
}
