/* TLS on all sides, with certificates made by the openssl program; and the blocking client. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fs.h"
#include "fixture.h"
#include "net/http.h"

static struct certs certs;

struct server {
    struct fixture f;
    char cert_name[128];
    char method[16], type[64], key[64], path[128];
    char *body;
    size_t body_len;
    unsigned requests, peers;
    char peer_ports[8][24];
    struct ws *ws;
    unsigned ws_messages, ws_closed;
    uint64_t ws_bytes;
};

static void ws_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct server *s = arg;

    s->ws_messages++;
    ws_send(ws, data, len, binary);
}

static void ws_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    ((struct server *)arg)->ws_closed++;
}

static const struct ws_events ECHOING = {NULL, ws_message, NULL, ws_closed};

static void on_body(struct request *rq, const char *body, size_t len, void *arg)
{
    struct server *s = arg;

    free(s->body);
    s->body = xmemdup(body, len + 1);
    s->body_len = len;
    request_reply(rq, 201, "text/plain", "made", 4);
}

static void handle(struct request *rq, void *arg)
{
    struct server *s = arg;
    const struct cert_info *cert = request_cert(rq);
    const char *type = request_header(rq, "content-type");
    const char *key = request_header(rq, "idempotency-key");

    s->requests++;
    snprintf(s->cert_name, sizeof(s->cert_name), "%s", cert ? cert->name : "");
    snprintf(s->method, sizeof(s->method), "%s", request_method(rq));
    snprintf(s->type, sizeof(s->type), "%s", type ? type : "");
    snprintf(s->key, sizeof(s->key), "%s", key ? key : "");
    snprintf(s->path, sizeof(s->path), "%s", request_path(rq));
    if (request_wants_upgrade(rq)) {
        s->ws = request_upgrade(rq, &ECHOING, s);
    } else if (str_eq(request_path(rq), "/large")) {
        static char large[3 << 20];

        request_reply(rq, 200, "application/octet-stream", large, sizeof(large));
    } else if (str_eq(request_path(rq), "/refuse")) {
        request_reply(rq, 403, "application/json", "{\"code\":\"forbidden\"}", 20);
    } else if (str_eq(request_path(rq), "/redirect")) {
        request_add_header(rq, "Location", "/elsewhere");
        request_reply(rq, 302, NULL, NULL, 0);
    } else if (str_eq(request_path(rq), "/never")) {
        ;
    } else if (str_eq(request_path(rq), "/file")) {
        int fd = memfd_create("f", 0);

        assert_int_equal(ftruncate(fd, 5 << 20), 0);
        request_reply_file(rq, "application/octet-stream", fd, 0, 5 << 20, 5 << 20);
    } else if (!str_eq(request_method(rq), "GET")) {
        request_read_body(rq, on_body, s);
    } else {
        request_reply(rq, 200, "text/plain", "hello", 5);
    }
}

static void with_tls(struct server *s, const char *ca)
{
    struct err err = ERR_INIT;
    struct net_limits limits = {.body_max = 16 << 20};
    struct listen_opts opts = {.host = "127.0.0.1",
        .cert_path = certs.cert,
        .key_path = certs.key,
        .ca_path = ca,
        .fn = handle,
        .arg = s};

    memset(s, 0, sizeof(*s));
    fixture_begin(&s->f, &limits, NULL, NULL);
    if (server_listen(s->f.net, &opts, &s->f.port, &err) < 0)
        fail_msg("%s", err_text(&err));
}

static void with_plain(struct server *s)
{
    struct net_limits limits = {.body_max = 16 << 20};

    memset(s, 0, sizeof(*s));
    fixture_begin(&s->f, &limits, handle, s);
}

static void without(struct server *s)
{
    fixture_end(&s->f);
    free(s->body);
}

/* http_do in a thread of its own while the loop turns here. */
struct job {
    struct http *http;
    struct http_call *call;
    struct err err;
    int result;
    bool done;
};

static void *work(void *arg)
{
    struct job *job = arg;

    job->result = http_do(job->http, job->call, &job->err);
    __atomic_store_n(&job->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static int call_it(struct server *s, struct http *http, struct http_call *call, struct err *err)
{
    struct job job = {.http = http, .call = call};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, work, &job), 0);
    while (!__atomic_load_n(&job.done, __ATOMIC_ACQUIRE))
        turn_for(&s->f, 0);
    pthread_join(thread, NULL);
    *err = job.err;
    return job.result;
}

static struct http *client(struct server *s, const char *scheme, const char *host, const char *ca,
    const char *cert, const char *key)
{
    _cleanup_free_ char *url = xasprintf("%s://%s:%u", scheme, host, s->f.port);
    struct http_opts opts = {
        .base_url = url, .token = "t0ken", .ca_path = ca, .cert_path = cert, .key_path = key};
    struct err err = ERR_INIT;
    struct http *http;

    if (http_new(&opts, &http, &err) < 0)
        fail_msg("%s", err_text(&err));
    return http;
}

static int get(
    struct server *s, struct http *http, const char *path, struct http_call *call, struct err *err)
{
    *call = (struct http_call){.method = "GET", .path = path, .out = call->out};
    return call_it(s, http, call, err);
}

static void a_call_gets_status_type_and_body(void **state)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct http_call call = {.out = &out};
    struct err err = ERR_INIT;
    struct server s;
    _cleanup_(http_freep) struct http *http = NULL;

    with_plain(&s);
    http = client(&s, "http", "127.0.0.1", NULL, NULL, NULL);
    assert_int_equal(get(&s, http, "/x%20y?z", &call, &err), 0);
    assert_int_equal(call.status, 200);
    assert_string_equal(call.content_type_got, "text/plain");
    assert_string_equal(out.data, "hello");
    assert_string_equal(s.path, "/x y");
    out.len = 0;
    assert_int_equal(get(&s, http, "/refuse", &call, &err), 0);
    assert_int_equal(call.status, 403);
    assert_string_equal(out.data, "{\"code\":\"forbidden\"}");
    out.len = 0;
    assert_int_equal(get(&s, http, "/redirect", &call, &err), 0);
    assert_int_equal(call.status, 302);
    assert_string_equal(s.path, "/redirect");
    assert_int_equal(get(&s, http, "/large", &call, &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, ": the answer is longer than 100 bytes"));
    without(&s);
}

static int count_data(const char *data, size_t len, void *arg)
{
    *(size_t *)arg += len;
    return 0;
}

static int refuse_data(const char *data, size_t len, void *arg)
{
    return -ENOSPC;
}

static void an_answer_can_be_taken_in_pieces(void **state)
{
    struct http_call call = {.method = "GET", .path = "/large"};
    struct err err = ERR_INIT;
    size_t got = 0;
    struct server s;
    _cleanup_(http_freep) struct http *http = NULL;

    with_plain(&s);
    http = client(&s, "http", "127.0.0.1", NULL, NULL, NULL);
    call.on_data = count_data;
    call.arg = &got;
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_int_equal(got, 3 << 20);
    call.path = "/file";
    got = 0;
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_int_equal(got, 5 << 20);
    call.on_data = refuse_data;
    assert_int_equal(call_it(&s, http, &call, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "No space left on device"));
    without(&s);
}

static void bodies_are_sent_from_memory_and_from_files(void **state)
{
    static const char *const headers[] = {"Idempotency-Key: abc", NULL};
    struct http_call call = {.method = "POST", .path = "/v1/x", .headers = headers};
    _cleanup_free_ char *large = xcalloc(1, 4 << 20);
    _cleanup_close_ int fd = memfd_create("body", 0);
    struct err err = ERR_INIT;
    int ends[2];
    struct server s;
    _cleanup_(http_freep) struct http *http = NULL;

    for (int i = 0; i < 4 << 20; i++)
        large[i] = (char)(i * 31 + i / 256);
    with_plain(&s);
    http = client(&s, "http", "127.0.0.1", NULL, NULL, NULL);
    call.body = "{}";
    call.body_len = 2;
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_int_equal(call.status, 201);
    assert_string_equal(s.type, "application/json");
    assert_string_equal(s.key, "abc");
    assert_string_equal(s.body, "{}");
    call.body = large; /* asks with 100-continue first */
    call.body_len = 4 << 20;
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_int_equal(s.body_len, 4 << 20);
    assert_memory_equal(s.body, large, 4 << 20);
    call.body = NULL;
    call.method = "PUT";
    call.body_fd = fd;
    call.content_type = "application/octet-stream";
    assert_int_equal(write(fd, large, 100000), 100000);
    lseek(fd, 1000, SEEK_SET);
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_string_equal(s.method, "PUT");
    assert_string_equal(s.type, "application/octet-stream");
    assert_int_equal(s.body_len, 99000);
    assert_memory_equal(s.body, large + 1000, 99000);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* of unknown length: goes in chunks */
    assert_int_equal(write(ends[1], large, 5000), 5000);
    close(ends[1]);
    call.body_fd = ends[0];
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_int_equal(s.body_len, 5000);
    close(ends[0]);
    call = (struct http_call){.method = "DELETE", .path = "/v1/x"};
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_string_equal(s.method, "DELETE");
    assert_int_equal(s.body_len, 0);
    call = (struct http_call){.method = "POST", .path = "/v1/x"};
    assert_int_equal(call_it(&s, http, &call, &err), 0);
    assert_string_equal(s.method, "POST");
    without(&s);
}

static void a_call_that_cannot_be_made_says_to_whom(void **state)
{
    struct http_opts opts = {.base_url = "http://127.0.0.1:1"};
    struct http_call call = {.method = "GET", .path = "/"};
    struct err err = ERR_INIT;
    struct server s;
    struct http *http;

    assert_int_equal(http_new(&opts, &http, &err), 0);
    assert_int_equal(http_do(http, &call, &err), -ECONNREFUSED);
    assert_true(str_starts(err.text, "http://127.0.0.1:1: "));
    assert_int_equal(call.status, 0);
    http_free(http);
    opts.base_url = "ftp://x";
    assert_int_equal(http_new(&opts, &http, &err), -EINVAL);
    opts.base_url = "http://x";
    opts.token = "a\r\nb";
    assert_int_equal(http_new(&opts, &http, &err), -EINVAL);
    with_plain(&s);
    http = client(&s, "http", "127.0.0.1", NULL, NULL, NULL);
    call.path = "/never";
    call.timeout_usec = 100000;
    assert_int_equal(call_it(&s, http, &call, &err), -ETIMEDOUT);
    http_free(http);
    without(&s);
}

static void text_is_encoded_for_a_path(void **state)
{
    _cleanup_free_ char *text = http_encode("a/b c?d=%&\xc3\xa9~-._");

    assert_string_equal(text, "a%2Fb%20c%3Fd%3D%25%26%C3%A9~-._");
}

static void a_server_is_checked_and_answers_over_tls(void **state)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(8 << 20);
    struct http_call call = {.out = &out};
    struct err err = ERR_INIT;
    struct server s;
    struct http *http;

    with_tls(&s, NULL);
    http = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        out.len = 0;
        if (get(&s, http, "/", &call, &err) < 0)
            fail_msg("%s", err_text(&err));
        assert_string_equal(out.data, "hello");
    }
    assert_string_equal(s.cert_name, "");
    out.len = 0;
    assert_int_equal(get(&s, http, "/large", &call, &err), 0);
    assert_int_equal(out.len, 3 << 20);
    out.len = 0;
    assert_int_equal(get(&s, http, "/file", &call, &err), 0);
    assert_int_equal(out.len, 5 << 20);
    http_free(http);
    http = client(&s, "https", "localhost", certs.other_cert, NULL, NULL);
    assert_int_equal(get(&s, http, "/", &call, &err), -EPERM);
    http_free(http);
    without(&s);
}

static void a_client_certificate_is_known_by_name_if_it_is_ours(void **state)
{
    struct http_call call = {0};
    struct err err = ERR_INIT;
    struct server s;
    struct http *http;
    unsigned requests;

    with_tls(&s, certs.ca);
    http = client(&s, "https", "127.0.0.1", certs.ca, certs.client_cert, certs.client_key);
    if (get(&s, http, "/", &call, &err) < 0)
        fail_msg("%s", err_text(&err));
    assert_string_equal(s.cert_name, "node-7");
    http_free(http);
    http = client(&s, "https", "127.0.0.1", certs.ca, NULL, NULL);
    assert_int_equal(get(&s, http, "/", &call, &err), 0);
    assert_string_equal(s.cert_name, "");
    http_free(http);
    requests = s.requests;
    http = client(&s, "https", "127.0.0.1", certs.ca, certs.other_cert, certs.other_key);
    assert_true(get(&s, http, "/", &call, &err) < 0);
    assert_int_equal(s.requests, requests);
    http_free(http);
    without(&s);
}

struct dialer {
    struct ws *ws;
    unsigned opened, closed, messages, sent, wanted;
    uint64_t bytes;
    unsigned code;
    char text[200];
};

static void d_opened(struct ws *ws, void *arg)
{
    ((struct dialer *)arg)->opened++;
}

static void d_send(struct dialer *d)
{
    while (d->sent < d->wanted && ws_queued(d->ws) < (1 << 20)) {
        size_t len = (d->sent * 7919u) % 300000;
        _cleanup_free_ char *data = xcalloc(1, len);

        memset(data, (int)d->sent, len);
        ws_send(d->ws, data, len, true);
        d->sent++;
    }
}

static void d_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct dialer *d = arg;

    assert_int_equal(len, (d->messages * 7919u) % 300000);
    if (len)
        assert_int_equal(((const uint8_t *)data)[len - 1], (uint8_t)d->messages);
    d->messages++;
    d_send(d);
}

static void d_drained(struct ws *ws, void *arg)
{
    d_send(arg);
}

static void d_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct dialer *d = arg;

    d->closed++;
    d->code = code;
    d->ws = NULL;
    snprintf(d->text, sizeof(d->text), "%s", text);
}

static const struct ws_events DIALER = {d_opened, d_message, d_drained, d_closed};

static void dial(struct server *s, struct dialer *d, const char *host, const char *ca,
    const char *cert, const char *key)
{
    _cleanup_free_ char *url = xasprintf("wss://%s:%u/link", host, s->f.port);
    struct ws_connect_opts opts = {.url = url, .ca_path = ca, .cert_path = cert, .key_path = key};
    struct err err = ERR_INIT;

    memset(d, 0, sizeof(*d));
    if (ws_connect(s->f.net, &opts, &DIALER, d, &d->ws, &err) < 0)
        fail_msg("%s", err_text(&err));
}

static void until(struct server *s, const unsigned *value, unsigned wanted, unsigned msec)
{
    uint64_t end = uv_hrtime() / 1000000 + msec;

    while (*value < wanted) {
        if (uv_hrtime() / 1000000 > end)
            fail_msg("%u of %u in %u ms", *value, wanted, msec);
        turn_for(&s->f, 0);
    }
}

static void websockets_of_all_sizes_run_over_mutual_tls(void **state)
{
    struct server s;
    struct dialer d;

    with_tls(&s, certs.ca);
    dial(&s, &d, "127.0.0.1", certs.ca, certs.client_cert, certs.client_key);
    until(&s, &d.opened, 1, 5000);
    assert_string_equal(s.cert_name, "node-7");
    d.wanted = 200;
    d_send(&d);
    until(&s, &d.messages, 200, 60000);
    ws_close(d.ws, 1000, "");
    until(&s, &d.closed, 1, 5000);
    assert_int_equal(d.code, 1000);
    until(&s, &s.ws_closed, 1, 5000);
    dial(&s, &d, "localhost", certs.ca, NULL, NULL);
    until(&s, &d.opened, 1, 5000);
    assert_string_equal(s.cert_name, "");
    without(&s);
    assert_int_equal(d.closed, 1);
}

static void a_paused_tls_side_goes_on_with_what_was_read_already(void **state)
{
    struct server s;
    struct dialer d;

    with_tls(&s, NULL);
    dial(&s, &d, "localhost", certs.ca, NULL, NULL);
    until(&s, &d.opened, 1, 5000);
    d.wanted = 100;
    for (int i = 0; i < 20; i++) {
        ws_pause(i % 2 ? d.ws : s.ws, true);
        d_send(&d);
        turn_for(&s.f, 10);
        ws_pause(i % 2 ? d.ws : s.ws, false);
        turn_for(&s.f, 5);
    }
    until(&s, &d.messages, 100, 60000);
    without(&s);
}

static void a_websocket_server_that_is_not_the_one_is_refused(void **state)
{
    struct server s;
    struct dialer d;

    with_tls(&s, certs.ca);
    dial(&s, &d, "localhost", certs.other_cert, NULL, NULL);
    until(&s, &d.closed, 1, 5000);
    assert_int_equal(d.opened, 0);
    dial(&s, &d, "127.0.0.2", certs.ca, NULL, NULL); /* listens on .1; and is not in the name */
    until(&s, &d.closed, 1, 5000);
    assert_int_equal(d.opened, 0);
    dial(&s, &d, "localhost", certs.ca, certs.other_cert, certs.other_key);
    until(&s, &d.closed, 1, 5000);
    assert_int_equal(s.requests, 0);
    without(&s);
}

static void the_name_in_the_certificate_must_be_the_one_that_was_dialed(void **state)
{
    struct err err = ERR_INIT;
    struct server s;
    struct dialer d;
    struct listen_opts opts = {.host = "127.0.0.2",
        .cert_path = certs.cert,
        .key_path = certs.key,
        .fn = handle,
        .arg = &s};

    with_tls(&s, NULL);
    opts.port = s.f.port;
    assert_int_equal(server_listen(s.f.net, &opts, NULL, &err), 0);
    dial(&s, &d, "127.0.0.2", certs.ca, NULL, NULL);
    until(&s, &d.closed, 1, 5000);
    assert_int_equal(d.opened, 0);
    assert_int_equal(s.requests, 0);
    opts.host = "::1";
    assert_int_equal(server_listen(s.f.net, &opts, NULL, &err), 0);
    dial(&s, &d, "[::1]", certs.ca, NULL, NULL);
    until(&s, &d.opened, 1, 5000);
    without(&s);
}

static void each_listener_shows_its_own_certificate(void **state)
{
    struct err err = ERR_INIT;
    struct http_call call = {0};
    struct server s = {0};
    struct http *http;
    struct listen_opts opts = {.host = "127.0.0.1",
        .cert_path = certs.other_cert,
        .key_path = certs.other_key,
        .fn = handle,
        .arg = &s};

    fixture_begin(&s.f, NULL, NULL, NULL);
    assert_int_equal(server_listen(s.f.net, &opts, NULL, &err), 0);
    opts.cert_path = certs.cert;
    opts.key_path = certs.key;
    assert_int_equal(server_listen(s.f.net, &opts, &s.f.port, &err), 0);
    http = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    assert_ok(get(&s, http, "/", &call, &err), &err);
    http_free(http);
    without(&s);
}

static void plain_text_at_a_tls_port_is_cut(void **state)
{
    struct server s;
    int fd;

    with_tls(&s, NULL);
    fd = raw_connect(&s.f);
    raw_say(&s.f, fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(raw_is_closed(&s.f, fd, 5000));
    close(fd);
    assert_int_equal(s.requests, 0);
    without(&s);
}

static void a_handshake_that_does_not_come_is_given_up(void **state)
{
    struct net_limits limits = {.idle_usec = 200000};
    struct err err = ERR_INIT;
    struct listen_opts opts = {
        .host = "127.0.0.1", .cert_path = certs.cert, .key_path = certs.key, .fn = handle};
    struct fixture f;
    int fd;

    fixture_begin(&f, &limits, NULL, NULL);
    assert_int_equal(server_listen(f.net, &opts, &f.port, &err), 0);
    fd = raw_connect(&f);
    assert_true(raw_is_closed(&f, fd, 3000));
    close(fd);
    fd = raw_connect(&f);
    turn_for(&f, 20);
    fixture_end(&f); /* with a handshake half done */
    close(fd);
}

static void a_quiet_tls_connection_is_not_cut_by_the_library_below(void **state)
{
    struct net_limits limits = {.idle_usec = 900000};
    struct server s = {0};
    struct err err = ERR_INIT;
    struct listen_opts opts = {.host = "127.0.0.1",
        .cert_path = certs.cert,
        .key_path = certs.key,
        .fn = handle,
        .arg = &s};
    struct dialer d;

    fixture_begin(&s.f, &limits, NULL, NULL);
    assert_int_equal(server_listen(s.f.net, &opts, &s.f.port, &err), 0);
    dial(&s, &d, "localhost", certs.ca, NULL, NULL);
    until(&s, &d.opened, 1, 5000);
    turn_for(&s.f, 3000);
    assert_int_equal(d.closed, 0);
    assert_int_equal(s.ws_closed, 0);
    fixture_end(&s.f);
}

static void bad_certificate_files_are_named(void **state)
{
    struct err err = ERR_INIT;
    struct server s;
    struct listen_opts opts = {.host = "127.0.0.1", .fn = handle};
    struct ws_connect_opts dial_opts = {.url = "wss://localhost:1/", .ca_path = "/nowhere"};
    struct ws *ws;
    _cleanup_free_ char *mismatch = NULL;

    with_plain(&s);
    opts.cert_path = "/nowhere/cert.pem";
    opts.key_path = certs.key;
    assert_int_equal(server_listen(s.f.net, &opts, NULL, &err), -ENOENT);
    assert_string_equal(err.text, "TLS certificate '/nowhere/cert.pem': No such file or directory");
    opts.cert_path = certs.cert;
    opts.key_path = certs.client_key;
    assert_int_equal(server_listen(s.f.net, &opts, NULL, &err), -EINVAL);
    mismatch = xasprintf("TLS key '%s': key values mismatch", certs.client_key);
    assert_string_equal(err.text, mismatch);
    opts.key_path = NULL;
    assert_int_equal(server_listen(s.f.net, &opts, NULL, &err), -EINVAL);
    assert_int_equal(ws_connect(s.f.net, &dial_opts, &DIALER, NULL, &ws, &err), -ENOENT);
    assert_string_equal(err.text, "TLS authority '/nowhere': No such file or directory");
    without(&s);
}

static void tls_to_a_plain_port_says_so(void **state)
{
    struct http_call call = {0};
    struct err err = ERR_INIT;
    struct http *http;
    struct server s;
    struct dialer d;

    with_plain(&s);
    http = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    assert_int_equal(get(&s, http, "/", &call, &err), -EPERM);
    assert_true(str_ends(err.text, ": TLS: the other side does not speak TLS here"));
    http_free(http);
    dial(&s, &d, "127.0.0.1", certs.ca, NULL, NULL);
    until(&s, &d.closed, 1, 5000);
    assert_true(str_ends(d.text, ": TLS: the other side does not speak TLS here"));
    assert_int_equal(s.requests, 0);
    without(&s);
}

static void plain_http_to_a_tls_port_is_told_so(void **state)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
    struct http_call call = {.out = &out};
    struct err err = ERR_INIT;
    struct http *http;
    struct server s;
    struct dialer d;
    _cleanup_free_ char *url = NULL;
    struct ws_connect_opts opts = {0};

    with_tls(&s, NULL);
    http = client(&s, "http", "localhost", NULL, NULL, NULL);
    assert_ok(get(&s, http, "/", &call, &err), &err);
    assert_int_equal(call.status, 400);
    assert_string_equal(out.data,
        "{\"error\":{\"code\":\"tls_needed\",\"message\":\"this address speaks TLS only: use "
        "https\"}}\n");
    http_free(http);
    memset(&d, 0, sizeof(d));
    url = xasprintf("ws://127.0.0.1:%u/", s.f.port);
    opts.url = url;
    assert_ok(ws_connect(s.f.net, &opts, &DIALER, &d, &d.ws, &err), &err);
    until(&s, &d.closed, 1, 5000);
    assert_int_equal(s.requests, 0);
    without(&s);
}

static void what_is_wrong_with_a_certificate_is_said(void **state)
{
    struct http_call call = {0};
    struct err err = ERR_INIT;
    struct http *http;
    struct server s;
    struct listen_opts opts = {.host = "127.0.0.2",
        .cert_path = certs.cert,
        .key_path = certs.key,
        .fn = handle,
        .arg = &s};

    with_tls(&s, NULL);
    http = client(&s, "https", "localhost", certs.other_cert, NULL, NULL);
    assert_int_equal(get(&s, http, "/", &call, &err), -EPERM);
    assert_non_null(strstr(err.text, ": the certificate of the other side is not accepted: "));
    http_free(http);
    opts.port = s.f.port;
    assert_ok(server_listen(s.f.net, &opts, NULL, &err), &err);
    http = client(&s, "https", "127.0.0.2", certs.ca, NULL, NULL);
    assert_int_equal(get(&s, http, "/", &call, &err), -EPERM);
    assert_true(str_ends(err.text, "IP address mismatch"));
    http_free(http);
    assert_int_equal(s.requests, 0);
    without(&s);
}

static void a_client_learns_why_its_certificate_was_not_taken(void **state)
{
    struct http_call call = {0};
    struct err err = ERR_INIT;
    struct http *http;
    struct server s;
    struct dialer d;

    with_tls(&s, certs.ca);
    http = client(&s, "https", "127.0.0.1", certs.ca, certs.other_cert, certs.other_key);
    assert_true(get(&s, http, "/", &call, &err) < 0);
    http_free(http);
    dial(&s, &d, "127.0.0.1", certs.ca, certs.other_cert, certs.other_key);
    until(&s, &d.closed, 1, 5000);
    if (!strstr(err.text, "does not accept our certificate") ||
        !strstr(d.text, "does not accept our certificate"))
        fail_msg("'%s' and '%s'", err.text, d.text);
    without(&s);
}

static void a_large_body_goes_up_over_tls(void **state)
{
    _cleanup_free_ char *large = xcalloc(1, 8 << 20);
    struct http_call call = {.method = "PUT", .path = "/x", .body = large, .body_len = 8 << 20};
    struct err err = ERR_INIT;
    struct http *http;
    struct server s;

    for (int i = 0; i < 8 << 20; i++)
        large[i] = (char)(i * 31 + i / 256);
    with_tls(&s, NULL);
    http = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        assert_ok(call_it(&s, http, &call, &err), &err);
        assert_int_equal(call.status, 201);
        assert_int_equal(s.body_len, 8 << 20);
        assert_memory_equal(s.body, large, 8 << 20);
    }
    http_free(http);
    without(&s);
}

/* One port, two faces: people see one certificate, and who asks for a name the other, and is asked
 * for its own. */
static void who_asks_for_the_name_sees_the_other_certificate(void **state)
{
    _cleanup_free_ char *url = NULL;
    struct http_call call = {0};
    struct err err = ERR_INIT;
    struct http_opts inner = {.ca_path = certs.ca,
        .cert_path = certs.client_cert,
        .key_path = certs.client_key,
        .server_name = "localhost"};
    struct listen_opts opts = {.host = "127.0.0.1",
        .cert_path = certs.other_cert,
        .key_path = certs.other_key,
        .named = {"localhost", certs.cert, certs.key, certs.ca}};
    struct http *http;
    struct server s = {0};

    fixture_begin(&s.f, NULL, NULL, NULL);
    opts.fn = handle;
    opts.arg = &s;
    assert_ok(server_listen(s.f.net, &opts, &s.f.port, &err), &err);
    inner.base_url = url = xasprintf("https://127.0.0.1:%u", s.f.port);
    assert_ok(http_new(&inner, &http, &err), &err);
    assert_ok(get(&s, http, "/", &call, &err), &err);
    assert_string_equal(s.cert_name, "node-7");
    http_free(http);
    http = client(&s, "https", "127.0.0.1", certs.ca, certs.client_cert, certs.client_key);
    assert_int_equal(get(&s, http, "/", &call, &err), -EPERM);
    http_free(http);
    assert_int_equal(s.requests, 1);
    without(&s);
}

struct look {
    char *url, *chain;
    struct err err;
    int result;
    bool done;
};

static void *look(void *arg)
{
    struct look *k = arg;

    k->result = http_look(k->url, NULL, &k->chain, &k->err);
    __atomic_store_n(&k->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void certificates_can_be_looked_at_before_anything_is_said(void **state)
{
    _cleanup_free_ char *own = NULL;
    struct cert_info info, want;
    struct look k = {0};
    struct server s;
    pthread_t thread;

    with_tls(&s, certs.ca);
    k.url = xasprintf("https://127.0.0.1:%u", s.f.port);
    assert_int_equal(pthread_create(&thread, NULL, look, &k), 0);
    while (!__atomic_load_n(&k.done, __ATOMIC_ACQUIRE))
        turn_for(&s.f, 0);
    pthread_join(thread, NULL);
    assert_ok(k.result, &k.err);
    assert_ok(fs_read(certs.cert, 65536, &own, NULL, &k.err), &k.err);
    assert_ok(cert_read(k.chain, &info, &k.err), &k.err);
    assert_ok(cert_read(own, &want, &k.err), &k.err);
    assert_string_equal(info.fingerprint, want.fingerprint);
    assert_int_equal(s.requests, 0);
    assert_int_equal(http_look("http://127.0.0.1:1", NULL, &own, &k.err), -EINVAL);
    free(k.url);
    free(k.chain);
    without(&s);
}

/* A server's certificate by the authority of the fixture, good between these times. */
static void certificate_between(const char *path, uint64_t from, uint64_t until)
{
    _cleanup_free_ char *ca = NULL, *ca_key = NULL, *key = NULL, *request = NULL, *cert = NULL;
    _cleanup_free_ char *ca_key_path = xasprintf("%s/ca.key", certs.dir), *all = NULL;
    char *names[] = {"127.0.0.1", NULL};
    struct cert_order order = {.use = CERT_SERVER,
        .name = "x",
        .reached_by = names,
        .from_usec = from,
        .until_usec = until};
    struct err err = ERR_INIT;

    assert_ok(fs_read(certs.ca, 65536, &ca, NULL, &err), &err);
    assert_ok(fs_read(ca_key_path, 65536, &ca_key, NULL, &err), &err);
    assert_ok(cert_key_new(&key, &err), &err);
    assert_ok(cert_request_new(key, &request, &err), &err);
    assert_ok(cert_sign(ca, ca_key, request, &order, &cert, &err), &err);
    all = xasprintf("%s%s", key, cert);
    assert_ok(fs_write(path, all, strlen(all), 0600, &err), &err);
}

static void a_certificate_outside_its_time_makes_one_think_of_the_clock(void **state)
{
    static const char *const why[] = {"certificate has expired", "certificate is not yet valid"};
    _cleanup_free_ char *path = xasprintf("%s/outside.pem", certs.dir);
    const uint64_t hour = 3600 * USEC_PER_SEC, now = clock_real_usec();

    for (int later = 0; later < 2; later++) {
        struct listen_opts opts = {.cert_path = path, .key_path = path};
        struct http_call call = {0};
        struct err err = ERR_INIT;
        struct http *http;
        struct server s;

        certificate_between(
            path, later ? now + hour : now - 2 * hour, later ? now + 2 * hour : now - hour);
        with_tls(&s, NULL);
        assert_ok(server_renew_tls(s.f.net, &opts, &err), &err);
        http = client(&s, "https", "127.0.0.1", certs.ca, NULL, NULL);
        assert_int_equal(get(&s, http, "/", &call, &err), -EPERM);
        if (!strstr(err.text, why[later]) || !str_ends(err.text, "Z? That is this machine's clock"))
            fail_msg("'%s'", err.text);
        http_free(http);
        without(&s);
    }
}

static void new_certificates_are_shown_to_new_connections_only(void **state)
{
    struct http_call call = {0};
    struct err err = ERR_INIT;
    struct listen_opts next = {.cert_path = certs.other_cert, .key_path = certs.other_key};
    struct listen_opts broken = {.cert_path = certs.other_cert, .key_path = certs.key};
    struct http *old, *fresh;
    struct server s;

    with_tls(&s, NULL);
    old = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    assert_ok(get(&s, old, "/", &call, &err), &err);
    assert_int_equal(server_renew_tls(s.f.net, &broken, &err), -EINVAL);
    fresh = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    assert_ok(get(&s, fresh, "/", &call, &err), &err);
    http_free(fresh);
    assert_ok(server_renew_tls(s.f.net, &next, &err), &err);
    assert_ok(get(&s, old, "/", &call, &err), &err); /* on its old connection: a new one fails */
    fresh = client(&s, "https", "localhost", certs.ca, NULL, NULL);
    assert_int_equal(get(&s, fresh, "/", &call, &err), -EPERM);
    http_free(fresh);
    http_free(old);
    without(&s);
}

static int make_certs(void **state)
{
    certs_make(&certs);
    return 0;
}

static int remove_certs(void **state)
{
    certs_remove(&certs);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_gets_status_type_and_body),
        cmocka_unit_test(an_answer_can_be_taken_in_pieces),
        cmocka_unit_test(bodies_are_sent_from_memory_and_from_files),
        cmocka_unit_test(a_call_that_cannot_be_made_says_to_whom),
        cmocka_unit_test(text_is_encoded_for_a_path),
        cmocka_unit_test(a_server_is_checked_and_answers_over_tls),
        cmocka_unit_test(a_client_certificate_is_known_by_name_if_it_is_ours),
        cmocka_unit_test(websockets_of_all_sizes_run_over_mutual_tls),
        cmocka_unit_test(a_paused_tls_side_goes_on_with_what_was_read_already),
        cmocka_unit_test(a_websocket_server_that_is_not_the_one_is_refused),
        cmocka_unit_test(the_name_in_the_certificate_must_be_the_one_that_was_dialed),
        cmocka_unit_test(each_listener_shows_its_own_certificate),
        cmocka_unit_test(plain_text_at_a_tls_port_is_cut),
        cmocka_unit_test(a_handshake_that_does_not_come_is_given_up),
        cmocka_unit_test(a_quiet_tls_connection_is_not_cut_by_the_library_below),
        cmocka_unit_test(bad_certificate_files_are_named),
        cmocka_unit_test(tls_to_a_plain_port_says_so),
        cmocka_unit_test(plain_http_to_a_tls_port_is_told_so),
        cmocka_unit_test(who_asks_for_the_name_sees_the_other_certificate),
        cmocka_unit_test(certificates_can_be_looked_at_before_anything_is_said),
        cmocka_unit_test(a_certificate_outside_its_time_makes_one_think_of_the_clock),
        cmocka_unit_test(new_certificates_are_shown_to_new_connections_only),
        cmocka_unit_test(what_is_wrong_with_a_certificate_is_said),
        cmocka_unit_test(a_client_learns_why_its_certificate_was_not_taken),
        cmocka_unit_test(a_large_body_goes_up_over_tls),
    };

    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
