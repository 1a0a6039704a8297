/* The client side of a WebSocket against a server made of a socket, which says what a test wants.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fixture.h"
#include "net/ws_key.h"

struct met {
    struct fixture f;
    int listener, fd;
    struct buf in; /* what the client said */
    struct ws *ws;
    unsigned opened, messages, drained, closed, code, status;
    char text[256], last[64];
};

static void on_opened(struct ws *ws, void *arg)
{
    ((struct met *)arg)->opened++;
}

static void on_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct met *m = arg;

    m->messages++;
    snprintf(m->last, sizeof(m->last), "%.*s", (int)len, (const char *)data);
}

static void on_drained(struct ws *ws, void *arg)
{
    ((struct met *)arg)->drained++;
}

static void on_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct met *m = arg;

    m->closed++;
    m->code = code;
    m->status = status;
    m->ws = NULL;
    snprintf(m->text, sizeof(m->text), "%s", text);
}

static const struct ws_events EVENTS = {on_opened, on_message, on_drained, on_closed};

static void until(struct met *m, const unsigned *value, unsigned wanted)
{
    uint64_t end = uv_hrtime() + UINT64_C(5000000000);

    while (*value < wanted) {
        if (uv_hrtime() > end)
            fail_msg("%u of %u; closed %u '%s'", *value, wanted, m->closed, m->text);
        turn_for(&m->f, 0);
    }
}

static void dial(struct met *m, const char *host, uint64_t timeout_usec)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    struct err err = ERR_INIT;
    _cleanup_free_ char *url = NULL;
    struct ws_connect_opts opts = {.token = "secret", .timeout_usec = timeout_usec};

    memset(m, 0, sizeof(*m));
    m->fd = -1;
    m->in = BUF_INIT(64 << 20);
    fixture_begin(&m->f, NULL, NULL, NULL);
    m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(m->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(m->listener, 8), 0);
    assert_int_equal(getsockname(m->listener, (struct sockaddr *)&at, &len), 0);
    url = xasprintf("ws://%s:%u/link?x=1", host, ntohs(at.sin_port));
    opts.url = url;
    assert_ok(ws_connect(m->f.net, &opts, &EVENTS, m, &m->ws, &err), &err);
}

static void take_request(struct met *m)
{
    while (m->fd < 0) {
        m->fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        turn_for(&m->f, 0);
    }
    raw_read_until(&m->f, m->fd, &m->in, "\r\n\r\n", 5000);
}

static void end(struct met *m)
{
    fixture_end(&m->f);
    assert_int_equal(m->closed, 1);
    buf_done(&m->in);
    close(m->fd);
    close(m->listener);
}

static char *accept_of(struct met *m)
{
    char *key = strstr(m->in.data, "\r\nSec-WebSocket-Key: ");
    char *accept = xcalloc(1, WS_ACCEPT_LEN + 1);

    assert_non_null(key);
    ws_key_accept(key + strlen("\r\nSec-WebSocket-Key: "), accept);
    return accept;
}

#define UPGRADE "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

/* The right answer, and what comes right behind it. */
static void shake_hands(struct met *m, const char *more)
{
    _cleanup_free_ char *accept = NULL, *answer = NULL;

    take_request(m);
    accept = accept_of(m);
    answer = xasprintf(UPGRADE "Sec-WebSocket-Accept: %s\r\n\r\n%s", accept, more);
    raw_say(&m->f, m->fd, answer);
}

static void the_question_is_as_the_rfc_wants_it(void **state)
{
    struct met m;

    dial(&m, "127.0.0.1", 0);
    take_request(&m);
    assert_true(str_starts(m.in.data, "GET /link?x=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
    assert_non_null(strstr(m.in.data, "\r\nUpgrade: websocket\r\n"));
    assert_non_null(strstr(m.in.data, "\r\nConnection: Upgrade\r\n"));
    assert_non_null(strstr(m.in.data, "\r\nSec-WebSocket-Version: 13\r\n"));
    assert_non_null(strstr(m.in.data, "\r\nAuthorization: Bearer secret\r\n"));
    assert_null(strstr(m.in.data, "Sec-WebSocket-Extensions"));
    end(&m);
}

static void frames_right_behind_the_answer_are_not_lost(void **state)
{
    struct met m;

    dial(&m, "127.0.0.1", 0);
    shake_hands(&m, "\x81\x05hello\x81\x05world");
    until(&m, &m.messages, 2);
    assert_int_equal(m.opened, 1);
    assert_string_equal(m.last, "world");
    end(&m);
}

static void an_answer_may_come_byte_by_byte(void **state)
{
    _cleanup_free_ char *accept = NULL, *answer = NULL;
    struct met m;

    dial(&m, "127.0.0.1", 0);
    take_request(&m);
    accept = accept_of(&m);
    answer = xasprintf(UPGRADE "Sec-WebSocket-Accept: %s\r\n\r\n\x81\x02hi", accept);
    for (const char *p = answer; *p; p++)
        raw_send(&m.f, m.fd, p, 1);
    until(&m, &m.messages, 1);
    assert_string_equal(m.last, "hi");
    end(&m);
}

static void answers_that_are_no_handshake_are_refused(void **state)
{
    static const struct {
        const char *format, *text;
    } rows[] = {
        {UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", "does not fit"},
        {UPGRADE "\r\n", "does not fit"},
        {"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
            "does not fit"},
        {"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
            "does not fit"},
        {"HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
         "%s\r\n\r\n",
            "does not fit"},
        {"HTTP/1.0 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: %s\r\n\r\n",
            "does not fit"},
        {UPGRADE "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
            "does not fit"},
        {UPGRADE "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: x\r\n\r\n", "does not fit"},
        {UPGRADE "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Accept: x\r\n\r\n", "more than once"},
        {"HTTP/1.1 101 S\nUpgrade: websocket\n\n", "CR LF"},
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "first line"},
        {"\x15\x03\x01", "no HTTP"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char *accept = NULL, *answer = NULL;
        char *percent;
        struct met m;

        dial(&m, "127.0.0.1", 0);
        take_request(&m);
        accept = accept_of(&m);
        answer = xcalloc(1, strlen(rows[i].format) + WS_ACCEPT_LEN + 1);
        percent = strstr(rows[i].format, "%s");
        if (percent)
            snprintf(answer, strlen(rows[i].format) + WS_ACCEPT_LEN + 1, "%.*s%s%s",
                (int)(percent - rows[i].format), rows[i].format, accept, percent + 2);
        else
            memcpy(answer, rows[i].format, strlen(rows[i].format));
        raw_say(&m.f, m.fd, answer);
        until(&m, &m.closed, 1);
        if (!strstr(m.text, rows[i].text) || m.opened || m.status || m.code != 1006)
            fail_msg("row %zu: %u %u '%s'", i, m.code, m.status, m.text);
        end(&m);
    }
}

static void a_refusal_is_told_with_its_status(void **state)
{
    struct met m;

    dial(&m, "127.0.0.1", 0);
    take_request(&m);
    raw_say(&m.f, m.fd, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    until(&m, &m.closed, 1);
    assert_int_equal(m.status, 503);
    assert_string_equal(m.text, "the server refused the handshake with status 503");
    end(&m);
}

static void a_head_without_end_is_refused(void **state)
{
    struct buf head = BUF_INIT(1 << 20);
    struct met m;

    buf_puts(&head, UPGRADE);
    while (head.len < 40000)
        buf_puts(&head, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n");
    dial(&m, "127.0.0.1", 0);
    take_request(&m);
    raw_say(&m.f, m.fd, head.data);
    until(&m, &m.closed, 1);
    assert_non_null(strstr(m.text, "it is too long"));
    buf_done(&head);
    end(&m);
}

static void a_server_that_hangs_up_on_the_question_is_named(void **state)
{
    struct met m;

    dial(&m, "127.0.0.1", 0);
    take_request(&m);
    close(m.fd);
    m.fd = -1;
    until(&m, &m.closed, 1);
    assert_true(str_starts(m.text, "cannot connect to 127.0.0.1 port "));
    assert_true(str_ends(m.text, ": the connection was closed without an answer"));
    end(&m);
}

static void half_an_answer_meets_the_deadline(void **state)
{
    struct met m;

    dial(&m, "127.0.0.1", 300000);
    take_request(&m);
    raw_say(&m.f, m.fd, UPGRADE);
    until(&m, &m.closed, 1);
    assert_string_equal(m.text, "no connection and handshake in time");
    end(&m);
}

static void what_is_sent_early_is_sent_masked_once_it_is_open(void **state)
{
    const uint8_t *frame;
    struct met m;

    dial(&m, "127.0.0.1", 0);
    assert_int_equal(ws_send_text(m.ws, "one"), 3);
    ws_send_text(m.ws, "one");
    take_request(&m);
    assert_true(str_ends(m.in.data, "\r\n\r\n")); /* nothing before the answer */
    shake_hands(&m, "");
    m.in.len = 0;
    while (m.in.len < 18) {
        turn_for(&m.f, 0);
        char piece[64];
        ssize_t n = recv(m.fd, piece, sizeof(piece), 0);

        if (n > 0)
            buf_append(&m.in, piece, (size_t)n);
    }
    assert_int_equal(m.in.len, 18);
    frame = (const uint8_t *)m.in.data;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(frame[9 * i], 0x81);
        assert_int_equal(frame[9 * i + 1], 0x83);
        for (int k = 0; k < 3; k++)
            assert_int_equal(frame[9 * i + 6 + k] ^ frame[9 * i + 2 + k], "one"[k]);
    }
    assert_memory_not_equal(frame + 2, frame + 11, 4); /* each has its own mask */
    end(&m);
}

static void who_sent_too_much_too_early_is_told_when_it_is_gone(void **state)
{
    static char large[200000];
    struct met m;

    dial(&m, "127.0.0.1", 0);
    ws_send(m.ws, large, sizeof(large), true);
    shake_hands(&m, "");
    while (!m.drained) {
        static char piece[65536];

        (void)!recv(m.fd, piece, sizeof(piece), 0);
        until(&m, &m.opened, 1);
        turn_for(&m.f, 0);
    }
    end(&m);
}

static void a_client_that_was_paused_before_hears_nothing_until_it_goes_on(void **state)
{
    struct met m;

    dial(&m, "127.0.0.1", 0);
    ws_pause(m.ws, true);
    shake_hands(&m, "\x81\x05hello");
    until(&m, &m.opened, 1);
    raw_say(&m.f, m.fd, "\x81\x05world");
    turn_for(&m.f, 50);
    assert_int_equal(m.messages, 0);
    ws_pause(m.ws, false);
    until(&m, &m.messages, 2);
    assert_string_equal(m.last, "world");
    end(&m);
}

static void a_server_that_breaks_the_rules_is_closed_with_the_right_code(void **state)
{
    static const struct {
        const char *bytes;
        unsigned code;
    } rows[] = {
        {"\x81\x81\x01\x02\x03\x04x", 1002}, /* masked */
        {"\xc1\x01x", 1002},
        {"\x83\x01x", 1002},
        {"\x80\x01x", 1002},
        {"\x01\x01x\x81\x01x", 1002},
        {"\x81\x01\xfe", 1007},
        {"\x88\x01x", 1002},
        {"\x82\x7f\x7f\x01\x01\x01\x01\x01\x01\x01", 1009},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct met m;

        dial(&m, "127.0.0.1", 0);
        shake_hands(&m, rows[i].bytes);
        until(&m, &m.closed, 1);
        if (m.code != rows[i].code || m.messages)
            fail_msg("row %zu: %u '%s'", i, m.code, m.text);
        end(&m);
    }
}

static void every_address_of_a_name_is_tried(void **state)
{
    struct met m;

    dial(&m, "localhost", 0); /* on 127.0.0.1 only: ::1 is given up */
    shake_hands(&m, "");
    until(&m, &m.opened, 1);
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_question_is_as_the_rfc_wants_it),
        cmocka_unit_test(frames_right_behind_the_answer_are_not_lost),
        cmocka_unit_test(an_answer_may_come_byte_by_byte),
        cmocka_unit_test(answers_that_are_no_handshake_are_refused),
        cmocka_unit_test(a_refusal_is_told_with_its_status),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(a_server_that_hangs_up_on_the_question_is_named),
        cmocka_unit_test(half_an_answer_meets_the_deadline),
        cmocka_unit_test(what_is_sent_early_is_sent_masked_once_it_is_open),
        cmocka_unit_test(who_sent_too_much_too_early_is_told_when_it_is_gone),
        cmocka_unit_test(a_client_that_was_paused_before_hears_nothing_until_it_goes_on),
        cmocka_unit_test(a_server_that_breaks_the_rules_is_closed_with_the_right_code),
        cmocka_unit_test(every_address_of_a_name_is_tried),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
