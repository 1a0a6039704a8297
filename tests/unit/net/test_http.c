/* The blocking client against servers that behave badly: each is a thread with a script. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/str.h"
#include "net/http.h"
#include "unit.h"

struct peer {
    int listener;
    uint16_t port;
    pthread_t thread;
    void (*play)(struct peer *peer);
    unsigned connections;
    char got[4][4096]; /* the start of what came on each connection */
    size_t received;
};

static int next_connection(struct peer *p)
{
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);

    assert(fd >= 0);
    p->connections++;
    return fd;
}

/* Until the text came, or the client closed. */
static void read_until(struct peer *p, int fd, const char *text)
{
    char *to = p->got[p->connections - 1];
    size_t len = strlen(to);

    while (!strstr(to, text) && len < sizeof(p->got[0]) - 1) {
        ssize_t n = recv(fd, to + len, sizeof(p->got[0]) - 1 - len, 0);

        if (n <= 0)
            return;
        len += (size_t)n;
        to[len] = '\0';
    }
}

static void forget(struct peer *p)
{
    p->got[p->connections - 1][0] = '\0';
}

static void say(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n < 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static void *play(void *arg)
{
    struct peer *p = arg;

    p->play(p);
    return NULL;
}

static struct http *meet(struct peer *p, void (*fn)(struct peer *peer))
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    struct err err = ERR_INIT;
    char url[64];
    struct http_opts opts = {.base_url = url};
    struct http *http = NULL;

    memset(p, 0, sizeof(*p));
    p->play = fn;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &len), 0);
    p->port = ntohs(at.sin_port);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", p->port);
    assert_ok(http_new(&opts, &http, &err), &err);
    assert_int_equal(pthread_create(&p->thread, NULL, play, p), 0);
    return http;
}

static void part(struct peer *p, struct http *http)
{
    http_free(http);
    pthread_join(p->thread, NULL);
    close(p->listener);
}

static int get(struct http *http, const char *path, struct buf *out, struct err *err)
{
    struct http_call call = {
        .method = "GET", .path = path, .out = out, .timeout_usec = 5 * USEC_PER_SEC};

    *err = ERR_INIT;
    out->len = 0;
    return http_do(http, &call, err);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
#define HELLO OK_HEAD "Content-Length: 5\r\n\r\nhello"

static void play_two_on_one(struct peer *p)
{
    int fd = next_connection(p);

    for (int i = 0; i < 2; i++) {
        read_until(p, fd, "\r\n\r\n");
        forget(p);
        say(fd, HELLO);
    }
    close(fd);
}

TEST(a_connection_is_kept_for_the_next_call)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct peer p;
    struct http *http = meet(&p, play_two_on_one);

    assert_ok(get(http, "/one", &out, &err), &err);
    assert_ok(get(http, "/two", &out, &err), &err);
    assert_string_equal(out.data, "hello");
    part(&p, http);
    assert_int_equal(p.connections, 1);
}

static void play_close_each(struct peer *p)
{
    for (int i = 0; i < 2; i++) {
        int fd = next_connection(p);

        read_until(p, fd, "\r\n\r\n");
        say(fd, HELLO);
        close(fd);
    }
}

TEST(a_kept_connection_that_was_closed_meanwhile_is_replaced)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct peer p;
    struct http *http = meet(&p, play_close_each);

    assert_ok(get(http, "/one", &out, &err), &err);
    usleep(50000);
    assert_ok(get(http, "/two", &out, &err), &err);
    part(&p, http);
    assert_int_equal(p.connections, 2);
    assert_true(str_starts(p.got[1], "GET /two HTTP/1.1\r\nHost: 127.0.0.1:"));
}

/* Reads the second request and closes without a word: the call was on its way already. */
static void play_close_late(struct peer *p)
{
    int fd = next_connection(p);

    read_until(p, fd, "\r\n\r\n");
    say(fd, HELLO);
    forget(p);
    read_until(p, fd, "\r\n\r\n");
    close(fd);
    fd = next_connection(p);
    read_until(p, fd, "\r\n\r\n");
    say(fd, HELLO);
    close(fd);
}

TEST(a_call_that_met_the_end_of_a_kept_connection_is_made_once_more)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct peer p;
    struct http *http = meet(&p, play_close_late);
    struct http_call call = {.method = "PUT", .path = "/two", .body = "{}", .body_len = 2};

    assert_ok(get(http, "/one", &out, &err), &err);
    assert_ok(http_do(http, &call, &err), &err);
    assert_int_equal(call.status, 200);
    part(&p, http);
    assert_int_equal(p.connections, 2);
    assert_true(str_ends(p.got[1], "\r\n\r\n{}"));
}

static void play_close_late_and_stay_away(struct peer *p)
{
    int fd = next_connection(p);

    read_until(p, fd, "\r\n\r\n");
    say(fd, HELLO);
    forget(p);
    read_until(p, fd, "\r\n\r\n");
    close(fd);
}

TEST(what_may_be_done_only_once_is_not_asked_again)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct peer p;
    struct http *http = meet(&p, play_close_late_and_stay_away);
    struct http_call call = {.method = "POST", .path = "/two", .body = "{}", .body_len = 2};

    assert_ok(get(http, "/one", &out, &err), &err);
    assert_int_equal(http_do(http, &call, &err), -ECONNRESET);
    assert_non_null(strstr(err.text, ": the connection was closed without an answer"));
    part(&p, http);
    assert_int_equal(p.connections, 1);
}

TEST(a_call_with_a_key_is_asked_again_whatever_its_method)
{
    static const char *const headers[] = {"Idempotency-Key: k", NULL};
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct peer p;
    struct http *http = meet(&p, play_close_late);
    struct http_call call = {
        .method = "POST", .path = "/two", .body = "{}", .body_len = 2, .headers = headers};

    assert_ok(get(http, "/one", &out, &err), &err);
    assert_ok(http_do(http, &call, &err), &err);
    part(&p, http);
}

static const char *one_answer;
static bool hang_after;

static void play_one_answer(struct peer *p)
{
    int fd = next_connection(p);

    read_until(p, fd, "\r\n\r\n");
    say(fd, one_answer);
    if (hang_after)
        read_until(p, fd, "never");
    close(fd);
}

static int answered_with(const char *answer, bool hang, struct buf *out, struct err *err)
{
    struct http *http;
    struct peer p;
    int r;

    one_answer = answer;
    hang_after = hang;
    http = meet(&p, play_one_answer);
    r = get(http, "/", out, err);
    part(&p, http);
    return r;
}

TEST(answers_come_by_length_in_chunks_and_until_the_end)
{
    static const struct {
        const char *answer, *body;
        bool hang;
    } rows[] = {
        {HELLO, "hello", true},
        {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello",
            true},
        {OK_HEAD "\r\nhello", "hello", false},
        {"HTTP/1.0 200 OK\r\n\r\nhello", "hello", false},
        {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", true},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" HELLO, "hello",
            true},
        {OK_HEAD "Content-Length: 0\r\n\r\n", "", true},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(100);
        struct err err;

        assert_ok(answered_with(rows[i].answer, rows[i].hang, &out, &err), &err);
        assert_string_equal(out.data ? out.data : "", rows[i].body);
    }
}

TEST(answers_that_are_not_proper_are_refused)
{
    static const char *const rows[] = {
        "HTTP/1.1\r\n\r\n",
        "\x15\x03\x01\x00\x02\x02\x50",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        OK_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        OK_HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        OK_HEAD "Content-Length: 5x\r\n\r\nhello",
        OK_HEAD "Transfer-Encoding: gzip\r\n\r\n",
        OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK_HEAD "Header : x\r\n\r\n",
        OK_HEAD " folded\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(100);
        struct err err;
        int r = answered_with(rows[i], false, &out, &err);

        if (r != -EBADMSG)
            fail_msg("row %zu: %d '%s'", i, r, err.text);
        assert_true(str_starts(err.text, "http://127.0.0.1:"));
    }
}

TEST(an_answer_that_ends_early_is_an_error)
{
    static const char *const rows[] = {"", "HTTP/1.1 200 O",
        OK_HEAD "Content-Length: 6\r\n\r\nhello",
        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhe"};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(100);
        struct err err;

        assert_int_equal(answered_with(rows[i], false, &out, &err), -ECONNRESET);
        assert_non_null(strstr(err.text, ": the connection was closed "));
    }
}

TEST(a_head_without_end_is_refused)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100), answer = BUF_INIT(1 << 20);
    struct err err;

    buf_puts(&answer, OK_HEAD);
    for (int i = 0; i < 3000; i++)
        buf_printf(&answer, "X-%d: %d\r\n", i, i);
    buf_puts(&answer, "\r\n");
    assert_int_equal(answered_with(answer.data, false, &out, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "the head of the answer is longer than 16384 bytes"));
}

TEST(answers_that_only_announce_themselves_are_given_up)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100), answer = BUF_INIT(1 << 20);
    struct err err;

    for (int i = 0; i < 100; i++)
        buf_puts(&answer, "HTTP/1.1 102 Processing\r\n\r\n");
    assert_int_equal(answered_with(answer.data, true, &out, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "the answer does not come forward"));
}

static void play_drip(struct peer *p)
{
    int fd = next_connection(p);

    read_until(p, fd, "\r\n\r\n");
    for (const char *s = OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"; *s;
         s++) {
        char one[2] = {*s, '\0'};

        say(fd, one);
        usleep(500);
    }
    read_until(p, fd, "never");
    close(fd);
}

TEST(an_answer_may_come_byte_by_byte)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct peer p;
    struct http *http = meet(&p, play_drip);

    assert_ok(get(http, "/", &out, &err), &err);
    assert_string_equal(out.data, "hello");
    part(&p, http);
}

TEST(an_answer_that_stands_still_meets_the_deadline)
{
    struct http_call call = {.method = "GET", .path = "/", .timeout_usec = 200000};
    struct err err = ERR_INIT;
    struct http *http;
    struct peer p;
    uint64_t start;

    one_answer = OK_HEAD "Content-Length: 10\r\n\r\nhello";
    hang_after = true;
    http = meet(&p, play_one_answer);
    start = clock_mono_usec();
    assert_int_equal(http_do(http, &call, &err), -ETIMEDOUT);
    assert_true(clock_mono_usec() - start < 2000000);
    assert_non_null(strstr(err.text, ": no answer in time"));
    assert_int_equal(call.status, 0);
    part(&p, http);
}

/* Refuses from the head alone, and lets the rest of the body come. */
static void play_refuse(struct peer *p)
{
    static char drain[65536];
    int fd = next_connection(p);
    ssize_t n;

    read_until(p, fd, "\r\n\r\n");
    say(fd, "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno!\n");
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, drain, sizeof(drain), 0)) > 0)
        p->received += (size_t)n;
    close(fd);
}

TEST(an_error_that_comes_while_the_body_is_sent_is_reported)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    _cleanup_close_ int fd = memfd_create("large", MFD_CLOEXEC);
    struct err err = ERR_INIT;
    struct peer p;
    struct http *http = meet(&p, play_refuse);
    struct http_call call = {.method = "PUT", .path = "/", .body_fd = fd, .out = &out};

    assert_int_equal(ftruncate(fd, 256 << 20), 0);
    assert_ok(http_do(http, &call, &err), &err);
    assert_int_equal(call.status, 403);
    assert_string_equal(out.data, "no!\n");
    part(&p, http);
    assert_true(p.received < 64 << 20);
}

/* Reads a little of the body, answers, and resets the connection. */
static void play_refuse_and_reset(struct peer *p)
{
    int fd = next_connection(p);

    read_until(p, fd, "\r\n\r\n");
    say(fd, "HTTP/1.1 100 Continue\r\n\r\n");
    read_until(p, fd, "\r\n\r\nx");
    say(fd, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nbig\n");
    usleep(20000);
    close(fd); /* with bytes unread */
}

TEST(an_error_is_reported_though_the_connection_broke)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    _cleanup_free_ char *body = xcalloc(1, 64 << 20);
    struct err err = ERR_INIT;
    struct peer p;
    struct http *http = meet(&p, play_refuse_and_reset);
    struct http_call call = {
        .method = "PUT", .path = "/", .body = body, .body_len = 64 << 20, .out = &out};

    memset(body, 'x', 64 << 20);
    assert_ok(http_do(http, &call, &err), &err);
    assert_int_equal(call.status, 413);
    assert_string_equal(out.data, "big\n");
    part(&p, http);
}

TEST(a_pipe_that_says_nothing_does_not_hide_an_error)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err = ERR_INIT;
    struct peer p;
    struct http *http = meet(&p, play_refuse);
    struct http_call call = {.method = "PUT", .path = "/", .out = &out};
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    call.body_fd = ends[0];
    assert_ok(http_do(http, &call, &err), &err);
    assert_int_equal(call.status, 403);
    close(ends[0]);
    close(ends[1]);
    part(&p, http);
    assert_non_null(strstr(p.got[0], "\r\nTransfer-Encoding: chunked\r\n"));
}

static void play_deaf(struct peer *p)
{
    int fd = next_connection(p);

    read_until(p, fd, "\r\n\r\n");
    usleep(600000); /* reads nothing of the body */
    close(fd);
}

TEST(a_server_that_takes_no_more_meets_the_deadline)
{
    _cleanup_free_ char *body = xcalloc(1, 64 << 20);
    struct http_call call = {
        .method = "PUT", .path = "/", .body = body, .body_len = 64 << 20, .timeout_usec = 300000};
    struct err err = ERR_INIT;
    struct peer p;
    struct http *http = meet(&p, play_deaf);

    assert_int_equal(http_do(http, &call, &err), -ETIMEDOUT);
    part(&p, http);
}

TEST(requests_that_could_be_taken_apart_are_not_sent)
{
    static const char *const bad[] = {"A: b\r\nC: d", NULL};
    struct http_call calls[] = {
        {.method = "GET", .path = "/x y"},
        {.method = "GET", .path = "/x\r\n"},
        {.method = "GET / HTTP/1.1\r\n", .path = "/"},
        {.method = "GET", .path = "/", .headers = bad},
        {.method = "PUT", .path = "/", .body = "", .content_type = "a\r\nb: c"},
    };
    struct err err = ERR_INIT;
    struct peer p;
    struct http *http = meet(&p, play_one_answer);

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        calls[i].timeout_usec = USEC_PER_SEC;
        if (http_do(http, &calls[i], &err) != -EINVAL)
            fail_msg("call %zu was made", i);
    }
    part(&p, http);
    assert_string_equal(p.got[0], "");
}

TEST(names_are_looked_up_and_every_address_is_tried)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct http_opts opts = {0};
    struct err err = ERR_INIT;
    struct peer p;
    struct http *http = meet(&p, play_two_on_one); /* on 127.0.0.1 only: ::1 comes first */
    _cleanup_free_ char *url = xasprintf("http://localhost:%u/", p.port);

    http_free(http);
    opts.base_url = url;
    assert_ok(http_new(&opts, &http, &err), &err);
    assert_ok(get(http, "/one", &out, &err), &err);
    assert_ok(get(http, "/two", &out, &err), &err);
    part(&p, http);
    opts.base_url = "http://name.invalid:1";
    assert_ok(http_new(&opts, &http, &err), &err);
    assert_int_equal(get(http, "/", &out, &err), -EHOSTUNREACH);
    assert_true(str_starts(err.text, "http://name.invalid:1: cannot resolve 'name.invalid': "));
    http_free(http);
}

/* This program stands in no folder where the module is looked for. */
TEST(tls_without_its_module_says_what_is_missing)
{
    struct http_opts opts = {.base_url = "https://127.0.0.1:1"};
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err;
    struct http *http;
    int r;

    assert_ok(http_new(&opts, &http, &err), &err);
    r = get(http, "/", &out, &err);
    http_free(http);
    if (r == -ECONNREFUSED)
        skip(); /* Muster is installed on this machine */
    assert_int_equal(r, -ENOSYS);
    assert_true(
        str_starts(err.text, "https://127.0.0.1:1: TLS needs Muster's module 'muster-tls.so' in "));
}

TEST(addresses_that_are_none_are_refused)
{
    static const char *const urls[] = {"", "x", "http://", "http:///x", "http://a b", "http://x:0",
        "http://x:99999", "http://u@x", "http://[::1", "http://x?y", "ws://x", "http://x\r\n"};
    struct err err = ERR_INIT;
    struct http *http;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct http_opts opts = {.base_url = urls[i]};

        if (http_new(&opts, &http, &err) != -EINVAL)
            fail_msg("'%s' was taken", urls[i]);
    }
}

TEST(the_path_of_the_address_comes_before_that_of_the_call)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct err err = ERR_INIT;
    struct http_opts opts = {.token = "t"};
    struct peer p;
    struct http *http = meet(&p, play_one_answer);
    _cleanup_free_ char *url = xasprintf("http://127.0.0.1:%u/muster/", p.port);

    one_answer = HELLO;
    hang_after = false;
    http_free(http);
    opts.base_url = url;
    assert_ok(http_new(&opts, &http, &err), &err);
    assert_ok(get(http, "/v1?x=1", &out, &err), &err);
    part(&p, http);
    assert_true(str_starts(p.got[0], "GET /muster/v1?x=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(p.got[0], "\r\nAuthorization: Bearer t\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_kept_for_the_next_call),
        cmocka_unit_test(a_kept_connection_that_was_closed_meanwhile_is_replaced),
        cmocka_unit_test(a_call_that_met_the_end_of_a_kept_connection_is_made_once_more),
        cmocka_unit_test(what_may_be_done_only_once_is_not_asked_again),
        cmocka_unit_test(a_call_with_a_key_is_asked_again_whatever_its_method),
        cmocka_unit_test(answers_come_by_length_in_chunks_and_until_the_end),
        cmocka_unit_test(answers_that_are_not_proper_are_refused),
        cmocka_unit_test(an_answer_that_ends_early_is_an_error),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(answers_that_only_announce_themselves_are_given_up),
        cmocka_unit_test(an_answer_may_come_byte_by_byte),
        cmocka_unit_test(an_answer_that_stands_still_meets_the_deadline),
        cmocka_unit_test(an_error_that_comes_while_the_body_is_sent_is_reported),
        cmocka_unit_test(an_error_is_reported_though_the_connection_broke),
        cmocka_unit_test(a_pipe_that_says_nothing_does_not_hide_an_error),
        cmocka_unit_test(a_server_that_takes_no_more_meets_the_deadline),
        cmocka_unit_test(requests_that_could_be_taken_apart_are_not_sent),
        cmocka_unit_test(names_are_looked_up_and_every_address_is_tried),
        cmocka_unit_test(tls_without_its_module_says_what_is_missing),
        cmocka_unit_test(addresses_that_are_none_are_refused),
        cmocka_unit_test(the_path_of_the_address_comes_before_that_of_the_call),
    };

    return RUN_TESTS(tests);
}
