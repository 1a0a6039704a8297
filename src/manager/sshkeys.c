/*
 * ed25519 key pairs by libsodium, written as OpenSSH reads them (PROTOCOL.key of OpenSSH; RFC 4251
 * section 5 for strings and numbers; RFC 8709 for the public half). Every place that held a private
 * key is wiped when it goes out of scope.
 */
#include "manager/sshkeys.h"

#include <sodium.h>

#include "base/str.h"

#define KEY_TYPE "ssh-ed25519"
#define KEY_MAGIC "openssh-key-v1" /* with its NUL */
#define PEM_BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define PEM_END "-----END OPENSSH PRIVATE KEY-----\n"
#define PEM_COLUMNS 70
#define BLOCK_BYTES 8 /* of the cipher "none" */

/* Everything in a key but the comment is well below 512 bytes. */
#define BLOB_MAX (512 + SSH_COMMENT_MAX)
#define TEXT_MAX sodium_base64_ENCODED_LEN(BLOB_MAX, sodium_base64_VARIANT_ORIGINAL)

struct blob {
    unsigned char data[BLOB_MAX];
    size_t len;
};

struct pair {
    unsigned char pub[crypto_sign_PUBLICKEYBYTES];
    unsigned char secret[crypto_sign_SECRETKEYBYTES]; /* the seed, then pub: as OpenSSH has it */
};

static void wipe_blob(struct blob *b)
{
    sodium_memzero(b, sizeof(*b));
}

static void wipe_pair(struct pair *p)
{
    sodium_memzero(p, sizeof(*p));
}

static void put_bytes(struct blob *b, const void *p, size_t n)
{
    assert(n <= sizeof(b->data) - b->len);
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

static void put_u32(struct blob *b, uint32_t n)
{
    const unsigned char bytes[] = {
        (unsigned char)(n >> 24),
        (unsigned char)(n >> 16),
        (unsigned char)(n >> 8),
        (unsigned char)n,
    };

    put_bytes(b, bytes, sizeof(bytes));
}

static void put_string(struct blob *b, const void *p, size_t n)
{
    put_u32(b, (uint32_t)n);
    put_bytes(b, p, n);
}

static void put_text(struct blob *b, const char *s)
{
    put_string(b, s, strlen(s));
}

static void put_public(struct blob *b, const struct pair *pair)
{
    put_text(b, KEY_TYPE);
    put_string(b, pair->pub, sizeof(pair->pub));
}

/* The part that a passphrase would encrypt. */
static void put_secret(struct blob *b, const struct pair *pair, const char *comment)
{
    uint32_t check = randombytes_random(); /* twice: tells a right passphrase from a wrong one */

    put_u32(b, check);
    put_u32(b, check);
    put_public(b, pair);
    put_string(b, pair->secret, sizeof(pair->secret));
    put_text(b, comment);
    for (unsigned char pad = 1; b->len % BLOCK_BYTES; pad++)
        put_bytes(b, &pad, 1);
}

static void put_private_key(struct blob *b, const struct pair *pair, const char *comment)
{
    _cleanup_(wipe_blob) struct blob secret = {.len = 0};
    struct blob pub = {.len = 0};

    put_public(&pub, pair);
    put_secret(&secret, pair, comment);
    put_bytes(b, KEY_MAGIC, sizeof(KEY_MAGIC));
    put_text(b, "none"); /* cipher */
    put_text(b, "none"); /* key derivation, and its options */
    put_text(b, "");
    put_u32(b, 1); /* keys */
    put_string(b, pub.data, pub.len);
    put_string(b, secret.data, secret.len);
}

/* Base64 in lines between the marks. */
static char *pem_text(const struct blob *b)
{
    char flat[TEXT_MAX];
    size_t len, size, at = 0;
    char *text;

    sodium_bin2base64(flat, sizeof(flat), b->data, b->len, sodium_base64_VARIANT_ORIGINAL);
    len = strlen(flat);
    size = sizeof(PEM_BEGIN) + sizeof(PEM_END) + len + len / PEM_COLUMNS + 1;
    text = xcalloc(1, size);
    at += (size_t)snprintf(text, size, PEM_BEGIN);
    for (size_t i = 0; i < len; i += PEM_COLUMNS)
        at += (size_t)snprintf(text + at, size - at, "%.*s\n", PEM_COLUMNS, flat + i);
    snprintf(text + at, size - at, PEM_END);
    sodium_memzero(flat, sizeof(flat));
    return text;
}

static char *public_line(const struct pair *pair, const char *comment)
{
    struct blob b = {.len = 0};
    char text[TEXT_MAX];

    put_public(&b, pair);
    sodium_bin2base64(text, sizeof(text), b.data, b.len, sodium_base64_VARIANT_ORIGINAL);
    return xasprintf(KEY_TYPE " %s%s%s", text, comment[0] ? " " : "", comment);
}

int ssh_keypair_make(
    const char *comment, char **ret_private_openssh, char **ret_public_line, struct err *err)
{
    _cleanup_(wipe_pair) struct pair pair = {0};
    _cleanup_(wipe_blob) struct blob key = {.len = 0};
    size_t n = strlen(comment);

    if (n > SSH_COMMENT_MAX || !str_is_clean(comment, n))
        return err_set(err, -EINVAL,
            "the comment of an SSH key must be text of at most %d bytes in one line",
            SSH_COMMENT_MAX);
    if (sodium_init() < 0)
        return err_set(err, -EIO, "libsodium cannot start");
    crypto_sign_keypair(pair.pub, pair.secret);
    put_private_key(&key, &pair, comment);
    *ret_private_openssh = pem_text(&key);
    *ret_public_line = public_line(&pair, comment);
    return 0;
}

void ssh_secret_free(char *secret)
{
    if (secret)
        sodium_memzero(secret, strlen(secret));
    free(secret);
}

void ssh_secret_freep(char **secret)
{
    ssh_secret_free(*secret);
}
