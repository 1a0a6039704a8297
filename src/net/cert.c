/* Certificates through the module; what needs no OpenSSL is decided here. */
#include "net/cert.h"

#include "base/str.h"
#include "net/tls_ops.h"

int cert_key_new(char **ret_key, struct err *err)
{
    const struct tls_ops *ops = NULL;
    int r = tls_load(&ops, err);

    return r < 0 ? r : ops->cert_key_new(ret_key, err);
}

int cert_request_new(const char *key, char **ret_request, struct err *err)
{
    const struct tls_ops *ops = NULL;
    int r = tls_load(&ops, err);

    return r < 0 ? r : ops->cert_request_new(key, ret_request, err);
}

static int check_order(const struct cert_order *o, struct err *err)
{
    const char *texts[] = {o->name, o->role, o->mark};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i] &&
            (strlen(texts[i]) > CERT_NAME_MAX || !str_is_clean(texts[i], strlen(texts[i]))))
            return err_set(err, -EINVAL, "a certificate cannot carry '%.80s'", texts[i]);
    if (str_is_empty(o->name) || o->from_usec >= o->until_usec)
        return err_set(err, -EINVAL, "a certificate needs a name, and an end behind its beginning");
    return 0;
}

int cert_sign(const char *authority, const char *authority_key, const char *request,
    const struct cert_order *order, char **ret, struct err *err)
{
    const struct tls_ops *ops = NULL;
    int r = check_order(order, err);

    if (r == 0 && strlen(request) > CERT_PEM_MAX)
        r = err_set(err, -EINVAL, "a certificate request of more than %zu bytes", CERT_PEM_MAX);
    if (r == 0)
        r = tls_load(&ops, err);
    return r < 0 ? r : ops->cert_sign(authority, authority_key, request, order, ret, err);
}

int cert_authority_new(const char *key, const struct cert_order *order, char **ret, struct err *err)
{
    const struct tls_ops *ops = NULL;
    int r = check_order(order, err);

    if (r == 0)
        r = tls_load(&ops, err);
    return r < 0 ? r : ops->cert_authority_new(key, order, ret, err);
}

int cert_read(const char *text, struct cert_info *ret, struct err *err)
{
    const struct tls_ops *ops = NULL;
    int r = tls_load(&ops, err);

    return r < 0 ? r : ops->cert_read(text, ret, err);
}

bool cert_is_for(const char *text, const char *host)
{
    const struct tls_ops *ops = NULL;

    return tls_load(&ops, NULL) == 0 && ops->cert_is_for(text, host);
}

int cert_find(const char *text, const char *fingerprint, char **ret, struct err *err)
{
    const struct tls_ops *ops = NULL;
    int r = tls_load(&ops, err);

    return r < 0 ? r : ops->cert_find(text, fingerprint, ret, err);
}

int cert_authority(const char *text, char **ret, struct cert_info *ret_info)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----";

    for (const char *at = strstr(text, begin); at; at = strstr(at + 1, begin))
        if (cert_read(at, ret_info, NULL) == 0 && ret_info->is_authority)
            return cert_find(at, ret_info->fingerprint, ret, NULL);
    return -ENOENT;
}

bool cert_fingerprint_is_valid(const char *text)
{
    return digest_is_valid(text);
}

bool cert_is_due(const struct cert_info *info, uint64_t now_usec)
{
    uint64_t made = info->from_usec + CERT_BACKDATE_USEC;
    uint64_t lasts = info->until_usec > made ? info->until_usec - made : 0;

    return now_usec + lasts / 3 >= info->until_usec;
}
