/* What strangers send to be signed, and chains of servers that nobody knows yet. */
#include "net/cert.h"
#include "net/tls_ops.h"

#define DAY UINT64_C(86400000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An authority of its own, made once. */
static void authority(char **ret, char **ret_key)
{
    static char *cert, *key;
    struct cert_order order = {
        .use = CERT_AUTHORITY, .name = "fuzz", .from_usec = DAY, .until_usec = 9 * DAY};

    if (!cert) {
        tls_load_from(TLS_MODULE);
        if (cert_key_new(&key, NULL) < 0 || cert_authority_new(key, &order, &cert, NULL) < 0)
            abort();
    }
    *ret = cert;
    *ret_key = key;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size), *signed_text = NULL;
    struct cert_order order = {
        .use = CERT_CLIENT, .name = "n1", .role = "node", .from_usec = DAY, .until_usec = 2 * DAY};
    struct cert_info info;
    char *cert, *key, *found = NULL;

    authority(&cert, &key);
    if (cert_sign(cert, key, text, &order, &signed_text, NULL) == 0) {
        /* Whatever was in the request: this is what it got. */
        if (cert_read(signed_text, &info, NULL) < 0 || strcmp(info.name, "n1") != 0 ||
            strcmp(info.role, "node") != 0 || info.mark[0] || info.is_authority)
            abort();
    }
    if (cert_read(text, &info, NULL) == 0 && !cert_fingerprint_is_valid(info.fingerprint))
        abort();
    (void)cert_is_for(text, "localhost");
    if (cert_find(text, "sha256:00", &found, NULL) == 0)
        abort();
    return 0;
}
