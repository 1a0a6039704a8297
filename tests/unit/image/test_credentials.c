/* Credentials as Docker's config.json has them. */
#include "image/credentials.h"
#include "image/ref.h"
#include "unit.h"

static json_t *parse(const char *text)
{
    struct err err = ERR_INIT;
    json_t *doc = NULL;

    assert_ok(json_parse(text, strlen(text), CREDENTIALS_MAX_BYTES, &doc, &err), &err);
    return doc;
}

static void finds(const char *text, const char *host, const char *name, const char *user)
{
    _cleanup_(json_decrefp) json_t *doc = parse(text);
    _cleanup_(credentials_done) struct credentials c = {0};
    int r = credentials_find(doc, "a file", host, name, &c);

    assert_int_equal(r, user ? 0 : -ENOENT);
    if (user)
        assert_string_equal(c.user, user);
}

TEST(the_most_specific_entry_is_taken)
{
    static const char text[] =
        "{\"auths\": {\"h:5\": {\"username\": \"host\", \"password\": \"p\"},"
        "\"h:5/team\": {\"username\": \"team\", \"password\": \"p\"},"
        "\"h:5/team/app\": {\"auth\": \"YXBwOng=\"}}}";

    finds(text, "h:5", "other", "host");
    finds(text, "h:5", "team/other", "team");
    finds(text, "h:5", "team/app", "app");
    finds(text, "h:5", "team/app2", "team");
    finds(text, "h:55", "x", NULL);
    finds(text, "h", "x", NULL);
}

TEST(old_forms_of_a_host_are_understood)
{
    finds("{\"auths\": {\"https://h/v1/\": {\"username\": \"u\"}}}", "h", "x", "u");
    finds("{\"auths\": {\"https://index." IMAGE_REF_HUB "/v1/\": {\"username\": \"u\"}}}",
        "docker.io", "library/x", "u");
    finds("{\"auths\": {\"evil-docker.io\": {\"username\": \"u\"}}}", "docker.io", "x", NULL);
}

TEST(a_password_may_hold_colons)
{
    _cleanup_(json_decrefp) json_t *doc = parse("{\"auths\": {\"h\": {\"auth\": \"dTphOmI=\"}}}");
    _cleanup_(credentials_done) struct credentials c = {0};

    assert_int_equal(credentials_find(doc, "a file", "h", "x", &c), 0);
    assert_string_equal(c.user, "u");
    assert_string_equal(c.password, "a:b");
    assert_string_equal(c.from, "a file");
}

TEST(what_is_no_entry_is_named)
{
    static const char *const bad[] = {"{\"auths\": {\"h\": {}}}", "{\"auths\": {\"h\": 1}}",
        "{\"auths\": {\"h\": {\"auth\": \"!\"}}}", "{\"auths\": {\"h\": {\"auth\": \"dTph\\n\"}}}",
        "{\"auths\": {\"h\": {\"auth\": \"YWJj\"}}}"};
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        _cleanup_(json_decrefp) json_t *doc = parse(bad[i]);
        err = (struct err)ERR_INIT;
        assert_int_equal(credentials_check(doc, &err), -EINVAL);
        assert_non_null(strstr(err.text, "'h'"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_specific_entry_is_taken),
        cmocka_unit_test(old_forms_of_a_host_are_understood),
        cmocka_unit_test(a_password_may_hold_colons),
        cmocka_unit_test(what_is_no_entry_is_named),
    };

    return RUN_TESTS(tests);
}
