/* Making and hashing tokens by libsodium. Keeps nothing. */
#include "manager/tokens.h"

#include <sodium.h>

#define TOKEN_BYTES 32

void token_make(char text[TOKEN_TEXT_MAX])
{
    const size_t prefix = strlen(TOKEN_PREFIX);
    unsigned char bytes[TOKEN_BYTES];
    int r = sodium_init();

    assert(r >= 0); /* fails only when the system has no random bytes at all */
    randombytes_buf(bytes, sizeof(bytes));
    memcpy(text, TOKEN_PREFIX, prefix);
    sodium_bin2base64(text + prefix, TOKEN_TEXT_MAX - prefix, bytes, sizeof(bytes),
        sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof(bytes));
}

void token_hash(const char *token, char hex[TOKEN_HASH_MAX])
{
    unsigned char hash[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(hash, (const unsigned char *)token, strlen(token));
    sodium_bin2hex(hex, TOKEN_HASH_MAX, hash, sizeof(hash));
}
