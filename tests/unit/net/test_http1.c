/* Request heads and bodies without any connection. What is refused is in test_server.c. */
#include "net/http1.h"
#include "unit.h"

static int parse(const char *text, char **ret_copy, struct http1_head *head, unsigned *status)
{
    struct err err = ERR_INIT;
    size_t scanned = 0;
    ssize_t len = http1_head_length(text, strlen(text), &scanned);

    assert_true(len > 0);
    *ret_copy = xstrdup(text);
    return http1_parse_head(*ret_copy, (size_t)len, head, status, &err);
}

TEST(the_end_of_a_head_is_found_however_it_comes)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest\r\n\r\n";

    for (size_t first = 0; first < 27; first++) {
        size_t scanned = 0;

        assert_int_equal(http1_head_length(text, first, &scanned), 0);
        assert_int_equal(http1_head_length(text, sizeof(text) - 1, &scanned), 27);
    }
}

TEST(headers_are_found_by_name_with_their_values_trimmed)
{
    _cleanup_free_ char *copy = NULL;
    struct http1_head head;
    unsigned status;

    assert_int_equal(parse("GET /x?y HTTP/1.1\r\nHoSt:x\r\nA-b: \t c d \t\r\nEmpty:\r\n\r\n", &copy,
                         &head, &status),
        0);
    assert_string_equal(head.method, "GET");
    assert_string_equal(head.target, "/x?y");
    assert_string_equal(http1_header(&head, "host"), "x");
    assert_string_equal(http1_header(&head, "a-b"), "c d");
    assert_string_equal(http1_header(&head, "empty"), "");
    assert_null(http1_header(&head, "other"));
    assert_true(head.keep_alive);
    assert_null(head.ws_key);
}

TEST(keeping_the_connection_follows_version_and_header)
{
    static const struct {
        const char *text;
        bool keep;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char *copy = NULL;
        struct http1_head head;
        unsigned status;

        assert_int_equal(parse(rows[i].text, &copy, &head, &status), 0);
        assert_int_equal(head.keep_alive, rows[i].keep);
    }
}

TEST(a_handshake_is_one_only_when_it_is_whole)
{
#define LINES(method, version, upgrade, connection, number, key) \
    method " / HTTP/" version "\r\nHost: x\r\nUpgrade: " upgrade "\r\nConnection: " connection \
           "\r\nSec-WebSocket-Version: " number "\r\nSec-WebSocket-Key: " key "\r\n\r\n"
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
    static const struct {
        const char *text;
        bool is;
    } rows[] = {
        {LINES("GET", "1.1", "websocket", "Upgrade", "13", KEY), true},
        {LINES("GET", "1.1", "WebSocket", "keep-alive, upgrade", "13", KEY), true},
        {LINES("POST", "1.1", "websocket", "Upgrade", "13", KEY), false},
        {LINES("GET", "1.0", "websocket", "Upgrade", "13", KEY), false},
        {LINES("GET", "1.1", "h2c", "Upgrade", "13", KEY), false},
        {LINES("GET", "1.1", "websocket", "keep-alive", "13", KEY), false},
        {LINES("GET", "1.1", "websocket", "Upgrade", "8", KEY), false},
        {LINES("GET", "1.1", "websocket", "Upgrade", "13", "short"), false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char *copy = NULL;
        struct http1_head head;
        unsigned status;

        assert_int_equal(parse(rows[i].text, &copy, &head, &status), 0);
        assert_int_equal(head.ws_key != NULL, rows[i].is);
    }
}

/* The body that comes when the bytes arrive step by step; NULL when it is refused. */
static char *body_in_steps(const char *chunks, size_t step)
{
    struct http1_head head = {.chunked = true};
    struct http1_body body;
    char *got = xcalloc(1, strlen(chunks) + 1);
    size_t len = strlen(chunks);

    http1_body_init(&body, &head);
    for (size_t at = 0; at < len && !http1_body_is_done(&body);) {
        const char *piece;
        size_t used, n;

        if (http1_body_take(&body, chunks + at, MIN_OF(step, len - at), &used, &piece, &n) < 0) {
            free(got);
            return NULL;
        }
        if (n)
            memcpy(got + strlen(got), piece, n);
        at += used;
    }
    if (!http1_body_is_done(&body)) {
        free(got);
        return NULL;
    }
    return got;
}

TEST(chunks_are_joined_however_they_come)
{
    static const char chunks[] =
        "1\r\na\r\n00A\r\n0123456789\r\n0\r\nA-trailer: that is longer than "
        "the line that is kept of it\r\n\r\n";

    for (size_t step = 1; step < sizeof(chunks); step++) {
        _cleanup_free_ char *got = body_in_steps(chunks, step);

        assert_non_null(got);
        assert_string_equal(got, "a0123456789");
    }
}

TEST(broken_chunks_are_refused)
{
    static const char *const rows[] = {"\r\n", "x\r\n", "1\na\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n", " 1\r\na\r\n0\r\n\r\n", "0x1\r\na\r\n0\r\n\r\n", "-1\r\n",
        "10000000000000000\r\n", "1;x\r\na\r\n0\r\n\r\n", "0\r\nTrailer\n\r\n"};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t step = 1; step <= strlen(rows[i]); step++) {
            if (body_in_steps(rows[i], step))
                fail_msg("row %zu was taken", i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_head_is_found_however_it_comes),
        cmocka_unit_test(headers_are_found_by_name_with_their_values_trimmed),
        cmocka_unit_test(keeping_the_connection_follows_version_and_header),
        cmocka_unit_test(a_handshake_is_one_only_when_it_is_whole),
        cmocka_unit_test(chunks_are_joined_however_they_come),
        cmocka_unit_test(broken_chunks_are_refused),
    };

    return RUN_TESTS(tests);
}
