/* The HTTP server, asked by sockets that say whatever they like. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "fixture.h"
#include "net/http.h"

struct seen {
    unsigned requests, gone, bodies;
    bool flag;
    struct request *kept;
    char *path, *query, *body, *method;
    size_t body_len, pieces_len;
    size_t queued_max;
    unsigned left;
};

static void seen_done(struct seen *s)
{
    free(s->path);
    free(s->query);
    free(s->body);
    free(s->method);
    memset(s, 0, sizeof(*s));
}

static void on_gone(struct request *rq, void *arg)
{
    struct seen *s = arg;

    s->gone++;
    s->kept = NULL;
    s->flag = true;
}

static void on_body(struct request *rq, const char *body, size_t len, void *arg)
{
    struct seen *s = arg;

    s->bodies++;
    free(s->body);
    s->body = xstrndup(body, len);
    s->body_len = len;
    request_reply(rq, 200, "text/plain", body, len);
}

static int on_piece(struct request *rq, const char *data, size_t len, void *arg)
{
    struct seen *s = arg;

    s->pieces_len += len;
    if (data && len && data[0] == '!')
        return -EIO;
    if (!data) {
        char text[32];

        snprintf(text, sizeof(text), "%zu", s->pieces_len);
        request_reply(rq, 200, "text/plain", text, strlen(text));
    }
    return 0;
}

static void pour(struct request *rq, void *arg)
{
    static char piece[32768];
    struct seen *s = arg;

    memset(piece, 'x', sizeof(piece));
    while (s->left) {
        size_t queued = request_write(rq, piece, sizeof(piece));

        s->queued_max = MAX_OF(s->queued_max, queued);
        s->left--;
        if (queued > 65536)
            return;
    }
    request_end(rq);
}

static void handle(struct request *rq, void *arg)
{
    struct seen *s = arg;
    const char *path = request_path(rq);

    s->requests++;
    free(s->path);
    s->path = xstrdup(path);
    free(s->query);
    s->query = xstrdup(request_query(rq, "q"));
    request_on_gone(rq, on_gone, s);
    if (str_eq(path, "/later")) {
        s->kept = rq;
        s->flag = true;
    } else if (str_eq(path, "/body")) {
        request_read_body(rq, on_body, s);
    } else if (str_eq(path, "/pieces")) {
        request_stream_body(rq, 100000, on_piece, s);
    } else if (str_eq(path, "/pour")) {
        request_reply_start(rq, 200, "application/octet-stream", pour, s);
        pour(rq, s);
    } else if (str_eq(path, "/stream")) {
        request_reply_start(rq, 200, "text/event-stream", NULL, NULL);
        request_write(rq, "data: 1\n\n", 9);
        s->kept = rq;
        s->flag = true;
    } else if (str_eq(path, "/headers")) {
        request_add_header(rq, "X-Good", "yes");
        request_add_header(rq, "X-Bad", "a\r\nSet-Cookie: x");
        request_add_header(rq, "Cache-Control", "max-age=60");
        request_reply(rq, 200, "text/plain", "h", 1);
    } else {
        request_reply(rq, 200, "text/plain", path, strlen(path));
    }
}

#define HOST "Host: x\r\n"
#define CLOSE "Connection: close\r\n"

static void with(struct fixture *f, struct seen *s, const struct net_limits *limits)
{
    memset(s, 0, sizeof(*s));
    fixture_begin(f, limits, handle, s);
}

static void without(struct fixture *f, struct seen *s)
{
    fixture_end(f);
    seen_done(s);
}

static void assert_answer(struct fixture *f, const char *request, const char *start)
{
    _cleanup_free_ char *answer = raw_ask(f, request);

    if (!str_starts(answer, start))
        fail_msg("asked\n%s\nwanted '%s', got\n%s", request, start, answer);
}

static void a_request_is_answered_with_its_headers(void **state)
{
    struct fixture f;
    struct seen s;
    _cleanup_free_ char *answer = NULL;

    with(&f, &s, NULL);
    answer = raw_ask(&f, "GET /a%20b?q=1%2B2+3&z HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_string_equal(answer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nContent-Length: 4\r\n"
        "Connection: close\r\n\r\n/a b");
    assert_string_equal(s.query, "1+2 3");
    assert_int_equal(s.gone, 0);
    without(&f, &s);
}

static void added_headers_are_sent_unless_they_would_split_the_answer(void **state)
{
    struct fixture f;
    struct seen s;
    _cleanup_free_ char *answer = NULL;

    with(&f, &s, NULL);
    answer = raw_ask(&f, "GET /headers HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_non_null(strstr(answer, "\r\nX-Good: yes\r\n"));
    assert_non_null(strstr(answer, "\r\nCache-Control: max-age=60\r\n"));
    assert_null(strstr(answer, "no-store"));
    assert_null(strstr(answer, "Set-Cookie"));
    without(&f, &s);
}

static void what_is_no_proper_request_is_refused(void **state)
{
    static const struct {
        const char *request, *answer;
    } rows[] = {
        {"GET /../etc HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a/%2e%2e/b HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a/%2E./b HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a%2f..%2fb HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a/. HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a%00b HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a%4 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /a%zz HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET a HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET * HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET http://x/ HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"get / HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1 \r\n" HOST "\r\n", "HTTP/1.1 505 "},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", "HTTP/1.1 505 "},
        {"GET / FTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET /\r\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 505 "},
        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\n" HOST "\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n" HOST "a b: c\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n" HOST "a : c\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n" HOST "a: b\r\n c\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n" HOST ": c\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\n" HOST "a: b\x01\r\n\r\n", "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\nGET /smuggled HTTP/1.1\r\n" HOST "\r\n",
            "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello", "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nhello", "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello", "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\nhello",
            "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 501 "},
        {"POST /body HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n",
            "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
            "HTTP/1.1 400 "},
        {"POST /body HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
            "HTTP/1.1 400 "},
    };
    struct fixture f;
    struct seen s;

    with(&f, &s, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_answer(&f, rows[i].request, rows[i].answer);
    if (s.path)
        assert_string_not_equal(s.path, "/smuggled");
    assert_int_equal(s.bodies, 0);
    without(&f, &s);
}

static void a_nul_in_the_head_is_refused(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\n" HOST "a: \0b\r\n\r\n";
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    int fd;

    with(&f, &s, NULL);
    fd = raw_connect(&f);
    raw_send(&f, fd, request, sizeof(request) - 1);
    raw_read_all(&f, fd, &answer, 5000);
    close(fd);
    assert_true(str_starts(answer.data, "HTTP/1.1 400 Bad Request\r\n"));
    assert_non_null(strstr(answer.data,
        "{\"error\":{\"code\":\"bad_request\",\"message\":\"the request head has a NUL\"}}"));
    assert_int_equal(s.requests, 0);
    without(&f, &s);
}

static void who_speaks_tls_to_a_plain_port_is_told_at_once(void **state)
{
    struct fixture f;
    struct seen s;
    _cleanup_free_ char *answer = NULL;

    with(&f, &s, NULL);
    answer = raw_ask(&f, "\x16\x03\x01\x02");
    assert_true(str_starts(answer, "HTTP/1.1 400 Bad Request\r\n"));
    assert_non_null(strstr(answer, "this is no HTTP request; this port has no TLS"));
    assert_int_equal(s.requests, 0);
    without(&f, &s);
}

static void a_head_that_is_too_long_is_refused(void **state)
{
    _cleanup_free_ char *long_value = xcalloc(1, 40001);
    _cleanup_free_ char *one = NULL, *many = NULL;
    struct buf lines = BUF_INIT(1 << 20);
    struct fixture f;
    struct seen s;

    memset(long_value, 'a', 40000);
    one = xasprintf("GET / HTTP/1.1\r\n" HOST "a: %s\r\n\r\n", long_value);
    for (int i = 0; i < 100; i++)
        buf_printf(&lines, "a%d: b\r\n", i);
    many = xasprintf("GET / HTTP/1.1\r\n" HOST "%s\r\n", lines.data);
    buf_done(&lines);
    with(&f, &s, NULL);
    assert_answer(&f, one, "HTTP/1.1 431 ");
    assert_answer(&f, many, "HTTP/1.1 431 ");
    without(&f, &s);
}

static void a_head_may_come_byte_by_byte(void **state)
{
    static const char request[] =
        "POST /body HTTP/1.1\r\n" HOST CLOSE
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    int fd;

    with(&f, &s, NULL);
    fd = raw_connect(&f);
    for (size_t i = 0; i < sizeof(request) - 1; i++)
        raw_send(&f, fd, request + i, 1);
    raw_read_all(&f, fd, &answer, 5000);
    close(fd);
    assert_true(str_ends(answer.data, "\r\n\r\nabc0123456789"));
    without(&f, &s);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    char *first, *second, *third;
    int fd;

    with(&f, &s, NULL);
    fd = raw_connect(&f);
    raw_say(&f, fd,
        "GET /later HTTP/1.1\r\n" HOST "\r\nPOST /body HTTP/1.1\r\n" HOST
        "Content-Length: 5\r\n\r\nhelloGET /three HTTP/1.1\r\n" HOST CLOSE "\r\n");
    wait_for(&f, &s.flag, 5000);
    turn_for(&f, 30);
    assert_int_equal(s.requests, 1);
    request_reply(s.kept, 202, "text/plain", "one", 3);
    raw_read_all(&f, fd, &answer, 5000);
    close(fd);
    first = strstr(answer.data, "\r\n\r\none");
    second = strstr(answer.data, "\r\n\r\nhello");
    third = strstr(answer.data, "\r\n\r\n/three");
    assert_non_null(first);
    assert_non_null(second);
    assert_non_null(third);
    assert_true(first < second && second < third);
    without(&f, &s);
}

static void a_thousand_pipelined_requests_are_answered(void **state)
{
    _cleanup_(buf_done) struct buf all = BUF_INIT(1 << 20), answer = BUF_INIT(1 << 20);
    unsigned count = 0;
    struct fixture f;
    struct seen s;
    int fd;

    for (int i = 0; i < 1000; i++)
        buf_puts(&all, "GET /x HTTP/1.1\r\n" HOST "\r\n");
    buf_puts(&all, "GET /end HTTP/1.1\r\n" HOST CLOSE "\r\n");
    with(&f, &s, NULL);
    fd = raw_connect(&f);
    raw_send(&f, fd, all.data, all.len);
    raw_read_all(&f, fd, &answer, 10000);
    close(fd);
    for (char *p = answer.data; (p = strstr(p, "HTTP/1.1 200 OK")); p++)
        count++;
    assert_int_equal(count, 1001);
    without(&f, &s);
}

static void a_body_longer_than_allowed_is_answered_413(void **state)
{
    struct net_limits limits = {.body_max = 1000};
    struct fixture f;
    struct seen s;
    struct buf request = BUF_INIT(1 << 20);

    with(&f, &s, &limits);
    assert_answer(&f, "POST /body HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\nabc",
        "HTTP/1.1 413 Content Too Large");
    buf_puts(&request, "POST /body HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 200; i++)
        buf_puts(&request, "A\r\n0123456789\r\n");
    assert_answer(&f, request.data, "HTTP/1.1 413 Content Too Large");
    buf_done(&request);
    assert_answer(&f, "POST /pieces HTTP/1.1\r\n" HOST "Content-Length: 100001\r\n\r\nabc",
        "HTTP/1.1 413 Content Too Large");
    assert_int_equal(s.bodies, 0);
    assert_int_equal(s.gone, 0);
    without(&f, &s);
}

static void a_refused_body_does_not_reset_its_answer_away(void **state)
{
    _cleanup_free_ char *large = xcalloc(1, 4 << 20);
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct net_limits limits = {.body_max = 1000};
    struct fixture f;
    struct seen s;
    int fd;

    memset(large, 'x', (4 << 20) - 1);
    with(&f, &s, &limits);
    fd = raw_connect(&f);
    raw_say(&f, fd, "POST /body HTTP/1.1\r\n" HOST "Content-Length: 4194303\r\n\r\n");
    raw_say(&f, fd, large);
    raw_read_all(&f, fd, &answer, 5000);
    close(fd);
    assert_true(str_starts(answer.data, "HTTP/1.1 413 "));
    without(&f, &s);
}

static void a_body_in_pieces_is_counted_and_can_be_refused(void **state)
{
    struct fixture f;
    struct seen s;
    _cleanup_free_ char *answer = NULL;

    with(&f, &s, NULL);
    answer = raw_ask(
        &f, "POST /pieces HTTP/1.1\r\n" HOST CLOSE "Content-Length: 10\r\n\r\n0123456789");
    assert_true(str_ends(answer, "\r\n\r\n10"));
    assert_answer(
        &f, "POST /pieces HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n!abc", "HTTP/1.1 500 ");
    without(&f, &s);
}

static void an_unread_body_closes_the_connection_after_the_answer(void **state)
{
    struct fixture f;
    struct seen s;
    _cleanup_free_ char *answer = NULL;

    with(&f, &s, NULL);
    answer = raw_ask(&f, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nabc");
    assert_non_null(strstr(answer, "\r\nConnection: close\r\n"));
    without(&f, &s);
}

static void a_client_that_asks_first_is_told_to_continue(void **state)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    int fd;

    with(&f, &s, NULL);
    fd = raw_connect(&f);
    raw_say(&f, fd,
        "POST /body HTTP/1.1\r\n" HOST CLOSE "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    raw_read_until(&f, fd, &answer, "HTTP/1.1 100 Continue\r\n\r\n", 5000);
    raw_say(&f, fd, "hello");
    raw_read_all(&f, fd, &answer, 5000);
    close(fd);
    assert_true(str_ends(answer.data, "\r\n\r\nhello"));
    without(&f, &s);
}

static void what_does_not_come_forward_is_given_up(void **state)
{
    struct net_limits limits = {.idle_usec = 200000};
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    int idle, head, body, drip;

    with(&f, &s, &limits);
    idle = raw_connect(&f);
    head = raw_connect(&f);
    body = raw_connect(&f);
    drip = raw_connect(&f);
    raw_say(&f, head, "GET / HTTP/1.1\r\nHo");
    raw_say(&f, body, "POST /body HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
    raw_say(&f, drip, "POST /body HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n");
    for (int i = 0; i < 30; i++) {
        raw_say(&f, drip, "x");
        turn_for(&f, 10);
    }
    assert_true(raw_is_closed(&f, idle, 2000));
    raw_read_all(&f, head, &answer, 2000);
    assert_true(str_starts(answer.data, "HTTP/1.1 408 Request Timeout\r\n"));
    answer.len = 0;
    raw_read_all(&f, body, &answer, 2000);
    assert_true(str_starts(answer.data, "HTTP/1.1 408 Request Timeout\r\n"));
    answer.len = 0;
    raw_read_all(&f, drip, &answer, 2000);
    assert_true(str_starts(answer.data, "HTTP/1.1 408 Request Timeout\r\n"));
    close(idle);
    close(head);
    close(body);
    close(drip);
    assert_int_equal(s.bodies, 0);
    without(&f, &s);
}

static void a_pending_request_has_no_deadline_and_hears_when_the_peer_leaves(void **state)
{
    struct net_limits limits = {.idle_usec = 50000};
    struct fixture f;
    struct seen s;
    int fd;

    with(&f, &s, &limits);
    fd = raw_connect(&f);
    raw_say(&f, fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&f, &s.flag, 5000);
    turn_for(&f, 200);
    assert_non_null(s.kept);
    s.flag = false;
    close(fd);
    wait_for(&f, &s.flag, 5000);
    assert_int_equal(s.gone, 1);
    without(&f, &s);
}

static void a_head_request_gets_no_body(void **state)
{
    struct fixture f;
    struct seen s;
    _cleanup_free_ char *answer = NULL;

    with(&f, &s, NULL);
    answer = raw_ask(&f, "HEAD /abc HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_non_null(strstr(answer, "\r\nContent-Length: 4\r\n"));
    assert_true(str_ends(answer, "\r\n\r\n"));
    without(&f, &s);
}

static void an_old_client_gets_a_stream_without_chunks(void **state)
{
    _cleanup_free_ char *answer = NULL;
    struct fixture f;
    struct seen s;

    with(&f, &s, NULL);
    s.left = 2;
    answer = raw_ask(&f, "GET /pour HTTP/1.0\r\n\r\n");
    assert_null(strstr(answer, "chunked"));
    assert_int_equal(strlen(strstr(answer, "\r\n\r\n")) - 4, 65536);
    without(&f, &s);
}

static void a_slow_reader_of_a_stream_is_waited_for(void **state)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(64 << 20);
    struct fixture f;
    struct seen s;
    int fd, small = 65536;

    with(&f, &s, NULL);
    s.left = 512; /* 16 MiB */
    fd = raw_connect(&f);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    raw_say(&f, fd, "GET /pour HTTP/1.1\r\n" HOST CLOSE "\r\n");
    turn_for(&f, 100);
    assert_true(s.left > 0);
    assert_true(s.queued_max < 65536 + 2 * 32768);
    raw_read_all(&f, fd, &answer, 20000);
    close(fd);
    assert_int_equal(s.left, 0);
    assert_true(s.queued_max < 65536 + 2 * 32768);
    assert_true(str_ends(answer.data, "\r\n0\r\n\r\n"));
    assert_true(answer.len > (16 << 20));
    without(&f, &s);
}

static void a_reader_that_is_too_slow_is_cut(void **state)
{
    struct net_limits limits = {.ws_queue_max = 1 << 20};
    static char piece[65536];
    struct fixture f;
    struct seen s;
    int fd;

    with(&f, &s, &limits);
    fd = raw_connect(&f);
    raw_say(&f, fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&f, &s.flag, 5000);
    s.flag = false;
    for (int i = 0; i < 300 && !s.flag; i++) {
        if (s.kept)
            request_write(s.kept, piece, sizeof(piece));
        turn_for(&f, 1);
    }
    assert_true(s.flag);
    assert_int_equal(s.gone, 1);
    close(fd);
    without(&f, &s);
}

static void a_stream_hears_when_the_peer_leaves(void **state)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    int fd;

    with(&f, &s, NULL);
    fd = raw_connect(&f);
    raw_say(&f, fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    raw_read_until(&f, fd, &answer, "9\r\ndata: 1\n\n\r\n", 5000);
    request_write(s.kept, "data: 2\n\n", 9);
    raw_read_until(&f, fd, &answer, "9\r\ndata: 2\n\n\r\n", 5000);
    s.flag = false;
    close(fd);
    wait_for(&f, &s.flag, 5000);
    assert_int_equal(s.gone, 1);
    without(&f, &s);
}

static int the_file = -1;

static void handle_file(struct request *rq, void *arg)
{
    const char *range = request_header(rq, "range");

    if (range)
        request_reply_file(rq, "application/octet-stream", dup(the_file), 1000, 50, 8 << 20);
    else
        request_reply_file(rq, "application/octet-stream", dup(the_file), 0, 8 << 20, 8 << 20);
}

static void a_file_is_sent_whole_or_in_part_and_the_connection_kept(void **state)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(64 << 20);
    _cleanup_free_ char *content = xcalloc(1, 8 << 20);
    struct fixture f;
    int fd;

    for (int i = 0; i < 8 << 20; i++)
        content[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    the_file = memfd_create("file", 0);
    assert_int_equal(write(the_file, content, 8 << 20), 8 << 20);
    fixture_begin(&f, NULL, handle_file, NULL);
    fd = raw_connect(&f);
    raw_say(&f, fd,
        "GET /f HTTP/1.1\r\n" HOST "\r\nGET /f HTTP/1.1\r\n" HOST "Range: bytes=1000-1049\r\n" CLOSE
        "\r\n");
    raw_read_all(&f, fd, &answer, 20000);
    close(fd);
    assert_true(str_starts(answer.data, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(answer.data, "\r\nContent-Length: 8388608\r\n"));
    assert_memory_equal(strstr(answer.data, "\r\n\r\n") + 4, content, 8 << 20);
    assert_non_null(
        strstr(answer.data + (8 << 20), "\r\nContent-Range: bytes 1000-1049/8388608\r\n"));
    assert_memory_equal(answer.data + answer.len - 50, content + 1000, 50);
    fixture_end(&f);
    close(the_file);
}

static void connections_over_the_limit_wait_their_turn(void **state)
{
    struct net_limits limits = {.connections_max = 2};
    _cleanup_(buf_done) struct buf answer = BUF_INIT(65536);
    struct fixture f;
    struct seen s;
    int a, b, c;

    with(&f, &s, &limits);
    a = raw_connect(&f);
    b = raw_connect(&f);
    turn_for(&f, 20);
    c = raw_connect(&f);
    raw_say(&f, c, "GET /c HTTP/1.1\r\n" HOST CLOSE "\r\n");
    turn_for(&f, 100);
    assert_int_equal(s.requests, 0);
    close(a);
    raw_read_all(&f, c, &answer, 5000);
    assert_true(str_ends(answer.data, "/c"));
    close(b);
    close(c);
    without(&f, &s);
}

static void net_free_tells_all_that_is_open(void **state)
{
    struct fixture f;
    struct seen s;
    int one, two, three;

    with(&f, &s, NULL);
    one = raw_connect(&f);
    two = raw_connect(&f);
    three = raw_connect(&f);
    raw_say(&f, one, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    raw_say(&f, two, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    raw_say(&f, three, "GET /half");
    turn_for(&f, 30);
    assert_int_equal(s.requests, 2);
    net_free(f.net);
    assert_int_equal(s.gone, 2);
    assert_int_equal(uv_run(&f.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f.loop), 0);
    close(one);
    close(two);
    close(three);
    seen_done(&s);
}

static void signals_and_limits_are_left_alone(void **state)
{
    struct sigaction was[32] = {0}, is;
    struct rlimit before, after;
    struct err err = ERR_INIT;
    struct listen_opts opts = {.host = "127.0.0.1", .fn = handle};
    struct fixture f;

    getrlimit(RLIMIT_NOFILE, &before);
    fixture_begin(&f, NULL, NULL, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (int sig = 1; sig < 32; sig++)
        sigaction(sig, NULL, &was[sig]);
    assert_ok(server_listen(f.net, &opts, NULL, &err), &err);
    for (int sig = 1; sig < 32; sig++) {
        if (sigaction(sig, NULL, &is) == 0)
            assert_ptr_equal(is.sa_handler, was[sig].sa_handler);
    }
    getrlimit(RLIMIT_NOFILE, &after);
    assert_int_equal(before.rlim_cur, after.rlim_cur);
    signal(SIGPIPE, SIG_IGN);
    fixture_end(&f);
}

static void a_port_in_use_is_named(void **state)
{
    struct fixture f;
    struct seen s;
    struct err err = ERR_INIT;
    struct listen_opts opts = {.host = "127.0.0.1", .fn = handle};
    _cleanup_free_ char *text = NULL;

    with(&f, &s, NULL);
    opts.port = f.port;
    text = xasprintf("cannot listen on 127.0.0.1 port %u: Address already in use", f.port);
    assert_int_equal(server_listen(f.net, &opts, NULL, &err), -EADDRINUSE);
    assert_string_equal(err.text, text);
    opts.host = "localhost";
    assert_int_equal(server_listen(f.net, &opts, NULL, &err), -EINVAL);
    assert_string_equal(err.text, "cannot listen on 'localhost': not an IPv4 or IPv6 address");
    opts = (struct listen_opts){.host = "::1", .fn = handle, .arg = &s};
    assert_int_equal(server_listen(f.net, &opts, &f.port, &err), 0);
    without(&f, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_answered_with_its_headers),
        cmocka_unit_test(added_headers_are_sent_unless_they_would_split_the_answer),
        cmocka_unit_test(what_is_no_proper_request_is_refused),
        cmocka_unit_test(a_nul_in_the_head_is_refused),
        cmocka_unit_test(who_speaks_tls_to_a_plain_port_is_told_at_once),
        cmocka_unit_test(a_head_that_is_too_long_is_refused),
        cmocka_unit_test(a_head_may_come_byte_by_byte),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(a_thousand_pipelined_requests_are_answered),
        cmocka_unit_test(a_body_longer_than_allowed_is_answered_413),
        cmocka_unit_test(a_refused_body_does_not_reset_its_answer_away),
        cmocka_unit_test(a_body_in_pieces_is_counted_and_can_be_refused),
        cmocka_unit_test(an_unread_body_closes_the_connection_after_the_answer),
        cmocka_unit_test(a_client_that_asks_first_is_told_to_continue),
        cmocka_unit_test(what_does_not_come_forward_is_given_up),
        cmocka_unit_test(a_pending_request_has_no_deadline_and_hears_when_the_peer_leaves),
        cmocka_unit_test(a_head_request_gets_no_body),
        cmocka_unit_test(an_old_client_gets_a_stream_without_chunks),
        cmocka_unit_test(a_slow_reader_of_a_stream_is_waited_for),
        cmocka_unit_test(a_reader_that_is_too_slow_is_cut),
        cmocka_unit_test(a_stream_hears_when_the_peer_leaves),
        cmocka_unit_test(a_file_is_sent_whole_or_in_part_and_the_connection_kept),
        cmocka_unit_test(connections_over_the_limit_wait_their_turn),
        cmocka_unit_test(net_free_tells_all_that_is_open),
        cmocka_unit_test(signals_and_limits_are_left_alone),
        cmocka_unit_test(a_port_in_use_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
