/*
 * NULL-terminated vectors of heap strings, for argument lists and environments: short, so the
 * length is counted and not kept.
 */
#include "base/strv.h"

#include "base/str.h"

size_t strv_len(char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

char **strv_copy(char *const *v)
{
    size_t n = strv_len(v);
    char **copy;

    if (n == 0)
        return NULL;
    copy = xnew_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(v[i]);
    return copy;
}

void strv_free(char **v)
{
    strv_for_each (s, v)
        free(*s);
    free(v);
}

void strv_freep(char ***v)
{
    strv_free(*v);
}

void strv_push(char ***v, const char *s)
{
    assert(s);
    strv_take(v, xstrdup(s));
}

void strv_take(char ***v, char *s)
{
    size_t n = strv_len(*v);
    char **grown;

    assert(s);
    /* Each time: how much room a vector made elsewhere has cannot be told. */
    grown = reallocarray(*v, n + 2, sizeof(*grown));
    if (!grown)
        abort();
    grown[n] = s;
    grown[n + 1] = NULL;
    *v = grown;
}

void strv_pushf(char ***v, const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = xvasprintf(fmt, ap);
    va_end(ap);
    strv_take(v, s);
}

bool strv_has(char *const *v, const char *s)
{
    strv_for_each (it, v)
        if (strcmp(*it, s) == 0)
            return true;
    return false;
}

char *strv_join(char *const *v, const char *sep)
{
    size_t sep_len = strlen(sep);
    size_t total = 1;
    char *text, *at;

    strv_for_each (s, v)
        total += strlen(*s) + sep_len;
    text = at = xcalloc(1, total);
    strv_for_each (s, v) {
        size_t n = strlen(*s);

        if (s != v) {
            memcpy(at, sep, sep_len);
            at += sep_len;
        }
        memcpy(at, *s, n);
        at += n;
    }
    return text;
}

char **strv_split(const char *s, char sep)
{
    size_t n = 1, i = 0;
    char **v;

    if (!*s)
        return NULL;
    for (const char *p = s; *p; p++)
        n += *p == sep;
    v = xnew_array(char *, n + 1);
    for (;;) {
        const char *end = strchrnul(s, sep);

        v[i++] = xstrndup(s, (size_t)(end - s));
        if (!*end)
            return v;
        s = end + 1;
    }
}

/* The entry "key=..." or NULL. */
static char **env_find(char *const *env, const char *key)
{
    size_t n = strlen(key);

    strv_for_each (s, env)
        if (strncmp(*s, key, n) == 0 && (*s)[n] == '=')
            return (char **)s;
    return NULL;
}

const char *strv_env_get(char *const *env, const char *key)
{
    char **at = env_find(env, key);

    return at ? *at + strlen(key) + 1 : NULL;
}

void strv_env_set(char ***env, const char *key, const char *value)
{
    char *entry = xasprintf("%s=%s", key, value);
    char **at = env_find(*env, key);

    if (!at) {
        strv_take(env, entry);
        return;
    }
    free(*at);
    *at = entry;
}
