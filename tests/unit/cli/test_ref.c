/* SESSION/CONTAINER. */
#include "cli/ref.h"
#include "unit.h"

static void parse(const char *text, const char *session, const char *container)
{
    struct ref r;
    struct err err = ERR_INIT;

    assert_ok(ref_parse(text, &r, &err), &err);
    assert_string_equal(r.session, session);
    assert_string_equal(r.container, container);
    assert_int_equal(r.has_container, strchr(text, '/') != NULL);
    ref_done(&r);
}

TEST(without_a_container_main1_is_meant)
{
    parse("tune", "tune", "main1");
    parse("12", "12", "main1");
}

TEST(a_container_stands_behind_the_slash)
{
    parse("tune/main1", "tune", "main1");
    parse("1f3fa502/sub12", "1f3fa502", "sub12");
}

TEST(what_is_no_container_is_refused_with_their_names)
{
    static const char *const bad[] = {
        "t/", "t/sub", "t/sub0", "t/sub01", "t/main2", "t/sub1/x", "t/sub1000"};
    struct ref r;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(ref_parse(bad[i], &r, &err), -EINVAL);
    assert_fails(ref_parse("t/sub0", &r, &err), &err, -EINVAL,
        "'sub0' is no container: they are called main1, sub1, sub2, ...");
}

TEST(an_empty_session_is_refused)
{
    struct ref r;
    struct err err = ERR_INIT;

    assert_fails(ref_parse("/sub1", &r, &err), &err, -EINVAL,
        "'/sub1' names no session: give its name, number, or the beginning of its id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_container_main1_is_meant),
        cmocka_unit_test(a_container_stands_behind_the_slash),
        cmocka_unit_test(what_is_no_container_is_refused_with_their_names),
        cmocka_unit_test(an_empty_session_is_refused),
    };

    return RUN_TESTS(tests);
}
