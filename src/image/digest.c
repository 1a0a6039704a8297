/* SHA-256 through OpenSSL's EVP, which picks the CPU's instructions for it. */
#include "image/digest.h"

#include <openssl/evp.h>

#include "base/str.h"

#define PREFIX "sha256:"
#define PREFIX_LEN 7
#define CHUNK (256 * 1024)

const char *digest_hex(const char *text)
{
    assert(digest_is_valid(text));
    return text + PREFIX_LEN;
}

uint64_t digest_number(const char *text)
{
    char first[17];

    memcpy(first, digest_hex(text), 16);
    first[16] = '\0';
    return strtoull(first, NULL, 16) >> 2;
}

/* The calls fail only without memory or with a broken libcrypto: nothing to go on with. */
static void must(int ok)
{
    if (ok == 1)
        return;
    fputs("SHA-256 does not work\n", stderr);
    abort();
}

void digest_init(struct digest *d)
{
    d->ctx = EVP_MD_CTX_new();
    d->bytes = 0;
    must(d->ctx != NULL);
    must(EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL));
}

void digest_done(struct digest *d)
{
    EVP_MD_CTX_free(d->ctx);
    d->ctx = NULL;
}

void digest_add(struct digest *d, const void *p, size_t n)
{
    must(EVP_DigestUpdate(d->ctx, p, n));
    d->bytes += n;
}

void digest_end(struct digest *d, char text[DIGEST_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    char *out = text + PREFIX_LEN;

    must(EVP_DigestFinal_ex(d->ctx, sum, &len));
    memcpy(text, PREFIX, PREFIX_LEN);
    for (unsigned int i = 0; i < len; i++) {
        *out++ = digits[sum[i] >> 4];
        *out++ = digits[sum[i] & 15];
    }
    *out = '\0';
    digest_done(d);
}

void digest_of(const void *p, size_t n, char text[DIGEST_TEXT_MAX])
{
    struct digest d;

    digest_init(&d);
    digest_add(&d, p, n);
    digest_end(&d, text);
}

int digest_of_fd(int fd, char text[DIGEST_TEXT_MAX], uint64_t *ret_size, struct err *err)
{
    _cleanup_free_ char *chunk = xcalloc(1, CHUNK);
    _cleanup_(digest_done) struct digest d = {0};
    off_t at = 0;
    ssize_t n;

    digest_init(&d);
    while ((n = pread(fd, chunk, CHUNK, at)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, -errno, "cannot read");
        digest_add(&d, chunk, (size_t)n);
        at += n;
    }
    digest_end(&d, text);
    if (ret_size)
        *ret_size = (uint64_t)at;
    return 0;
}

void digest_chain(const char *below, const char *diff_id, char text[DIGEST_TEXT_MAX])
{
    char both[2 * DIGEST_TEXT_MAX];

    if (str_is_empty(below)) {
        STR_SET(both, diff_id);
        assert(str_copy(text, DIGEST_TEXT_MAX, diff_id) == 0);
        return;
    }
    snprintf(both, sizeof(both), "%s %s", below, diff_id);
    digest_of(both, strlen(both), text);
}
