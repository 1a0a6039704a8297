/* Image references, checked character by character: they come from users and end in argv. */
#include "image/ref.h"

#define LOWER_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static int wrong(const char *text, const char *why, struct err *err)
{
    _cleanup_free_ char *shown = str_escape(text, strlen(text), 100);

    return err_set(err, -EINVAL, "image '%s': %s", shown, why);
}

/* Letters and digits, with single separators (".", "_", "-", "__", "--") inside. */
static bool component_is_valid(const char *s, size_t len)
{
    if (len == 0 || !strchr(LOWER_DIGITS, s[0]) || !strchr(LOWER_DIGITS, s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!strchr(LOWER_DIGITS "._-", s[i]) || (s[i] == '.' && s[i + 1] == '.'))
            return false;
    return true;
}

static bool name_is_valid(const char *name)
{
    for (const char *p = name;;) {
        size_t len = strcspn(p, "/");
        if (!component_is_valid(p, len))
            return false;
        if (p[len] == '\0')
            return true;
        p += len + 1;
    }
}

static bool tag_is_valid(const char *tag)
{
    size_t len = strlen(tag);

    return len > 0 && len <= 128 && tag[0] != '.' && tag[0] != '-' &&
        strspn(tag, LOWER_DIGITS UPPER "_.-") == len;
}

static bool port_is_valid(const char *text)
{
    uint64_t port;

    return str_to_u64(text, 65535, &port) == 0 && port > 0;
}

/* A name or IPv4 address, or an IPv6 address in brackets; a port behind it or not. */
static bool host_is_valid(const char *host)
{
    size_t len;

    if (host[0] == '[') {
        len = strspn(host + 1, "0123456789abcdefABCDEF:.") + 1;
        if (len < 3 || host[len++] != ']')
            return false;
    } else {
        len = strspn(host, LOWER_DIGITS UPPER ".-");
        if (len == 0 || host[0] == '-' || host[0] == '.')
            return false;
    }
    return host[len] == '\0' || (host[len] == ':' && port_is_valid(host + len + 1));
}

/* The part before the first slash is a host, not the first part of a name, when it looks like one
 * (the rule of Docker's command line). */
static bool looks_like_host(const char *s, size_t len)
{
    return memchr(s, '.', len) || memchr(s, ':', len) || s[0] == '[' ||
        (len == 9 && memcmp(s, "localhost", 9) == 0);
}

static void split_host(char *text, char **ret_host, char **ret_rest)
{
    char *end = strchr(text, '#');

    if (!end) {
        end = strchr(text, '/');
        if (end && !looks_like_host(text, (size_t)(end - text)))
            end = NULL;
    }
    if (end)
        *end = '\0';
    *ret_host = end ? text : NULL;
    *ret_rest = end ? end + 1 : text;
}

int image_ref_parse(const char *text, struct image_ref *ret, struct err *err)
{
    _cleanup_free_ char *copy = NULL;
    struct image_ref ref = {0};
    char *host, *name, *tag, *digest, *slash;

    if (str_is_empty(text))
        return err_set(err, -EINVAL, "an image must be named");
    if (strlen(text) > IMAGE_REF_MAX)
        return wrong(text, "the name is longer than 255 bytes", err);
    copy = xstrdup(str_starts(text, "docker://") ? text + strlen("docker://") : text);
    split_host(copy, &host, &name);
    if (host && !host_is_valid(host))
        return wrong(text, "the registry must be HOST or HOST:PORT", err);
    digest = strchr(name, '@');
    if (digest)
        *digest++ = '\0';
    slash = strrchr(name, '/');
    tag = strchr(slash ? slash : name, ':');
    if (tag)
        *tag++ = '\0';
    if (!name_is_valid(name))
        return wrong(text, "the name may have a-z 0-9 and . _ - inside, in parts joined by /", err);
    if (tag && !tag_is_valid(tag))
        return wrong(text, "the tag may have a-z A-Z 0-9 _ . -, at most 128 of them", err);
    if (digest && !digest_is_valid(digest))
        return wrong(text, "the digest must be sha256: and 64 hexadecimal digits", err);
    STR_SET(ref.host, host ? host : "");
    STR_SET(ref.name, name);
    STR_SET(ref.tag, tag ? tag : digest ? "" : "latest");
    STR_SET(ref.digest, digest ? digest : "");
    *ret = ref;
    return 0;
}

int image_ref_normal(const char *text, char ret[IMAGE_REF_MAX + 1], struct err *err)
{
    char normal[2 * IMAGE_REF_MAX + 300];
    const char *behind_host;
    struct image_ref ref;
    int r;

    r = image_ref_parse(text, &ref, err);
    if (r < 0)
        return r;
    /* "registry/app" would be read as a name of two parts. */
    behind_host = ref.host[0] == '\0'                 ? ""
        : looks_like_host(ref.host, strlen(ref.host)) ? "/"
                                                      : "#";
    snprintf(normal, sizeof(normal), "%s%s%s%s%s%s%s", ref.host, behind_host, ref.name,
        ref.tag[0] ? ":" : "", ref.tag, ref.digest[0] ? "@" : "", ref.digest);
    if (str_copy(ret, IMAGE_REF_MAX + 1, normal) < 0)
        return wrong(text, "the name is longer than 255 bytes", err);
    return 0;
}

int image_ref_check(const char *text, struct err *err)
{
    char normal[IMAGE_REF_MAX + 1];

    return image_ref_normal(text, normal, err);
}

const char *image_ref_host(const struct image_ref *ref)
{
    return ref->host[0] ? ref->host : IMAGE_REF_HUB;
}

char *image_ref_path(const struct image_ref *ref)
{
    bool library = str_eq(image_ref_host(ref), IMAGE_REF_HUB) && !strchr(ref->name, '/');

    return xasprintf("%s%s", library ? "library/" : "", ref->name);
}
