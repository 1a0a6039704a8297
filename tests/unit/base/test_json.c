#include "base/json.h"
#include "base/strv.h"
#include "unit.h"

static int parse(const char *text, json_t **ret, struct err *err)
{
    return json_parse(text, strlen(text), 4096, ret, err);
}

static json_t *parsed(const char *text)
{
    struct err err = ERR_INIT;
    json_t *doc = NULL;

    assert_ok(parse(text, &doc, &err), &err);
    return doc;
}

TEST(a_document_may_be_any_value)
{
    static const char *const good[] = {"{}", "[]", "7", "\"a\"", "null", " true \n"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        json_decref(parsed(good[i]));
}

TEST(a_broken_document_is_refused_with_its_line)
{
    static const char *const bad[] = {"", "{", "{}x", "{} {}", "{\"a\":1,}", "{'a':1}", "[1 2]",
        "\"\\u0000\"", "\"\xff\"", "99999999999999999999", "1e999", "{\"a\":nul}", "\"\n\""};
    json_t *doc = NULL;
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(parse(bad[i], &doc, NULL), -EINVAL);
    assert_int_equal(json_parse("[\0]", 3, 100, &doc, NULL), -EINVAL);
    assert_fails(parse("{\"a\": 1,\n \"a\": 2}", &doc, &err), &err, -EINVAL,
        "line 2: duplicate object key near '\"a\"'");
    assert_null(doc);
}

TEST(a_large_document_is_not_parsed)
{
    json_t *doc = NULL;
    struct err err;

    assert_fails(
        json_parse("[1,2]", 5, 4, &doc, &err), &err, -EINVAL, "line 1: larger than 4 bytes");
    assert_int_equal(json_parse("[1,2]", 5, 5, &doc, NULL), 0);
    json_decref(doc);
}

static void nested(char *text, size_t depth)
{
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
}

TEST(a_document_is_at_most_32_deep)
{
    json_t *doc = NULL;
    char text[200];
    struct err err;

    nested(text, 32);
    json_decref(parsed(text));
    nested(text, 33);
    assert_fails(parse(text, &doc, &err), &err, -EINVAL, "line 1: nested deeper than 32");
}

TEST(brackets_in_strings_do_not_count_as_depth)
{
    json_decref(parsed("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]"));
    json_decref(parsed("[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\\\"]"));
}

TEST(text_keeps_the_order_of_keys)
{
    _cleanup_(json_decrefp) json_t *doc = parsed("{ \"z\": 1, \"a\": [true, null, \"x\"] }");
    _cleanup_free_ char *text = json_text(doc);

    assert_string_equal(text, "{\"z\":1,\"a\":[true,null,\"x\"]}");
}

TEST(members_of_the_right_type_are_read)
{
    _cleanup_(json_decrefp)
        json_t *doc = parsed("{\"s\":\"x\",\"u\":7,\"i\":-7,\"b\":true,\"o\":{},\"a\":[]}");
    const char *s = NULL;
    json_t *o = NULL, *a = NULL;
    uint64_t u = 0;
    int64_t i = 0;
    bool b = false;

    assert_int_equal(json_get_str(doc, "s", &s, NULL), 0);
    assert_string_equal(s, "x");
    assert_int_equal(json_get_u64(doc, "u", 7, &u, NULL), 0);
    assert_int_equal(u, 7);
    assert_int_equal(json_get_i64(doc, "i", &i, NULL), 0);
    assert_int_equal(i, -7);
    assert_int_equal(json_get_bool(doc, "b", &b, NULL), 0);
    assert_true(b);
    assert_int_equal(json_get_obj(doc, "o", &o, NULL), 0);
    assert_true(json_is_object(o));
    assert_int_equal(json_get_arr(doc, "a", &a, NULL), 0);
    assert_true(json_is_array(a));
}

TEST(a_null_member_is_a_missing_one)
{
    _cleanup_(json_decrefp) json_t *doc = parsed("{\"cpus\":null}");
    uint64_t u = 77;
    struct err err;

    assert_fails(json_get_u64(doc, "cpus", 9, &u, &err), &err, -ENOENT, "'cpus' is missing");
    assert_fails(json_get_u64(doc, "gpus", 9, &u, &err), &err, -ENOENT, "'gpus' is missing");
    assert_int_equal(u, 77);
}

TEST(a_member_of_another_type_is_named)
{
    _cleanup_(json_decrefp) json_t *doc = parsed("{\"x\":1.5,\"n\":-1,\"big\":1025}");
    const char *s;
    json_t *j;
    uint64_t u;
    int64_t i;
    bool b;
    struct err err;

    assert_fails(json_get_str(doc, "x", &s, &err), &err, -EINVAL, "'x' must be a string");
    assert_fails(json_get_u64(doc, "x", 1024, &u, &err), &err, -EINVAL,
        "'x' must be a whole number from 0 to 1024");
    assert_int_equal(json_get_u64(doc, "n", 1024, &u, NULL), -EINVAL);
    assert_int_equal(json_get_u64(doc, "big", 1024, &u, NULL), -EINVAL);
    assert_fails(json_get_i64(doc, "x", &i, &err), &err, -EINVAL, "'x' must be a whole number");
    assert_fails(json_get_bool(doc, "x", &b, &err), &err, -EINVAL, "'x' must be true or false");
    assert_fails(json_get_obj(doc, "x", &j, &err), &err, -EINVAL, "'x' must be an object");
    assert_fails(json_get_arr(doc, "x", &j, &err), &err, -EINVAL, "'x' must be a list");
}

TEST(members_of_what_is_no_object_cannot_be_read)
{
    _cleanup_(json_decrefp) json_t *doc = parsed("[1]");
    const char *s;
    struct err err;

    assert_fails(json_get_str(doc, "x", &s, &err), &err, -EINVAL, "must be an object with 'x'");
    assert_string_equal(json_str_or(doc, "x", "d"), "d");
}

TEST(defaults_stand_in_for_missing_members)
{
    _cleanup_(json_decrefp) json_t *doc = parsed("{\"s\":\"x\",\"u\":7,\"b\":false}");

    assert_string_equal(json_str_or(doc, "s", "d"), "x");
    assert_string_equal(json_str_or(doc, "u", "d"), "d");
    assert_null(json_str_or(doc, "none", NULL));
    assert_int_equal(json_u64_or(doc, "u", 1), 7);
    assert_int_equal(json_u64_or(doc, "s", 1), 1);
    assert_false(json_bool_or(doc, "b", true));
    assert_true(json_bool_or(doc, "none", true));
}

TEST(members_are_set_in_one_call)
{
    _cleanup_(json_decrefp) json_t *doc = json_object();
    _cleanup_(strv_freep) char **v = strv_split("a,b", ',');
    _cleanup_free_ char *text = NULL;

    json_set_str(doc, "s", "x");
    json_set_str(doc, "null", NULL);
    json_set_str(doc, "bad", "\xff");
    json_set_u64(doc, "u", 7);
    json_set_bool(doc, "b", true);
    json_set_strv(doc, "v", v);
    json_set_strv(doc, "none", NULL);
    text = json_text(doc);
    assert_string_equal(text,
        "{\"s\":\"x\",\"null\":null,\"bad\":\"\\\\xff\",\"u\":7,\"b\":true,"
        "\"v\":[\"a\",\"b\"],\"none\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_may_be_any_value),
        cmocka_unit_test(a_broken_document_is_refused_with_its_line),
        cmocka_unit_test(a_large_document_is_not_parsed),
        cmocka_unit_test(a_document_is_at_most_32_deep),
        cmocka_unit_test(brackets_in_strings_do_not_count_as_depth),
        cmocka_unit_test(text_keeps_the_order_of_keys),
        cmocka_unit_test(members_of_the_right_type_are_read),
        cmocka_unit_test(a_null_member_is_a_missing_one),
        cmocka_unit_test(a_member_of_another_type_is_named),
        cmocka_unit_test(members_of_what_is_no_object_cannot_be_read),
        cmocka_unit_test(defaults_stand_in_for_missing_members),
        cmocka_unit_test(members_are_set_in_one_call),
    };

    return RUN_TESTS(tests);
}
