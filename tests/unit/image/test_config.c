#include <signal.h>

#include "image/manifest.h"
#include "unit.h"

#define D "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define ROOTFS "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" D "\"]}"

static void takes(const char *text, struct image_config *c)
{
    struct err err = ERR_INIT;

    assert_ok(image_config_parse(text, strlen(text), "amd64", c, &err), &err);
}

static void refuses(const char *text, int code, const char *want)
{
    struct image_config c;
    struct err err;

    assert_fails(image_config_parse(text, strlen(text), "amd64", &c, &err), &err, code, want);
}

TEST(a_config_says_how_the_image_is_run)
{
    struct image_config c;

    takes("{\"os\":\"linux\",\"architecture\":\"amd64\"," ROOTFS
          ",\"config\":{\"Env\":[\"A=1\",\"B=x=y\"],\"Entrypoint\":[\"/e\"],\"Cmd\":[\"c\"],"
          "\"WorkingDir\":\"/w\",\"User\":\"1:2\",\"StopSignal\":\"SIGQUIT\"}}",
        &c);
    assert_int_equal(c.layer_count, 1);
    assert_string_equal(c.diff_ids[0], D);
    assert_string_equal(c.run->env[1], "B=x=y");
    assert_string_equal(c.run->entrypoint[0], "/e");
    assert_string_equal(c.run->cmd[0], "c");
    assert_string_equal(c.run->workdir, "/w");
    assert_string_equal(c.run->user, "1:2");
    assert_int_equal(c.run->stop_signal, SIGQUIT);
    image_config_done(&c);
}

TEST(what_a_config_leaves_out_or_has_null_is_not_there)
{
    struct image_config c;

    takes("{" ROOTFS "}", &c);
    assert_null(c.run->env);
    assert_int_equal(c.run->stop_signal, SIGTERM);
    image_config_done(&c);
    takes("{" ROOTFS ",\"config\":{\"Env\":null,\"Cmd\":null,\"User\":null}}", &c);
    assert_null(c.run->cmd);
    image_config_done(&c);
}

TEST(variables_without_a_name_are_dropped_and_the_last_of_a_name_counts)
{
    struct image_config c;

    takes("{" ROOTFS ",\"config\":{\"Env\":[\"A=1\",\"=x\",\"B\",\"A=2\"]}}", &c);
    assert_int_equal(strv_len(c.run->env), 1);
    assert_string_equal(c.run->env[0], "A=2");
    image_config_done(&c);
}

TEST(an_unknown_stop_signal_is_sigterm)
{
    struct image_config c;

    takes("{" ROOTFS ",\"config\":{\"StopSignal\":\"SIGNONE\"}}", &c);
    assert_int_equal(c.run->stop_signal, SIGTERM);
    image_config_done(&c);
}

TEST(configs_that_cannot_be_used_are_refused_with_the_reason)
{
    refuses("{\"os\":\"windows\",\"architecture\":\"amd64\"," ROOTFS "}", -EINVAL,
        "the image is for windows/amd64, not for linux/amd64");
    refuses("{}", -ENOENT, "'rootfs' is missing");
    refuses("{\"rootfs\":{\"diff_ids\":[]}}", -EINVAL, "the image has no layers");
    refuses("{\"rootfs\":{\"diff_ids\":[\"x\"]}}", -EINVAL, "diff id 1 is no sha256 digest");
    refuses("{\"rootfs\":{\"diff_ids\":[7]}}", -EINVAL, "diff id 1 is no sha256 digest");
    refuses("{" ROOTFS ",\"config\":{\"Cmd\":\"text\"}}", -EINVAL, "'Cmd' must be a list");
    refuses("{" ROOTFS ",\"config\":{\"Cmd\":[1]}}", -EINVAL, "'Cmd' must be a list of strings");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_says_how_the_image_is_run),
        cmocka_unit_test(what_a_config_leaves_out_or_has_null_is_not_there),
        cmocka_unit_test(variables_without_a_name_are_dropped_and_the_last_of_a_name_counts),
        cmocka_unit_test(an_unknown_stop_signal_is_sigterm),
        cmocka_unit_test(configs_that_cannot_be_used_are_refused_with_the_reason),
    };

    return RUN_TESTS(tests);
}
