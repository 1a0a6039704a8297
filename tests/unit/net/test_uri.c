/* Request targets, queries and WebSocket URLs. */
#include "net/uri.h"
#include "unit.h"

TEST(a_target_is_split_and_its_path_decoded_once)
{
    _cleanup_free_ char *target = xstrdup("/a%2520b/%ED%95%9C/c+d?x=%41&y");
    char *path, *query;
    struct err err = ERR_INIT;

    assert_ok(uri_split(target, &path, &query, &err), &err);
    assert_string_equal(path, "/a%20b/\xed\x95\x9c/c+d");
    assert_string_equal(query, "x=%41&y");
}

TEST(dots_that_are_no_parts_of_their_own_are_kept)
{
    static const char *const good[] = {"/", "/...", "/.a", "/a..", "/a/..b/", "//", "/a?/../b"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        _cleanup_free_ char *target = xstrdup(good[i]);
        char *path, *query;
        struct err err = ERR_INIT;

        assert_ok(uri_split(target, &path, &query, &err), &err);
    }
}

TEST(query_values_are_decoded_and_the_first_one_wins)
{
    static const char query[] = "a=1&b=x%26y&a=2&%63=d+e&empty=&flag&bad=%4&";
    static const struct {
        const char *key, *value;
    } rows[] = {{"a", "1"}, {"b", "x&y"}, {"c", "d e"}, {"empty", ""}, {"flag", ""}, {"bad", NULL},
        {"none", NULL}, {"%63", NULL}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char *value = uri_query_get(query, rows[i].key);

        if (rows[i].value)
            assert_string_equal(value, rows[i].value);
        else
            assert_null(value);
    }
}

TEST(websocket_urls_are_taken_apart)
{
    static const struct {
        const char *url, *host, *path;
        unsigned port;
        bool tls;
    } rows[] = {
        {"ws://127.0.0.1:7480/v1/link?a=b", "127.0.0.1", "/v1/link?a=b", 7480, false},
        {"wss://head.example", "head.example", "/", 443, true},
        {"ws://x/", "x", "/", 80, false},
        {"wss://[fe80::1]:8443/x", "fe80::1", "/x", 8443, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = ERR_INIT;
        struct uri uri;

        assert_ok(uri_parse_ws(rows[i].url, &uri, &err), &err);
        assert_string_equal(uri.host, rows[i].host);
        assert_string_equal(uri.path, rows[i].path);
        assert_int_equal(uri.port, rows[i].port);
        assert_int_equal(uri.tls, rows[i].tls);
    }
}

TEST(the_host_header_leaves_out_the_port_of_the_scheme)
{
    static const struct {
        const char *url, *text;
    } rows[] = {
        {"http://127.0.0.1:7480/x", "127.0.0.1:7480"},
        {"http://x:80", "x"},
        {"https://x", "x"},
        {"https://x:80", "x:80"},
        {"https://[fd00::1]:7480/muster/", "[fd00::1]:7480"},
        {"http://[fd00::1]", "[fd00::1]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[URI_AUTHORITY_MAX];
        struct err err = ERR_INIT;
        struct uri uri;

        assert_ok(uri_parse_http(rows[i].url, &uri, &err), &err);
        uri_format_authority(&uri, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_is_split_and_its_path_decoded_once),
        cmocka_unit_test(dots_that_are_no_parts_of_their_own_are_kept),
        cmocka_unit_test(query_values_are_decoded_and_the_first_one_wins),
        cmocka_unit_test(websocket_urls_are_taken_apart),
        cmocka_unit_test(the_host_header_leaves_out_the_port_of_the_scheme),
    };

    return RUN_TESTS(tests);
}
