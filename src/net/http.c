/*
 * Blocking HTTP/1.1 on one connection that is kept between calls. No redirects, no proxies, no
 * signals, nothing but http and https. Owns struct http; the request is http_send.c's, the answer
 * http_receive.c's.
 */
#include "net/http.h"

#include "base/clock.h"
#include "base/str.h"
#include "net/http_internal.h"

#define CONNECT_USEC (5 * USEC_PER_SEC)
#define CALL_USEC (60 * USEC_PER_SEC)

int http_new(const struct http_opts *opts, struct http **ret, struct err *err)
{
    struct uri uri;
    struct http *h;
    size_t len;
    int r = uri_parse_http(opts->base_url, &uri, err);

    if (r < 0)
        return r;
    if (opts->token && !str_is_clean(opts->token, strlen(opts->token)))
        return err_set(err, -EINVAL, "the token has characters that no header can carry");
    h = xnew(struct http);
    h->link = HTTP_LINK_INIT;
    h->uri = uri;
    h->prefix = xstrdup(uri.path);
    len = strlen(h->prefix);
    h->prefix[len - (h->prefix[len - 1] == '/')] = '\0';
    h->uri.path = NULL;
    h->base_url = xstrdup(opts->base_url);
    if (str_ends(h->base_url, "/"))
        h->base_url[strlen(h->base_url) - 1] = '\0';
    h->token = xstrdup(opts->token);
    h->ca_path = xstrdup(opts->ca_path);
    h->cert_path = xstrdup(opts->cert_path);
    h->key_path = xstrdup(opts->key_path);
    h->server_name = xstrdup(opts->server_name);
    h->connect_usec = opts->connect_usec ? opts->connect_usec : CONNECT_USEC;
    h->in = xcalloc(1, HTTP_BUFFER);
    *ret = h;
    return 0;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    http_link_close(&h->link);
    if (h->tls)
        h->tls->ops->config_free(h->tls);
    free(h->base_url);
    free(h->prefix);
    free(h->token);
    free(h->ca_path);
    free(h->cert_path);
    free(h->key_path);
    free(h->server_name);
    free(h->in);
    free(h);
}

void http_freep(struct http **h)
{
    http_free(*h);
}

static int make_tls(struct http *h, struct err *err)
{
    struct tls_files files = {h->cert_path, h->key_path, h->ca_path};
    const struct tls_ops *ops;
    int r;

    if (h->tls || !h->uri.tls)
        return 0;
    r = tls_load(&ops, err);
    return r < 0
        ? r
        : ops->config_client(h->server_name ? h->server_name : h->uri.host, &files, &h->tls, err);
}

static uint64_t after(uint64_t usec)
{
    uint64_t now = clock_mono_usec();

    return usec > UINT64_MAX - now ? UINT64_MAX : now + usec;
}

/* A connection to ask on; *ret_kept: it was used before. */
static int connect_now(struct exchange *x, bool *ret_kept, struct err *err)
{
    struct http *h = x->http;
    int r;

    *ret_kept = http_link_is_idle(&h->link);
    if (*ret_kept)
        return 0;
    http_link_close(&h->link);
    h->in_at = h->in_len = 0;
    r = make_tls(h, err);
    if (r < 0)
        return r;
    return http_link_open(
        &h->link, &h->uri, h->tls, MIN_OF(after(h->connect_usec), x->deadline), err);
}

static bool has_header(const struct http_call *call, const char *start)
{
    for (const char *const *p = call->headers; p && *p; p++) {
        if (strncasecmp(*p, start, strlen(start)) == 0)
            return true;
    }
    return false;
}

/* May the server get this call twice? (RFC 9110 section 9.2.2; the key makes any call so.) */
static bool is_idempotent(const struct http_call *call)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (str_eq(call->method, methods[i]))
            return true;
    }
    return has_header(call, "Idempotency-Key:");
}

static int ask(struct exchange *x, struct err *err)
{
    int r = http_send(x, err);

    if (r == 0)
        r = http_receive_head(x, err);
    if (r == 0)
        r = http_receive_body(x, err);
    return r;
}

/* *ret_again: the server had closed the kept connection before it saw this. */
static int try_call(struct exchange *x, bool *ret_again, struct err *err)
{
    bool kept;
    int r = connect_now(x, &kept, err);

    *ret_again = false;
    if (r < 0)
        return r;
    r = ask(x, err);
    *ret_again = kept && !x->heard && (r == -ECONNRESET || r == -EPIPE);
    if (r < 0 || !x->keep)
        http_link_close(&x->http->link);
    return r;
}

static void keep_answer(const struct exchange *x, struct http_call *call)
{
    const char *type = http1_header(&x->head, "content-type");

    call->status = x->head.status;
    snprintf(call->content_type_got, sizeof(call->content_type_got), "%s", type ? type : "");
}

static bool rewind_body(const struct http_call *call, off_t start)
{
    return call->body_fd <= 0 || (start >= 0 && lseek(call->body_fd, start, SEEK_SET) == start);
}

static int call_it(struct http *h, struct http_call *call, struct err *err)
{
    struct exchange x = {.http = h, .call = call};
    off_t start = http_body_start(call);
    bool again;
    int r;

    x.deadline = after(call->timeout_usec ? call->timeout_usec : CALL_USEC);
    r = try_call(&x, &again, err);
    if (again && is_idempotent(call) && rewind_body(call, start)) {
        free(x.text);
        x = (struct exchange){.http = h, .call = call, .deadline = x.deadline};
        r = try_call(&x, &again, err);
    }
    if (r == 0)
        keep_answer(&x, call);
    free(x.text);
    return r;
}

int http_do(struct http *h, struct http_call *call, struct err *err)
{
    struct err local = ERR_INIT;
    int r;

    err = err ? err : &local; /* texts are put together in it */
    call->status = 0;
    call->content_type_got[0] = '\0';
    if (call->path[0] != '/')
        return err_set(err, -EINVAL, "the path '%.100s' does not start with '/'", call->path);
    r = call_it(h, call, err);
    if (r < 0) {
        err_prefix(err, "%s", h->base_url);
        err->code = r;
    }
    return r;
}

static int look(const struct uri *uri, struct tls_config *config, char **ret_chain, struct err *err)
{
    struct http_link link;
    int r = http_link_open(&link, uri, config, after(CONNECT_USEC), err);

    if (r < 0)
        return r;
    *ret_chain = link.tls->ops->peer_chain(link.tls);
    http_link_close(&link);
    return 0;
}

int http_look(const char *url, const char *server_name, char **ret_chain, struct err *err)
{
    struct tls_files files = {.unchecked = true};
    struct tls_config *config = NULL;
    const struct tls_ops *ops = NULL;
    struct uri uri;
    int r = uri_parse_http(url, &uri, err);

    if (r < 0)
        return r;
    if (!uri.tls)
        return err_set(err, -EINVAL, "'%s' does not begin with https://", url);
    r = tls_load(&ops, err);
    if (r == 0)
        r = ops->config_client(server_name ? server_name : uri.host, &files, &config, err);
    if (r < 0)
        return r;
    r = look(&uri, config, ret_chain, err);
    ops->config_free(config);
    return r < 0 ? err_prefix(err, "%s", url) : 0;
}

char *http_encode(const char *text)
{
    return uri_encode(text);
}
