/*
 * One GET. A blob is written where its bytes belong, so that the next try asks only for the rest;
 * a server that sends all of it again is believed. Only HTTP and HTTPS, at most five redirects, and
 * credentials go to the host that they are for (libcurl's rule).
 */
#include "image/http_pull.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"

#define SAID_MAX 16384
#define WAIT_FIRST (500 * USEC_PER_MSEC)
#define WAIT_MAX_S 60
#define CONNECT_TIMEOUT_S 15L

/* ---- what comes ---- */

static size_t put_bytes(struct pull *p, const char *data, size_t n)
{
    struct registry_blob *b = p->blob;

    for (size_t at = 0; at < n;) {
        ssize_t done;

        if (n - at > b->ref.size - b->got) {
            p->too_long = true;
            return 0;
        }
        done = pwrite(b->fd, data + at, n - at, (off_t)b->got);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            p->write_error = done < 0 ? errno : ENOSPC;
            return 0;
        }
        at += (size_t)done;
        b->got += (uint64_t)done;
    }
    return n;
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
    struct pull *p = arg;

    if (p->blob && (p->status == 200 || p->status == 206))
        return put_bytes(p, data, n);
    if (buf_append(&p->body, data, n) == 0)
        return n;
    p->too_long = p->status == 200;
    return p->too_long ? 0 : n;
}

static const char *header_value(const char *line, size_t len, const char *name)
{
    size_t n = strlen(name);

    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return NULL;
    return line + n + 1 + strspn(line + n + 1, " \t");
}

static void take_status(struct pull *p, const char *line)
{
    const char *space = strchr(line, ' ');

    p->status = space ? strtol(space, NULL, 10) : 0;
    p->retry_after = 0;
    p->challenge[0] = '\0';
    buf_consume(&p->body, p->body.len);
    if (p->blob && p->status == 200)
        p->blob->got = 0;
}

static size_t on_header(char *data, size_t one, size_t n, void *arg)
{
    _cleanup_free_ char *line = xstrndup(data, n);
    struct pull *p = arg;
    const char *v;

    line[strcspn(line, "\r\n")] = '\0';
    if (str_starts(line, "HTTP/"))
        take_status(p, line);
    else if ((v = header_value(line, strlen(line), "retry-after")))
        p->retry_after = (unsigned)MIN_OF(strtoul(v, NULL, 10), (unsigned long)WAIT_MAX_S);
    else if ((v = header_value(line, strlen(line), "www-authenticate")))
        (void)str_copy(p->challenge, sizeof(p->challenge), v);
    return n;
}

/* Called about once a second, also when nothing comes. */
static int on_progress(
    void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up)
{
    struct pull *p = arg;
    uint64_t usec = clock_mono_usec();

    if (now != p->moved)
        p->moved_usec = usec;
    p->moved = now;
    p->stalled = usec - p->moved_usec >= p->stall_usec;
    return p->stalled ? 1 : 0;
}

/* ---- one try ---- */

void pull_done(struct pull *p)
{
    if (p->easy)
        curl_easy_cleanup(p->easy);
    curl_slist_free_all(p->headers);
    buf_done(&p->body);
    free(p->path);
    *p = (struct pull){0};
}

static void set_who(struct pull *p, const struct pull_opts *o)
{
    if (o->bearer) {
        curl_easy_setopt(p->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_easy_setopt(p->easy, CURLOPT_XOAUTH2_BEARER, o->bearer);
    } else if (o->user) {
        curl_easy_setopt(p->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        curl_easy_setopt(p->easy, CURLOPT_USERNAME, o->user);
        curl_easy_setopt(p->easy, CURLOPT_PASSWORD, o->password);
    }
}

static void set_how(struct pull *p, const struct pull_opts *o)
{
    const char *schemes = o->insecure ? "http,https" : "https";

    curl_easy_setopt(p->easy, CURLOPT_PROTOCOLS_STR, schemes);
    curl_easy_setopt(p->easy, CURLOPT_REDIR_PROTOCOLS_STR, schemes);
    curl_easy_setopt(p->easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(p->easy, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(p->easy, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
    curl_easy_setopt(p->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(p->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(p->easy, CURLOPT_XFERINFODATA, p);
    p->stall_usec = o->stall_usec;
    p->moved_usec = clock_mono_usec();
    p->moved = 0;
    p->stalled = false;
    curl_easy_setopt(p->easy, CURLOPT_BUFFERSIZE, 512L * 1024);
    curl_easy_setopt(p->easy, CURLOPT_USERAGENT, "muster-import");
    curl_easy_setopt(p->easy, CURLOPT_SSL_VERIFYPEER, o->insecure ? 0L : 1L);
    curl_easy_setopt(p->easy, CURLOPT_SSL_VERIFYHOST, o->insecure ? 0L : 2L);
    if (o->ca) {
        struct curl_blob pem = {(void *)o->ca, strlen(o->ca), CURL_BLOB_NOCOPY};
        curl_easy_setopt(p->easy, CURLOPT_CAINFO_BLOB, &pem);
    }
}

void pull_start(struct pull *p, const struct pull_opts *o)
{
    _cleanup_free_ char *url = xasprintf("%s%s", o->base, p->path);
    _cleanup_free_ char *range = NULL;
    _cleanup_free_ char *accept = o->accept ? xasprintf("Accept: %s", o->accept) : NULL;

    p->easy = curl_easy_init();
    assert(p->easy);
    if (p->body.max == 0)
        p->body = BUF_INIT(SAID_MAX);
    p->status = 0;
    p->write_error = 0;
    p->curl_error[0] = '\0';
    if (accept)
        p->headers = curl_slist_append(NULL, accept);
    curl_easy_setopt(p->easy, CURLOPT_URL, url);
    curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
    curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, p);
    curl_easy_setopt(p->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(p->easy, CURLOPT_HEADERDATA, p);
    curl_easy_setopt(p->easy, CURLOPT_ERRORBUFFER, p->curl_error);
    curl_easy_setopt(p->easy, CURLOPT_PRIVATE, p);
    set_how(p, o);
    set_who(p, o);
    /* Not RESUME_FROM: that takes an answer with all of it for an error. */
    range = p->blob && p->blob->got > 0 ? xasprintf("%llu-", (unsigned long long)p->blob->got)
                                        : NULL;
    curl_easy_setopt(p->easy, CURLOPT_RANGE, range);
}

/* ---- what it came to ---- */

/* {"errors": [{"code", "message"}]}; or nothing. Heap. */
static char *said(const struct pull *p)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    const json_t *first;
    const char *text;

    if (!p->body.data || json_parse(p->body.data, p->body.len, SAID_MAX, &doc, NULL) < 0)
        return xstrdup("");
    first = json_array_get(json_object_get(doc, "errors"), 0);
    text = json_str_or(first, "message", json_str_or(doc, "details", ""));
    return str_escape(text, strlen(text), 80);
}

static bool is_worth_a_try(long status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

static enum pull_result again(struct pull *p)
{
    uint64_t wait = WAIT_FIRST << MIN_OF(p->tries, 8u);

    if (p->blob && p->blob->got > p->best) { /* it goes on, if slowly */
        p->best = p->blob->got;
        p->tries = 0;
    }
    if (++p->tries >= HTTP_TRIES)
        return PULL_FAILED;
    if (p->retry_after)
        wait = p->retry_after * USEC_PER_SEC;
    p->wait_until = clock_mono_usec() + wait;
    return PULL_AGAIN;
}

static enum pull_result judge_status(struct pull *p, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    bool short_of = p->blob && p->blob->got < p->blob->ref.size;

    if (p->status == 200 || p->status == 206) {
        if (!short_of)
            return PULL_DONE;
        err_set(err, -EPROTO, "%.120s: ends after %llu of %llu bytes", p->path,
            (unsigned long long)p->blob->got, (unsigned long long)p->blob->ref.size);
        return again(p);
    }
    text = said(p);
    err_set(err,
        p->status == 404                           ? -ENOENT
            : p->status == 401 || p->status == 403 ? -EACCES
                                                   : -EPROTO,
        "%.120s: HTTP %ld%s%s", p->path, p->status, text[0] ? ", " : "", text);
    if (p->status == 401)
        return PULL_UNAUTHORIZED;
    return is_worth_a_try(p->status) ? again(p) : PULL_FAILED;
}

static enum pull_result judge_curl(struct pull *p, CURLcode code, long error, struct err *err)
{
    const char *why = p->curl_error[0] ? p->curl_error : curl_easy_strerror(code);
    _cleanup_free_ char *shown = str_escape(why, strlen(why), 110);

    err_set(err, -EPROTO, "%.100s: %s", p->path, shown);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
        return PULL_FAILED;
    case CURLE_SSL_CONNECT_ERROR:
        err_set(err, -EPROTO, "it does not speak HTTPS as it should (%s)", shown);
        return PULL_FAILED;
    case CURLE_COULDNT_CONNECT:
        if (error)
            err_set(err, -(int)error, "cannot connect: %s", strerror((int)error));
        return again(p);
    case CURLE_ABORTED_BY_CALLBACK:
        err_set(err, -ETIMEDOUT, "%.100s: it sends nothing for %llu seconds", p->path,
            (unsigned long long)(p->stall_usec / USEC_PER_SEC));
        return again(p);
    default:
        return again(p);
    }
}

enum pull_result pull_end(struct pull *p, CURLcode code, struct err *err)
{
    enum pull_result result;
    long error = 0;

    curl_easy_getinfo(p->easy, CURLINFO_OS_ERRNO, &error);
    curl_easy_cleanup(p->easy);
    p->easy = NULL;
    curl_slist_free_all(p->headers);
    p->headers = NULL;
    if (p->write_error) {
        err_sys(err, -p->write_error, "cannot keep what is fetched");
        return PULL_FAILED;
    }
    if (p->too_long) {
        err_set(err, -EFBIG, "%.120s: larger than %s", p->path,
            p->blob ? "the manifest says" : "4 MiB, the most for a document");
        return PULL_FAILED;
    }
    result = code == CURLE_OK ? judge_status(p, err) : judge_curl(p, code, error, err);
    return result;
}
