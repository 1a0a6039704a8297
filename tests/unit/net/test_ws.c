/* WebSockets: our server with our client, with raw sockets, and with neither. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fixture.h"

/* One side of a WebSocket, and what became of it. */
struct side {
    struct ws *ws;
    unsigned opened, messages, closed, drained;
    unsigned code, status;
    char text[200];
    char *last;
    size_t last_len;
    bool last_binary;
    uint64_t bytes;
    bool echo;
    bool pause_after;
    bool done;
};

struct both {
    struct fixture f;
    struct side server, client;
    const char *refuse;
    char token[64], query[64];
    struct request *kept;
    bool keep;
};

static void on_opened(struct ws *ws, void *arg)
{
    ((struct side *)arg)->opened++;
}

static void on_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct side *s = arg;

    s->messages++;
    s->bytes += len;
    free(s->last);
    s->last = xcalloc(1, len + 1);
    memcpy(s->last, data, len);
    s->last_len = len;
    s->last_binary = binary;
    if (s->echo)
        ws_send(ws, data, len, binary);
    if (s->pause_after)
        ws_pause(ws, true);
}

static void on_drained(struct ws *ws, void *arg)
{
    ((struct side *)arg)->drained++;
}

static void on_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct side *s = arg;

    s->closed++;
    s->code = code;
    s->status = status;
    snprintf(s->text, sizeof(s->text), "%s", text);
    s->ws = NULL;
    s->done = true;
}

static const struct ws_events EVENTS = {on_opened, on_message, on_drained, on_closed};

static void handle(struct request *rq, void *arg)
{
    struct both *b = arg;
    const char *auth = request_header(rq, "authorization");
    const char *query = request_query(rq, "x");

    snprintf(b->token, sizeof(b->token), "%s", auth ? auth : "");
    snprintf(b->query, sizeof(b->query), "%s", query ? query : "");
    if (b->keep)
        b->kept = rq;
    else if (b->refuse)
        request_reply(rq, 401, "application/json", b->refuse, strlen(b->refuse));
    else if (request_wants_upgrade(rq))
        b->server.ws = request_upgrade(rq, &EVENTS, &b->server);
    else
        request_reply(rq, 426, "text/plain", "upgrade", 7);
}

static void with(struct both *b, const struct net_limits *limits)
{
    memset(b, 0, sizeof(*b));
    fixture_begin(&b->f, limits, handle, b);
}

static void both_free(struct both *b)
{
    free(b->server.last);
    free(b->client.last);
}

static void without(struct both *b)
{
    fixture_end(&b->f);
    both_free(b);
}

static void dial_opts(struct both *b, struct ws_connect_opts *opts)
{
    struct err err = ERR_INIT;

    if (ws_connect(b->f.net, opts, &EVENTS, &b->client, &b->client.ws, &err) < 0)
        fail_msg("%s", err_text(&err));
}

static void dial(struct both *b)
{
    _cleanup_free_ char *url = xasprintf("ws://127.0.0.1:%u/link?x=a%%20b", b->f.port);
    struct ws_connect_opts opts = {.url = url, .token = "secret"};

    dial_opts(b, &opts);
}

static void until(struct both *b, const unsigned *value, unsigned wanted, unsigned msec)
{
    uint64_t end = uv_hrtime() / 1000000 + msec;
    bool now = true;

    while (*value < wanted) {
        if (uv_hrtime() / 1000000 > end)
            fail_msg("%u of %u in %u ms", *value, wanted, msec);
        wait_for(&b->f, &now, 1);
        uv_run(&b->f.loop, UV_RUN_NOWAIT);
    }
}

static void pair_up(struct both *b, const struct net_limits *limits)
{
    with(b, limits);
    dial(b);
    until(b, &b->client.opened, 1, 5000);
    assert_non_null(b->server.ws);
}

static void messages_go_both_ways_and_keep_their_kind(void **state)
{
    struct both b;

    pair_up(&b, NULL);
    assert_string_equal(b.token, "Bearer secret");
    assert_string_equal(b.query, "a b");
    ws_send_text(b.client.ws, "h\xc3\xa9llo");
    until(&b, &b.server.messages, 1, 5000);
    assert_string_equal(b.server.last, "h\xc3\xa9llo");
    assert_false(b.server.last_binary);
    ws_send(b.server.ws, "\0\1", 2, true);
    until(&b, &b.client.messages, 1, 5000);
    assert_int_equal(b.client.last_len, 2);
    assert_true(b.client.last_binary);
    ws_send(b.server.ws, NULL, 0, false);
    until(&b, &b.client.messages, 2, 5000);
    assert_int_equal(b.client.last_len, 0);
    ws_send(b.client.ws, NULL, 0, true);
    until(&b, &b.server.messages, 2, 5000);
    assert_int_equal(b.server.last_len, 0);
    without(&b);
    assert_int_equal(b.client.closed, 1);
    assert_int_equal(b.server.closed, 1);
    assert_int_equal(b.client.code, 1006);
    assert_string_equal(b.client.text, "this side is shutting down");
}

static size_t size_of_message(unsigned i)
{
    static const size_t sizes[] = {0, 1, 125, 126, 127, 1000, 4096, 16383, 16384, 16385, 65535,
        65536, 65537, 131072, 200001, 1 << 20};

    return i % 50 == 49 ? 1 << 20 : sizes[(i * 7) % (ARRAY_LEN(sizes) - 1)];
}

static void fill(char *data, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(seed + i * 31 + (i >> 8));
}

/* Both sides get what the other sent, byte for byte, while both send. */
struct checked {
    struct both *both;
    unsigned got, sent;
    struct ws *ws;
};

static void check_message(struct ws *ws, const void *data, size_t len, bool binary, void *arg)
{
    struct checked *c = arg;
    _cleanup_free_ char *wanted = xcalloc(1, size_of_message(c->got));

    assert_int_equal(len, size_of_message(c->got));
    fill(wanted, len, c->got);
    assert_memory_equal(data, wanted, len);
    c->got++;
}

static void send_more(struct checked *c, unsigned count)
{
    while (c->sent < count && ws_queued(c->ws) < (2 << 20)) {
        size_t len = size_of_message(c->sent);
        _cleanup_free_ char *data = xcalloc(1, len);

        fill(data, len, c->sent);
        ws_send(c->ws, data, len, true);
        c->sent++;
    }
}

static void send_on(struct ws *ws, void *arg)
{
    send_more(arg, 1000);
}

static void not_closed(struct ws *ws, unsigned code, unsigned status, const char *text, void *arg)
{
    struct checked *c = arg;

    c->ws = NULL;
    if (code != 1006 || !str_eq(text, "this side is shutting down"))
        fail_msg("closed with %u: %s", code, text);
}

static const struct ws_events CHECKED = {NULL, check_message, send_on, not_closed};

static void upgrade_checked(struct request *rq, void *arg)
{
    struct checked *c = arg;

    c->ws = request_upgrade(rq, &CHECKED, c);
}

static void a_thousand_messages_of_all_sizes_go_both_ways_at_once(void **state)
{
    struct checked server = {0}, client = {0};
    struct both b = {0};
    _cleanup_free_ char *url = NULL;
    struct err err = ERR_INIT;
    struct ws_connect_opts opts = {0};

    fixture_begin(&b.f, NULL, upgrade_checked, &server);
    url = xasprintf("ws://127.0.0.1:%u/", b.f.port);
    opts.url = url;
    assert_int_equal(ws_connect(b.f.net, &opts, &CHECKED, &client, &client.ws, &err), 0);
    while (!server.ws)
        turn_for(&b.f, 1);
    send_more(&client, 1000);
    send_more(&server, 1000);
    until(&b, &server.got, 1000, 60000);
    until(&b, &client.got, 1000, 60000);
    fixture_end(&b.f);
}

static void a_paused_side_gets_nothing_until_it_goes_on(void **state)
{
    struct both b;

    pair_up(&b, NULL);
    b.server.pause_after = b.client.pause_after = true;
    for (int i = 0; i < 10; i++) {
        ws_send_text(b.client.ws, "to the server");
        ws_send_text(b.server.ws, "to the client");
    }
    turn_for(&b.f, 50);
    assert_int_equal(b.server.messages, 1);
    for (unsigned i = 2; i <= 5; i++) {
        ws_pause(b.server.ws, false);
        until(&b, &b.server.messages, i, 2000);
        turn_for(&b.f, 10);
        assert_int_equal(b.server.messages, i);
    }
    b.server.pause_after = b.client.pause_after = false;
    ws_pause(b.server.ws, false);
    ws_pause(b.client.ws, false);
    until(&b, &b.server.messages, 10, 2000);
    until(&b, &b.client.messages, 10, 2000);
    without(&b);
}

static void a_paused_reader_holds_its_writer_back(void **state)
{
    static char piece[65536];
    struct both b;
    size_t queued = 0;

    pair_up(&b, NULL);
    for (int round = 0; round < 2; round++) {
        struct side *from = round ? &b.server : &b.client, *to = round ? &b.client : &b.server;
        uint64_t before;
        unsigned sent = 0;

        ws_pause(to->ws, true);
        for (; sent < 200; sent++) {
            queued = ws_send(from->ws, piece, sizeof(piece), true);
            turn_for(&b.f, 0);
            if (queued > (2 << 20))
                break;
        }
        assert_true(queued > (1 << 20));
        before = to->messages;
        assert_true(before <= 1);
        turn_for(&b.f, 50);
        assert_int_equal(to->messages, before);
        assert_true(ws_queued(from->ws) > (1 << 20));
        from->drained = 0;
        ws_pause(to->ws, false);
        until(&b, &to->messages, sent + 1, 10000);
        assert_true(from->drained >= 1);
        assert_int_equal(ws_queued(from->ws), 0);
    }
    without(&b);
}

static void a_close_is_told_to_both_with_code_and_reason(void **state)
{
    for (int round = 0; round < 2; round++) {
        struct both b;
        struct side *from, *to;

        pair_up(&b, NULL);
        from = round ? &b.server : &b.client;
        to = round ? &b.client : &b.server;
        ws_send_text(from->ws, "last words");
        ws_close(from->ws, 4001, "enough");
        assert_int_equal(from->closed, 0);
        assert_int_equal(ws_send_text(from->ws, "too late"), 0);
        until(&b, &to->closed, 1, 5000);
        until(&b, &from->closed, 1, 5000);
        assert_int_equal(to->messages, 1);
        assert_string_equal(to->last, "last words");
        assert_int_equal(to->code, 4001);
        assert_string_equal(to->text, "enough");
        assert_int_equal(from->code, 4001);
        without(&b);
        assert_int_equal(b.client.closed, 1);
        assert_int_equal(b.server.closed, 1);
    }
}

static void what_is_queued_is_sent_before_the_close(void **state)
{
    static char piece[65536];
    struct both b;

    for (int round = 0; round < 2; round++) {
        struct side *from, *to;

        pair_up(&b, NULL);
        from = round ? &b.server : &b.client;
        to = round ? &b.client : &b.server;
        for (int i = 0; i < 100; i++)
            ws_send(from->ws, piece, sizeof(piece), true);
        ws_close(from->ws, 1000, "");
        until(&b, &to->closed, 1, 10000);
        assert_int_equal(to->messages, 100);
        assert_int_equal(to->code, 1000);
        without(&b);
    }
}

static void a_slow_reader_is_closed_with_1013(void **state)
{
    struct net_limits limits = {.ws_queue_max = 1 << 20};
    static char piece[65536];

    for (int round = 0; round < 2; round++) {
        struct both b;
        struct side *from, *to;

        pair_up(&b, &limits);
        from = round ? &b.server : &b.client;
        to = round ? &b.client : &b.server;
        ws_pause(to->ws, true);
        for (int i = 0; i < 400 && !from->closed; i++) {
            if (from->ws)
                ws_send(from->ws, piece, sizeof(piece), true);
            turn_for(&b.f, 0);
        }
        assert_int_equal(from->closed, 1);
        assert_int_equal(from->code, 1013);
        assert_string_equal(from->text, "the peer reads too slowly");
        ws_pause(to->ws, false);
        until(&b, &to->closed, 1, 5000);
        assert_int_equal(to->code, 1006);
        without(&b);
    }
}

static void a_message_over_the_maximum_closes_with_1009(void **state)
{
    struct net_limits limits = {.ws_message_max = 100000};
    static char piece[100001];

    for (int round = 0; round < 2; round++) {
        struct both b;
        struct side *from, *to;

        pair_up(&b, &limits);
        from = round ? &b.server : &b.client;
        to = round ? &b.client : &b.server;
        ws_send(from->ws, piece, 100000, true);
        until(&b, &to->messages, 1, 5000);
        ws_send(from->ws, piece, 100001, true);
        until(&b, &to->closed, 1, 5000);
        until(&b, &from->closed, 1, 5000);
        assert_int_equal(to->messages, 1);
        assert_int_equal(to->code, 1009);
        assert_string_equal(to->text, "a message that is too long");
        assert_int_equal(from->code, 1009);
        without(&b);
    }
}

static void an_upgrade_can_be_refused_with_any_answer(void **state)
{
    struct both b;
    _cleanup_free_ char *answer = NULL;

    with(&b, NULL);
    b.refuse = "{\"code\":\"unauthorized\"}";
    dial(&b);
    until(&b, &b.client.closed, 1, 5000);
    assert_int_equal(b.client.status, 401);
    assert_int_equal(b.client.code, 1006);
    assert_string_equal(b.client.text, "the server refused the handshake with status 401");
    assert_int_equal(b.client.opened, 0);
    answer = raw_ask(&b.f,
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n"
        "Connection: close\r\n\r\n");
    assert_true(str_starts(answer, "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json"));
    assert_non_null(strstr(answer, "\r\n\r\n{\"code\":\"unauthorized\"}HTTP/1.1 401 "));
    without(&b);
    assert_int_equal(b.client.closed, 1);
}

static void an_upgrade_may_be_answered_later(void **state)
{
    struct both b;

    with(&b, NULL);
    b.keep = true;
    dial(&b);
    while (!b.kept)
        turn_for(&b.f, 1);
    turn_for(&b.f, 30);
    b.server.ws = request_upgrade(b.kept, &EVENTS, &b.server);
    ws_send_text(b.server.ws, "first");
    until(&b, &b.client.messages, 1, 5000);
    assert_string_equal(b.client.last, "first");
    without(&b);
}

static void a_server_that_is_not_there_is_told_once(void **state)
{
    struct both b;
    struct ws_connect_opts opts = {.url = "ws://127.0.0.1:1/"};

    with(&b, NULL);
    dial_opts(&b, &opts);
    assert_int_equal(b.client.closed, 0);
    until(&b, &b.client.closed, 1, 5000);
    assert_int_equal(b.client.code, 1006);
    assert_int_equal(b.client.status, 0);
    assert_true(str_starts(b.client.text, "cannot connect to 127.0.0.1 port 1"));
    b.client.closed = 0;
    opts.url = "ws://[::1]:1/";
    dial_opts(&b, &opts);
    until(&b, &b.client.closed, 1, 5000);
    b.client.closed = 0;
    opts.url = "ws://name.invalid:1/";
    dial_opts(&b, &opts);
    until(&b, &b.client.closed, 1, 20000);
    assert_true(str_starts(b.client.text, "cannot resolve 'name.invalid'"));
    without(&b);
    assert_int_equal(b.client.closed, 1);
}

static void a_name_is_resolved_and_its_addresses_tried(void **state)
{
    _cleanup_free_ char *url = NULL;
    struct ws_connect_opts opts = {0};
    struct both b;

    with(&b, NULL); /* listens on 127.0.0.1 only: ::1 has to be tried and given up */
    url = xasprintf("ws://localhost:%u/", b.f.port);
    opts.url = url;
    dial_opts(&b, &opts);
    until(&b, &b.client.opened, 1, 5000);
    without(&b);
}

static void a_server_that_says_nothing_is_given_up(void **state)
{
    struct both b;
    _cleanup_free_ char *url = NULL;
    struct ws_connect_opts opts = {.timeout_usec = 100000};

    with(&b, NULL);
    b.keep = true;
    url = xasprintf("ws://127.0.0.1:%u/", b.f.port);
    opts.url = url;
    dial_opts(&b, &opts);
    until(&b, &b.client.closed, 1, 2000);
    assert_string_equal(b.client.text, "no connection and handshake in time");
    without(&b);
}

static void a_client_can_be_closed_before_it_is_connected(void **state)
{
    struct both b;

    with(&b, NULL);
    dial(&b);
    ws_close(b.client.ws, 1000, "changed my mind");
    assert_int_equal(b.client.closed, 0);
    until(&b, &b.client.closed, 1, 2000);
    assert_int_equal(b.client.opened, 0);
    without(&b);
    assert_int_equal(b.client.closed, 1);
}

static void net_free_ends_clients_in_every_state(void **state)
{
    struct side sides[4] = {0};
    struct err err = ERR_INIT;
    struct both b;
    _cleanup_free_ char *url = NULL;
    struct ws_connect_opts opts = {0};

    with(&b, NULL);
    url = xasprintf("ws://127.0.0.1:%u/", b.f.port);
    opts.url = url;
    for (int i = 0; i < 4; i++) {
        if (i == 3)
            opts.url = "ws://localhost:9/";
        assert_int_equal(ws_connect(b.f.net, &opts, &EVENTS, &sides[i], &sides[i].ws, &err), 0);
        if (i == 0)
            until(&b, &sides[0].opened, 1, 5000);
        if (i == 1)
            uv_run(&b.f.loop, UV_RUN_NOWAIT);
    }
    without(&b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sides[i].closed, 1);
    assert_int_equal(b.server.closed, 1);
}

static void bad_urls_are_refused_at_once(void **state)
{
    static const char *const urls[] = {"http://x/", "ws://", "ws://:80/", "ws://a b/", "ws://x:0/",
        "ws://x:99999/", "ws://x:8a/", "ws://[::1/", "ws://[::1]x/", "ws://x/\r\n", "ws://u@x/",
        "ws://x?y", "ws://x:1/a b"};
    struct err err = ERR_INIT;
    struct both b;

    with(&b, NULL);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct ws_connect_opts opts = {.url = urls[i]};
        struct ws *ws;

        if (ws_connect(b.f.net, &opts, &EVENTS, &b.client, &ws, &err) != -EINVAL)
            fail_msg("'%s' was taken", urls[i]);
    }
    without(&b);
    assert_int_equal(b.client.closed, 0);
}

/* A hand-made client from here on. */
#define HANDSHAKE \
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static int shake_hands(struct both *b, struct buf *in)
{
    int fd = raw_connect(&b->f);

    raw_say(&b->f, fd, HANDSHAKE);
    raw_read_until(&b->f, fd, in, "\r\n\r\n", 5000);
    assert_true(str_starts(in->data, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_non_null(strstr(in->data, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    in->len = 0;
    return fd;
}

static void bad_frames_close_with_the_right_code(void **state)
{
#define MASK "\1\2\3\4"
    static const struct {
        const char *what, *bytes;
        size_t len;
        unsigned code;
    } rows[] = {
        {"unmasked", "\x81\x01x", 3, 1002},
        {"reserved bit", "\xc1\x81" MASK "x", 7, 1002},
        {"reserved op", "\x83\x81" MASK "x", 7, 1002},
        {"reserved control op", "\x8b\x80" MASK, 6, 1002},
        {"fragmented ping", "\x09\x80" MASK, 6, 1002},
        {"long ping", "\x89\xfe\x00\x7e" MASK, 8, 1002},
        {"continuation of nothing", "\x80\x80" MASK, 6, 1002},
        {"text in a message", "\x01\x80" MASK "\x81\x80" MASK, 12, 1002},
        {"far too long", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" MASK, 14, 1009},
        {"negative length", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff" MASK, 14, 1002},
        {"not UTF-8", "\x81\x81" MASK "\xfe", 7, 1007},
        {"surrogate", "\x81\x83" MASK "\xec\xa2\x83", 9, 1007},
        {"half a code", "\x88\x81" MASK "\x03", 7, 1002},
        {"code 1005", "\x88\x82" MASK "\x02\xef", 8, 1002},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(buf_done) struct buf in = BUF_INIT(65536);
        struct both b;
        int fd;

        with(&b, NULL);
        fd = shake_hands(&b, &in);
        raw_send(&b.f, fd, rows[i].bytes, rows[i].len);
        raw_read_all(&b.f, fd, &in, 5000);
        close(fd);
        if (b.server.closed != 1 || b.server.code != rows[i].code || b.server.messages)
            fail_msg("%s: closed %u with %u '%s'", rows[i].what, b.server.closed, b.server.code,
                b.server.text);
        assert_true(in.len >= 4);
        assert_int_equal((uint8_t)in.data[0], 0x88);
        assert_int_equal((uint8_t)in.data[2] << 8 | (uint8_t)in.data[3], rows[i].code);
        without(&b);
    }
}

static void frames_may_come_in_any_pieces(void **state)
{
    /* "Hello" in three fragments with a ping between, then a close with 1000. */
    static const char frames[] = "\x01\x82" MASK "\x49\x67"
                                 "\x89\x81" MASK "\x71"
                                 "\x00\x82" MASK "\x6d\x6e"
                                 "\x80\x81" MASK "\x6e"
                                 "\x88\x82" MASK "\x02\xea";
    _cleanup_(buf_done) struct buf in = BUF_INIT(65536);
    struct both b;
    int fd;

    with(&b, NULL);
    fd = shake_hands(&b, &in);
    for (size_t i = 0; i < sizeof(frames) - 1; i++)
        raw_send(&b.f, fd, frames + i, 1);
    raw_read_all(&b.f, fd, &in, 5000);
    close(fd);
    assert_int_equal(b.server.messages, 1);
    assert_string_equal(b.server.last, "Hello");
    assert_false(b.server.last_binary);
    assert_int_equal(b.server.closed, 1);
    assert_int_equal(b.server.code, 1000);
    assert_int_equal(in.len, 7);
    assert_memory_equal(in.data, "\x8a\x01p\x88\x02\x03\xe8", 7);
    without(&b);
}

static void frames_right_behind_the_handshake_are_not_lost(void **state)
{
    static const char all[] = HANDSHAKE "\x81\x82" MASK "\x49\x67";
    struct both b;
    int fd;

    with(&b, NULL);
    fd = raw_connect(&b.f);
    raw_send(&b.f, fd, all, sizeof(all) - 1);
    until(&b, &b.server.messages, 1, 5000);
    assert_string_equal(b.server.last, "He");
    close(fd);
    until(&b, &b.server.closed, 1, 5000);
    assert_int_equal(b.server.code, 1006);
    assert_string_equal(b.server.text, "the connection was lost");
    without(&b);
}

static void a_silent_peer_is_pinged_and_then_given_up(void **state)
{
    struct net_limits limits = {.ping_usec = 100000};
    _cleanup_(buf_done) struct buf in = BUF_INIT(65536);
    struct both b;
    int fd;

    with(&b, &limits);
    fd = shake_hands(&b, &in);
    until(&b, &b.server.closed, 1, 2000);
    assert_int_equal(b.server.code, 1006);
    assert_string_equal(b.server.text, "the peer does not answer pings");
    raw_read_all(&b.f, fd, &in, 2000);
    assert_true(in.len >= 2);
    assert_memory_equal(in.data, "\x89\0", 2);
    close(fd);
    without(&b);
}

static void quiet_and_paused_peers_stay_connected(void **state)
{
    struct net_limits limits = {.ping_usec = 50000};
    struct both b;

    pair_up(&b, &limits);
    turn_for(&b.f, 300);
    ws_pause(b.client.ws, true);
    turn_for(&b.f, 300);
    ws_pause(b.client.ws, false);
    ws_pause(b.server.ws, true);
    turn_for(&b.f, 300);
    assert_int_equal(b.client.closed, 0);
    assert_int_equal(b.server.closed, 0);
    without(&b);
}

static void a_peer_that_ignores_our_close_is_dropped(void **state)
{
    _cleanup_(buf_done) struct buf in = BUF_INIT(65536);
    struct both b;
    int fd;

    with(&b, NULL);
    fd = shake_hands(&b, &in);
    ws_close(b.server.ws, 1001, "bye");
    raw_read_until(&b.f, fd, &in, "bye", 2000);
    until(&b, &b.server.closed, 1, 8000);
    assert_int_equal(b.server.code, 1006);
    close(fd);
    without(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_both_ways_and_keep_their_kind),
        cmocka_unit_test(a_thousand_messages_of_all_sizes_go_both_ways_at_once),
        cmocka_unit_test(a_paused_side_gets_nothing_until_it_goes_on),
        cmocka_unit_test(a_paused_reader_holds_its_writer_back),
        cmocka_unit_test(a_close_is_told_to_both_with_code_and_reason),
        cmocka_unit_test(what_is_queued_is_sent_before_the_close),
        cmocka_unit_test(a_slow_reader_is_closed_with_1013),
        cmocka_unit_test(a_message_over_the_maximum_closes_with_1009),
        cmocka_unit_test(an_upgrade_can_be_refused_with_any_answer),
        cmocka_unit_test(an_upgrade_may_be_answered_later),
        cmocka_unit_test(a_server_that_is_not_there_is_told_once),
        cmocka_unit_test(a_name_is_resolved_and_its_addresses_tried),
        cmocka_unit_test(a_server_that_says_nothing_is_given_up),
        cmocka_unit_test(a_client_can_be_closed_before_it_is_connected),
        cmocka_unit_test(net_free_ends_clients_in_every_state),
        cmocka_unit_test(bad_urls_are_refused_at_once),
        cmocka_unit_test(bad_frames_close_with_the_right_code),
        cmocka_unit_test(frames_may_come_in_any_pieces),
        cmocka_unit_test(frames_right_behind_the_handshake_are_not_lost),
        cmocka_unit_test(a_silent_peer_is_pinged_and_then_given_up),
        cmocka_unit_test(quiet_and_paused_peers_stay_connected),
        cmocka_unit_test(a_peer_that_ignores_our_close_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
