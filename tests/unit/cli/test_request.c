/* Options and words of create and run as the body of POST /v1/sessions. */
#include "cli/request.h"
#include "unit.h"

static void volume(const char *spec, const char *want)
{
    json_t *mount = NULL;
    struct err err = ERR_INIT;
    char *text;

    assert_ok(request_volume(spec, &mount, &err), &err);
    text = json_text(mount);
    assert_string_equal(text, want);
    free(text);
    json_decref(mount);
}

TEST(a_volume_goes_below_data_unless_a_path_is_given)
{
    volume("data", "{\"volume\":\"data\",\"path\":\"/data/data\",\"read_only\":false}");
    volume("data:/x", "{\"volume\":\"data\",\"path\":\"/x\",\"read_only\":false}");
}

TEST(a_volume_can_be_read_only)
{
    volume("data:rw", "{\"volume\":\"data\",\"path\":\"/data/data\",\"read_only\":false}");
    volume("data:ro", "{\"volume\":\"data\",\"path\":\"/data/data\",\"read_only\":true}");
    volume("data:/x:ro", "{\"volume\":\"data\",\"path\":\"/x\",\"read_only\":true}");
    volume("data:/x:rw", "{\"volume\":\"data\",\"path\":\"/x\",\"read_only\":false}");
}

TEST(a_volume_of_any_other_form_is_refused)
{
    static const char *const specs[] = {"data:x", "data:", "data:/x:", "data:/x:rx", "data:rx",
        "data:ro:/x", "data:ro:ro", "data:/x:ro:ro", "data:/x:/y", "data::ro"};
    json_t *mount = NULL;

    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct err err = ERR_INIT;
        char *want = xasprintf("'%s' must be NAME[:PATH][:ro|rw] with an absolute PATH, as in "
                               "data:/data:ro",
            specs[i]);
        assert_fails(request_volume(specs[i], &mount, &err), &err, -EINVAL, want);
        assert_null(mount);
        free(want);
    }
}

TEST(a_volume_without_a_name_is_refused)
{
    json_t *mount = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(request_volume(":/x", &mount, &err), -EINVAL);
    assert_int_equal(request_volume("", &mount, &err), -EINVAL);
    assert_int_equal(request_volume("a/b:/x", &mount, &err), -EINVAL);
    assert_null(mount);
}

TEST(a_variable_alone_has_the_value_that_it_has_here)
{
    json_t *env = json_object();
    struct err err = ERR_INIT;

    setenv("MUSTER_UNIT", "here", 1);
    assert_ok(request_env(env, "MUSTER_UNIT", &err), &err);
    assert_ok(request_env(env, "A=b=c", &err), &err);
    assert_ok(request_env(env, "EMPTY=", &err), &err);
    assert_string_equal(json_str_or(env, "MUSTER_UNIT", ""), "here");
    assert_string_equal(json_str_or(env, "A", ""), "b=c");
    assert_string_equal(json_str_or(env, "EMPTY", "?"), "");
    json_decref(env);
}

TEST(a_variable_that_is_not_set_is_refused)
{
    json_t *env = json_object();
    struct err err = ERR_INIT;

    unsetenv("MUSTER_UNIT");
    assert_fails(request_env(env, "MUSTER_UNIT", &err), &err, -EINVAL,
        "--env: MUSTER_UNIT is not set here; give a value: MUSTER_UNIT=VALUE");
    assert_fails(request_env(env, "=x", &err), &err, -EINVAL, "--env: '=x' has no name");
    assert_int_equal(json_object_size(env), 0);
    json_decref(env);
}

TEST(only_what_was_asked_for_is_in_the_body)
{
    struct request_opts o = {.mem = (char *)"4G", .size = 2};
    char *words[] = {(char *)"base", (char *)"--", (char *)"sh", (char *)"-c", (char *)"exit 3"};
    json_t *body = NULL;
    struct err err = ERR_INIT;
    char *text;

    assert_ok(request_body(&o, ARRAY_LEN(words), words, &body, &err), &err);
    text = json_text(body);
    assert_string_equal(text,
        "{\"image\":\"base\",\"mem\":\"4G\",\"size\":2,"
        "\"command\":[\"sh\",\"-c\",\"exit 3\"],\"mounts\":[],\"env\":{}}");
    free(text);
    json_decref(body);
}

TEST(only_the_first_dashes_behind_the_image_are_dropped)
{
    struct request_opts o = {0};
    char *words[] = {(char *)"base", (char *)"env", (char *)"--", (char *)"x"};
    json_t *body = NULL;
    struct err err = ERR_INIT;

    assert_ok(request_body(&o, ARRAY_LEN(words), words, &body, &err), &err);
    assert_int_equal(json_array_size(json_object_get(body, "command")), 3);
    json_decref(body);
}

TEST(a_command_that_is_not_utf8_is_refused)
{
    struct request_opts o = {0};
    char *words[] = {(char *)"base", (char *)"echo", (char *)"\xff"};
    json_t *body = NULL;
    struct err err = ERR_INIT;

    assert_fails(request_body(&o, ARRAY_LEN(words), words, &body, &err), &err, -EINVAL,
        "word 2 of the command is not UTF-8");
    assert_null(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_volume_goes_below_data_unless_a_path_is_given),
        cmocka_unit_test(a_volume_can_be_read_only),
        cmocka_unit_test(a_volume_of_any_other_form_is_refused),
        cmocka_unit_test(a_volume_without_a_name_is_refused),
        cmocka_unit_test(a_variable_alone_has_the_value_that_it_has_here),
        cmocka_unit_test(a_variable_that_is_not_set_is_refused),
        cmocka_unit_test(only_what_was_asked_for_is_in_the_body),
        cmocka_unit_test(only_the_first_dashes_behind_the_image_are_dropped),
        cmocka_unit_test(a_command_that_is_not_utf8_is_refused),
    };

    return RUN_TESTS(tests);
}
