/*
 * Blocking HTTP on one libcurl handle. Owns the handle, so the connection stays open between calls.
 * No redirects, no proxies, no signals, nothing but http and https.
 */
#include "net/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/str.h"
#include "net/uri.h"

#define CONNECT_MSEC 5000
#define CALL_MSEC 60000
#define BUFFER_BYTES 65536L

struct http {
    CURL *curl;
    char *base_url, *token, *ca_path, *cert_path, *key_path;
    long connect_msec;
};

/* One call while it runs. */
struct transfer {
    struct http *http;
    struct http_call *call;
    const char *body;
    size_t body_left;
    int result; /* why it was ended by us */
};

static void start_libcurl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static long msec_of(uint64_t usec)
{
    return (long)MIN_OF(MAX_OF(usec / 1000, UINT64_C(1)), UINT64_C(2000000000));
}

int http_new(const struct http_opts *opts, struct http **ret, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http *h;

    if (!str_starts(opts->base_url, "http://") && !str_starts(opts->base_url, "https://"))
        return err_set(err, -EINVAL, "the address '%.100s' does not start with http:// or https://",
            opts->base_url ? opts->base_url : "");
    if (opts->token && !str_is_clean(opts->token, strlen(opts->token)))
        return err_set(err, -EINVAL, "the token has characters that no header can carry");
    pthread_once(&once, start_libcurl);
    h = xnew(struct http);
    h->curl = curl_easy_init();
    if (!h->curl) {
        free(h);
        return err_set(err, -ENOMEM, "libcurl cannot make a handle");
    }
    h->base_url = xstrdup(opts->base_url);
    if (str_ends(h->base_url, "/"))
        h->base_url[strlen(h->base_url) - 1] = '\0';
    h->token = xstrdup(opts->token);
    h->ca_path = xstrdup(opts->ca_path);
    h->cert_path = xstrdup(opts->cert_path);
    h->key_path = xstrdup(opts->key_path);
    h->connect_msec = opts->connect_usec ? msec_of(opts->connect_usec) : CONNECT_MSEC;
    *ret = h;
    return 0;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->curl);
    free(h->base_url);
    free(h->token);
    free(h->ca_path);
    free(h->cert_path);
    free(h->key_path);
    free(h);
}

void http_freep(struct http **h)
{
    http_free(*h);
}

static size_t got_data(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    struct http_call *call = t->call;
    size_t len = size * count;
    long status = 0;
    int r = 0;

    curl_easy_getinfo(t->http->curl, CURLINFO_RESPONSE_CODE, &status);
    if (call->on_data && status >= 200 && status < 300)
        r = call->on_data(data, len, call->arg);
    else if (call->out)
        r = buf_append(call->out, data, len);
    if (r < 0) {
        t->result = r;
        return len + 1; /* anything but len ends the transfer */
    }
    return len;
}

static size_t give_body(char *to, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    size_t room = size * count;
    ssize_t n;

    if (t->call->body_fd > 0) {
        do
            n = read(t->call->body_fd, to, room);
        while (n < 0 && errno == EINTR);
        if (n >= 0)
            return (size_t)n;
        t->result = -errno;
        return CURL_READFUNC_ABORT;
    }
    n = (ssize_t)MIN_OF(room, t->body_left);
    memcpy(to, t->body, (size_t)n);
    t->body += n;
    t->body_left -= (size_t)n;
    return (size_t)n;
}

static int rewind_body(void *arg, curl_off_t offset, int origin)
{
    struct transfer *t = arg;

    /* Needed when a kept connection turns out to be closed after part of the body was sent. */
    if (t->call->body_fd > 0 || origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_FAIL;
    t->body = t->call->body;
    t->body_left = t->call->body_len;
    return CURL_SEEKFUNC_OK;
}

static void freep_list(struct curl_slist **list)
{
    curl_slist_free_all(*list);
}

static void add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    assert(longer);
    *list = longer;
}

static bool has_body(const struct http_call *call)
{
    return call->body_fd > 0 || call->body;
}

static void set_headers(
    const struct http *h, const struct http_call *call, struct curl_slist **list)
{
    if (h->token) {
        _cleanup_free_ char *line = xasprintf("Authorization: Bearer %s", h->token);

        add_line(list, line);
    }
    if (has_body(call)) {
        _cleanup_free_ char *line = xasprintf(
            "Content-Type: %s", call->content_type ? call->content_type : "application/json");

        add_line(list, line);
        /* Small bodies leave at once; large ones are worth a question first. */
        if (call->body_fd <= 0 && call->body_len < BUFFER_BYTES)
            add_line(list, "Expect:");
    }
    for (const char *const *p = call->headers; p && *p; p++)
        add_line(list, *p);
}

/* From where it stands to its end; -1 (chunks) for what is no regular file. */
static curl_off_t body_size(const struct http_call *call)
{
    struct stat st;
    off_t at;

    if (call->body_fd <= 0)
        return (curl_off_t)call->body_len;
    if (fstat(call->body_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    at = lseek(call->body_fd, 0, SEEK_CUR);
    return at < 0 || at > st.st_size ? -1 : st.st_size - at;
}

static void set_method(CURL *curl, struct transfer *t)
{
    const struct http_call *call = t->call;

    if (has_body(call)) {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_body);
        curl_easy_setopt(curl, CURLOPT_READDATA, t);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, rewind_body);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, t);
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, body_size(call));
    } else if (str_eq(call->method, "HEAD")) {
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (str_eq(call->method, "POST") || str_eq(call->method, "PUT") ||
        str_eq(call->method, "PATCH")) { /* says Content-Length: 0 */
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
}

static void set_tls(const struct http *h)
{
    if (h->ca_path) {
        curl_easy_setopt(h->curl, CURLOPT_CAINFO, h->ca_path);
        curl_easy_setopt(h->curl, CURLOPT_CAPATH, NULL);
    }
    if (h->cert_path)
        curl_easy_setopt(h->curl, CURLOPT_SSLCERT, h->cert_path);
    if (h->key_path)
        curl_easy_setopt(h->curl, CURLOPT_SSLKEY, h->key_path);
    curl_easy_setopt(h->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

static void set_limits(const struct http *h, const struct http_call *call)
{
    CURL *curl = h->curl;

    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, h->connect_msec);
    if (call->timeout_usec != UINT64_MAX)
        curl_easy_setopt(
            curl, CURLOPT_TIMEOUT_MS, call->timeout_usec ? msec_of(call->timeout_usec) : CALL_MSEC);
}

static int errno_of(CURL *curl, CURLcode code)
{
    long os = 0;

    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return -EHOSTUNREACH;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os);
        return os > 0 ? -(int)os : -ECONNREFUSED;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return -EINVAL;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return -EPERM;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return -ECONNRESET;
    default:
        return -EIO;
    }
}

static int explain(struct transfer *t, CURLcode code, const char *detail, struct err *err)
{
    const struct http *h = t->http;

    if (t->result == -EMSGSIZE && t->call->out)
        return err_set(err, -EMSGSIZE, "%s: the answer is longer than %zu bytes", h->base_url,
            t->call->out->max);
    if (t->result < 0)
        return err_sys(err, t->result, "%s: the transfer was ended", h->base_url);
    return err_set(err, errno_of(h->curl, code), "%s: %s", h->base_url,
        detail[0] ? detail : curl_easy_strerror(code));
}

static void keep_answer(struct http *h, struct http_call *call)
{
    const char *type = NULL;
    long status = 0;

    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(h->curl, CURLINFO_CONTENT_TYPE, &type);
    call->status = (unsigned)status;
    snprintf(call->content_type_got, sizeof(call->content_type_got), "%s", type ? type : "");
}

int http_do(struct http *h, struct http_call *call, struct err *err)
{
    _cleanup_(freep_list) struct curl_slist *headers = NULL;
    _cleanup_free_ char *url = xasprintf("%s%s", h->base_url, call->path);
    struct transfer t = {h, call, call->body, call->body_len, 0};
    char detail[CURL_ERROR_SIZE] = "";
    CURLcode code;

    call->status = 0;
    call->content_type_got[0] = '\0';
    if (call->path[0] != '/')
        return err_set(err, -EINVAL, "the path '%.100s' does not start with '/'", call->path);
    curl_easy_reset(h->curl); /* keeps the connection */
    set_limits(h, call);
    set_tls(h);
    set_headers(h, call, &headers);
    set_method(h->curl, &t);
    curl_easy_setopt(h->curl, CURLOPT_URL, url);
    curl_easy_setopt(h->curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, got_data);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &t);
    code = curl_easy_perform(h->curl);
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, NULL);
    if (code == CURLE_OK)
        keep_answer(h, call);
    return code == CURLE_OK ? 0 : explain(&t, code, detail, err);
}

char *http_encode(const char *text)
{
    return uri_encode(text);
}
