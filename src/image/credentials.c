/* Reading "auths". Passwords are wiped before their memory is freed. */
#include "image/credentials.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/str.h"
#include "image/ref.h"

#define AUTH_MAX 8192

static void wipe(char *s)
{
    if (s)
        OPENSSL_cleanse(s, strlen(s));
    free(s);
}

void credentials_done(struct credentials *c)
{
    free(c->user);
    wipe(c->password);
    wipe(c->token);
    free(c->from);
    *c = (struct credentials){0};
}

/* BASE64 of "USER:PASSWORD". */
static int split_auth(const char *auth, struct credentials *ret)
{
    unsigned char plain[AUTH_MAX];
    size_t len = strlen(auth);
    char *colon;
    int n;

    if (len >= sizeof(plain) || len % 4 != 0)
        return -EINVAL;
    n = EVP_DecodeBlock(plain, (const unsigned char *)auth, (int)len);
    if (n < 0)
        return -EINVAL;
    /* It counts the padding as bytes of 0. */
    plain[n] = '\0';
    colon = strchr((char *)plain, ':');
    if (!colon)
        return -EINVAL;
    *colon = '\0';
    ret->user = xstrdup((char *)plain);
    ret->password = xstrdup(colon + 1);
    OPENSSL_cleanse(plain, sizeof(plain));
    return 0;
}

static int read_entry(const json_t *entry, struct credentials *ret)
{
    const char *auth = json_str_or(entry, "auth", ""), *user = json_str_or(entry, "username", ""),
               *token = json_str_or(entry, "registrytoken", "");

    if (token[0]) {
        ret->token = xstrdup(token);
        return 0;
    }
    if (auth[0])
        return split_auth(auth, ret);
    if (user[0] == '\0')
        return -EINVAL;
    ret->user = xstrdup(user);
    ret->password = xstrdup(json_str_or(entry, "password", ""));
    return 0;
}

int credentials_check(const json_t *doc, struct err *err)
{
    json_t *auths, *entry;
    const char *key;
    int r;

    r = json_get_obj(doc, "auths", &auths, err);
    if (r < 0)
        return r;
    json_object_foreach (auths, key, entry) {
        struct credentials c = {0};
        _cleanup_free_ char *shown = str_escape(key, strlen(key), 100);

        r = json_is_object(entry) ? read_entry(entry, &c) : -EINVAL;
        credentials_done(&c);
        if (r < 0)
            return err_set(err, -EINVAL,
                "'auths': '%s' has neither 'auth' (BASE64 of USER:PASSWORD) nor 'username' and "
                "'password'; credential helpers cannot be used",
                shown);
    }
    return 0;
}

/* "https://HOST/v1/" -> "HOST": what Docker has written over the years. Heap. */
static char *clean_key(const char *key)
{
    const char *scheme = strstr(key, "://");
    char *clean = xstrdup(scheme ? scheme + 3 : key);
    size_t len = strlen(clean);

    if (scheme && (str_ends(clean, "/v1/") || str_ends(clean, "/v2/")))
        len -= 4;
    while (len > 0 && clean[len - 1] == '/')
        len--;
    clean[len] = '\0';
    return clean;
}

/* "docker.io", or one of the names that it had. */
static bool is_hub(const char *key)
{
    return str_eq(key, IMAGE_REF_HUB) || (str_ends(key, "." IMAGE_REF_HUB) && !strchr(key, '/'));
}

/* How much of HOST/NAME the key names: 0 when it is about something else. */
static size_t match(const char *key, const char *host, const char *name)
{
    _cleanup_free_ char *clean = clean_key(key), *full = xasprintf("%s/%s", host, name);
    size_t len = strlen(clean);

    if (str_eq(host, IMAGE_REF_HUB) && is_hub(clean))
        return strlen(host);
    return strncmp(full, clean, len) == 0 && full[len] == '/' && len >= strlen(host) ? len
        : str_eq(full, clean)                                                        ? len
                                                                                     : 0;
}

int credentials_find(const json_t *doc, const char *from, const char *host, const char *name,
    struct credentials *ret)
{
    struct credentials c = {0};
    const json_t *best = NULL;
    size_t best_len = 0;
    json_t *entry = NULL;
    const char *key;

    json_object_foreach (json_object_get(doc, "auths"), key, entry) {
        size_t len = match(key, host, name);
        if (len > best_len) {
            best = entry;
            best_len = len;
        }
    }
    if (!best || read_entry(best, &c) < 0)
        return -ENOENT;
    c.from = xstrdup(json_str_or(best, "from", from));
    *ret = c;
    return 0;
}

int credentials_read(
    const char *key, const json_t *entry, char **ret_registry, struct credentials *ret)
{
    _cleanup_free_ char *clean = clean_key(key);
    int r = json_is_object(entry) ? read_entry(entry, ret) : -EINVAL;

    if (r < 0)
        return r;
    *ret_registry = is_hub(clean) ? xstrdup(IMAGE_REF_HUB) : TAKE_PTR(clean);
    return 0;
}
