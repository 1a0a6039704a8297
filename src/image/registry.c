/*
 * One registry, one repository. The first request asks /v2/ and learns whether HTTPS is spoken and
 * what kind of login is wanted; a token is fetched once and renewed when it is refused. Blobs come
 * through libcurl's multi interface, a few at a time.
 */
#include "image/registry.h"

#include <openssl/crypto.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "image/http_pull.h"

#define AT_ONCE 4
#define TELL_USEC (500 * USEC_PER_MSEC)
#define TOKEN_MAX_BYTES 65536
#define HUB_API "registry-1." IMAGE_REF_HUB

#define ACCEPT \
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, " \
    "application/vnd.docker.distribution.manifest.list.v2+json, " \
    "application/vnd.docker.distribution.manifest.v2+json"

struct registry {
    struct registry_opts opts;
    char *base; /* "https://HOST" */
    struct credentials who;
    bool has_who;
    char *bearer; /* NULL: none */
};

void registry_close(struct registry *r)
{
    if (!r)
        return;
    if (r->bearer)
        OPENSSL_cleanse(r->bearer, strlen(r->bearer));
    free(r->bearer);
    free(r->base);
    credentials_done(&r->who);
    free(r);
}

void registry_closep(struct registry **r)
{
    registry_close(*r);
}

/* "registry 'HOST': ...; with the credentials of 'bob' (FROM)" */
static int failed(const struct registry *r, struct err *err)
{
    char text[sizeof(err->text)];
    _cleanup_free_ char *user = NULL;

    if (err->code != -EACCES)
        return err_prefix(err, "registry '%s'", r->opts.host);
    STR_SET(text, err->text);
    if (!r->has_who)
        return err_set(
            err, -EACCES, "registry '%s': %s; asked without credentials", r->opts.host, text);
    user = str_escape(r->who.user ? r->who.user : "", r->who.user ? strlen(r->who.user) : 0, 40);
    return err_set(err, -EACCES, "registry '%s': %s; with the credentials of '%s' (%.60s)",
        r->opts.host, text, user, r->who.from ? r->who.from : "?");
}

static struct pull_opts options(const struct registry *r, const char *accept)
{
    struct pull_opts o = {
        .base = r->base,
        .ca = r->opts.ca,
        .bearer = r->bearer,
        .accept = accept,
        .insecure = r->opts.insecure,
        .stall_usec = r->opts.stall_usec,
    };

    if (r->has_who && !r->bearer) {
        o.user = r->who.user;
        o.password = r->who.password;
    }
    return o;
}

static void wait_until(uint64_t usec)
{
    uint64_t now = clock_mono_usec();
    struct timespec t;

    if (usec <= now)
        return;
    t = (struct timespec){
        (time_t)((usec - now) / USEC_PER_SEC), (long)((usec - now) % USEC_PER_SEC * 1000)};
    (void)nanosleep(&t, NULL);
}

/* ---- tokens ---- */

/* The value of realm="..." in a challenge. Heap, NULL. */
static char *challenge_value(const char *challenge, const char *key)
{
    _cleanup_free_ char *pattern = xasprintf("%s=\"", key);
    const char *at = strcasestr(challenge, pattern), *end;

    if (!at || (at > challenge && !strchr(" ,", at[-1])))
        return NULL;
    at += strlen(pattern);
    end = strchr(at, '"');
    return end ? xstrndup(at, (size_t)(end - at)) : NULL;
}

static char *token_path(const struct registry *r, const char *challenge, const char *realm)
{
    _cleanup_free_ char *service = challenge_value(challenge, "service");
    char *safe = curl_easy_escape(NULL, service ? service : "", 0), *path;

    path = xasprintf("%s%cservice=%s&scope=repository:%s:pull", realm,
        strchr(realm, '?') ? '&' : '?', safe ? safe : "", r->opts.name);
    curl_free(safe);
    return path;
}

static int read_token(struct registry *r, const struct buf *body, struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    const char *token;

    if (json_parse(body->data ? body->data : "", body->len, TOKEN_MAX_BYTES, &doc, NULL) < 0)
        return err_set(err, -EPROTO, "its token service answers no JSON");
    token = json_str_or(doc, "token", json_str_or(doc, "access_token", ""));
    if (token[0] == '\0' || strpbrk(token, "\r\n"))
        return err_set(err, -EPROTO, "its token service gives no token");
    free(r->bearer);
    r->bearer = xstrdup(token);
    return 0;
}

static int run(struct pull *p, const struct pull_opts *o, struct err *err)
{
    enum pull_result result;

    do {
        wait_until(p->wait_until);
        pull_start(p, o);
        result = pull_end(p, curl_easy_perform(p->easy), err);
    } while (result == PULL_AGAIN);
    return result == PULL_DONE ? 0 : err->code;
}

/* What the challenge asks for: a token, or basic authentication. */
static int log_in(struct registry *r, const char *challenge, struct err *err)
{
    _cleanup_free_ char *realm = challenge_value(challenge, "realm");
    struct pull p = {.body = BUF_INIT(TOKEN_MAX_BYTES)};
    struct pull_opts o;
    int code;

    free(r->bearer);
    r->bearer = NULL;
    if (r->who.token) {
        r->bearer = xstrdup(r->who.token);
        return 0;
    }
    if (strncasecmp(challenge, "bearer ", 7) != 0)
        return strncasecmp(challenge, "basic ", 6) == 0 && r->has_who ? 0 : -EACCES;
    if (!realm ||
        !(str_starts(realm, "https://") || (r->opts.insecure && str_starts(realm, "http://"))))
        return err_set(err, -EPROTO, "it names no token service that can be asked (HTTPS)");
    o = options(r, NULL);
    o.base = "";
    p.path = token_path(r, challenge, realm);
    code = run(&p, &o, err);
    if (code == 0)
        code = read_token(r, &p.body, err);
    pull_done(&p);
    return code;
}

/* ---- documents ---- */

static int get(struct registry *r, const char *path, const char *accept, size_t max,
    struct buf *ret, struct err *err)
{
    struct pull p = {.path = xstrdup(path), .body = BUF_INIT(max)};
    struct pull_opts o = options(r, accept);
    int code = run(&p, &o, err);

    if (code == -EACCES && p.status == 401) {
        code = log_in(r, p.challenge, err);
        if (code == 0) {
            o = options(r, accept);
            code = run(&p, &o, err);
        } else if (code == -EACCES) {
            err->code = code;
        }
    }
    if (code == 0 && ret) {
        *ret = p.body;
        p.body = (struct buf){0};
    }
    pull_done(&p);
    return code < 0 ? failed(r, err) : 0;
}

int registry_manifest(struct registry *r, const char *reference, struct buf *ret, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("/v2/%s/manifests/%s", r->opts.name, reference);

    return get(r, path, ACCEPT, MANIFEST_MAX_BYTES, ret, err);
}

int registry_open(const struct registry_opts *opts, struct registry **ret, struct err *err)
{
    _cleanup_(registry_closep) struct registry *r = xnew(struct registry);
    const char *host = str_eq(opts->host, IMAGE_REF_HUB) ? HUB_API : opts->host;
    int code;

    r->opts = *opts;
    r->base = xasprintf("https://%s", host);
    r->has_who = credentials_find(opts->auths, opts->auths_from, opts->host, opts->name, &r->who) ==
        0;
    if (opts->insecure) {
        struct pull p = {.path = xstrdup("/v2/")};
        struct pull_opts o = options(r, NULL);

        o.user = NULL;
        pull_start(&p, &o);
        code = curl_easy_perform(p.easy);
        pull_done(&p);
        if (code == CURLE_SSL_CONNECT_ERROR) {
            free(r->base);
            r->base = xasprintf("http://%s", host);
        }
    }
    *ret = TAKE_PTR(r);
    return 0;
}

/* ---- blobs ---- */

struct pulls {
    struct registry *r;
    CURLM *multi;
    struct pull *list;
    size_t count, next, running, done;
    void (*progress)(void *arg, uint64_t bytes);
    void *arg;
    uint64_t told;
};

static void start(struct pulls *s, struct pull *p)
{
    struct pull_opts o = options(s->r, NULL);

    p->wait_until = 0;
    pull_start(p, &o);
    curl_multi_add_handle(s->multi, p->easy);
    s->running++;
}

static int finish(struct pulls *s, struct pull *p, CURLcode code, struct err *err)
{
    int r;

    curl_multi_remove_handle(s->multi, p->easy);
    s->running--;
    switch (pull_end(p, code, err)) {
    case PULL_DONE:
        s->done++;
        return 0;
    case PULL_AGAIN:
        return 0;
    case PULL_UNAUTHORIZED:
        if (p->renewed)
            return err->code;
        p->renewed = true;
        r = log_in(s->r, p->challenge, err);
        p->wait_until = 1;
        return r;
    default:
        return err->code;
    }
}

static void start_more(struct pulls *s)
{
    uint64_t now = clock_mono_usec();

    for (size_t n = 0; n < s->next; n++)
        if (!s->list[n].easy && s->list[n].wait_until && s->list[n].wait_until <= now)
            start(s, &s->list[n]);
    while (s->next < s->count && s->running < AT_ONCE)
        start(s, &s->list[s->next++]);
}

static void tell(struct pulls *s)
{
    uint64_t now = clock_mono_usec(), sum = 0;

    if (!s->progress || now - s->told < TELL_USEC)
        return;
    s->told = now;
    for (size_t n = 0; n < s->count; n++)
        sum += s->list[n].blob->got;
    s->progress(s->arg, sum);
}

static int take_ended(struct pulls *s, struct err *err)
{
    CURLMsg *m;
    int left, r = 0;

    while (r == 0 && (m = curl_multi_info_read(s->multi, &left))) {
        CURLcode code = m->data.result;
        char *p = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p);
        r = finish(s, (struct pull *)p, code, err);
    }
    return r;
}

static int run_all(struct pulls *s, struct err *err)
{
    int running, r = 0;

    while (r == 0 && s->done < s->count) {
        start_more(s);
        if (curl_multi_perform(s->multi, &running) != CURLM_OK ||
            curl_multi_poll(s->multi, NULL, 0, 200, NULL) != CURLM_OK)
            return err_set(err, -EIO, "libcurl does not work");
        r = take_ended(s, err);
        tell(s);
    }
    return r;
}

int registry_blobs(struct registry *r, struct registry_blob *blobs, size_t count,
    void (*progress)(void *arg, uint64_t bytes), void *arg, struct err *err)
{
    struct pulls s = {
        .r = r, .multi = curl_multi_init(), .count = count, .progress = progress, .arg = arg};
    int code;

    assert(s.multi);
    s.list = xnew_array(struct pull, count);
    for (size_t n = 0; n < count; n++) {
        s.list[n].blob = &blobs[n];
        s.list[n].path = xasprintf("/v2/%s/blobs/%s", r->opts.name, blobs[n].ref.digest);
    }
    code = run_all(&s, err);
    for (size_t n = 0; n < count; n++) {
        if (s.list[n].easy)
            curl_multi_remove_handle(s.multi, s.list[n].easy);
        pull_done(&s.list[n]);
    }
    curl_multi_cleanup(s.multi);
    free(s.list);
    return code < 0 ? failed(r, err) : 0;
}
