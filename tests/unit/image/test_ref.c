#include "image/ref.h"
#include "unit.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void is_normal(const char *text, const char *want)
{
    char normal[IMAGE_REF_MAX + 1] = "";
    struct err err = ERR_INIT;

    assert_ok(image_ref_normal(text, normal, &err), &err);
    assert_string_equal(normal, want);
    /* A normal form is its own normal form. */
    assert_ok(image_ref_normal(normal, normal, &err), &err);
    assert_string_equal(normal, want);
}

TEST(every_form_of_a_reference_has_one_normal_form)
{
    is_normal("ubuntu", "ubuntu:latest");
    is_normal("ubuntu:24.04", "ubuntu:24.04");
    is_normal("team/app_x:v1", "team/app_x:v1");
    is_normal("docker://registry.example.com/nvidia/pytorch:25.01-py3",
        "registry.example.com/nvidia/pytorch:25.01-py3");
    is_normal("registry.example.com#nvidia/pytorch:25.01-py3",
        "registry.example.com/nvidia/pytorch:25.01-py3");
    is_normal("docker://localhost:5000#a/b", "localhost:5000/a/b:latest");
    is_normal("registry#a/b:1", "registry#a/b:1");
    is_normal("localhost/a", "localhost/a:latest");
    is_normal("[::1]:5000/a:b", "[::1]:5000/a:b");
    is_normal("h.x/a@" DIGEST, "h.x/a@" DIGEST);
    is_normal("h.x/a:t@" DIGEST, "h.x/a:t@" DIGEST);
    is_normal("a--b/c__d:T", "a--b/c__d:T");
}

TEST(what_is_no_reference_is_refused_with_the_reason)
{
    static const char *const bad[] = {
        "Upper/case",
        "a b",
        "-x",
        "--flag",
        "a:-b",
        "a:b:c",
        "a//b",
        "/a",
        "a/",
        "a:",
        "x/y:/z",
        "a@sha256:0",
        "a@" DIGEST "0",
        "h.x:0/a",
        "h.x:99999/a",
        "h.x:/a",
        "-h.x/a",
        "h;x.y/a",
        "a..b",
        "a.",
        "[::1/a",
        "a\nb",
        "\xff",
        "#a",
        "h.x#",
        "docker://",
        "oci:/etc",
        "a@@b",
        "h.x/../a",
        "./a",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;

        if (image_ref_check(bad[i], &err) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(str_starts(err.text, "image '"));
        assert_true(str_is_clean(err.text, strlen(err.text)));
    }
}

TEST(errors_say_which_part_is_wrong)
{
    char normal[IMAGE_REF_MAX + 1];
    struct err err;

    assert_fails(image_ref_normal("", normal, &err), &err, -EINVAL, "an image must be named");
    assert_fails(image_ref_normal("a:b:c", normal, &err), &err, -EINVAL,
        "image 'a:b:c': the tag may have a-z A-Z 0-9 _ . -, at most 128 of them");
    assert_fails(image_ref_normal("h.x:0/a", normal, &err), &err, -EINVAL,
        "image 'h.x:0/a': the registry must be HOST or HOST:PORT");
    assert_fails(image_ref_normal("a@md5:1", normal, &err), &err, -EINVAL,
        "image 'a@md5:1': the digest must be sha256: and 64 hexadecimal digits");
}

TEST(a_reference_is_bounded)
{
    char text[IMAGE_REF_MAX + 2], normal[IMAGE_REF_MAX + 1];
    struct err err = ERR_INIT;

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(image_ref_check(text, &err), -EINVAL);
    assert_non_null(strstr(err.text, "longer than 255 bytes"));
    /* 255 bytes, but not with ":latest" behind it. */
    text[IMAGE_REF_MAX] = '\0';
    assert_int_equal(image_ref_normal(text, normal, &err), -EINVAL);
    text[IMAGE_REF_MAX - 7] = '\0';
    assert_ok(image_ref_normal(text, normal, &err), &err);
    memset(text + 1, 't', 131);
    text[1] = ':';
    text[131] = '\0';
    assert_int_equal(image_ref_check(text, &err), -EINVAL);
    text[130] = '\0';
    assert_ok(image_ref_check(text, &err), &err);
}

static void is_at(const char *text, const char *host, const char *path)
{
    struct image_ref ref;
    struct err err = ERR_INIT;
    char *got;

    assert_ok(image_ref_parse(text, &ref, &err), &err);
    got = image_ref_path(&ref);
    assert_string_equal(image_ref_host(&ref), host);
    assert_string_equal(got, path);
    free(got);
}

TEST(what_has_no_registry_is_of_docker_hub_when_fetched)
{
    is_at("ubuntu", "docker.io", "library/ubuntu");
    is_at("docker.io/ubuntu", "docker.io", "library/ubuntu");
    is_at("team/app:1", "docker.io", "team/app");
    is_at("h.x#app:1", "h.x", "app");
    is_at("h.x/a/app:1@" DIGEST, "h.x", "a/app");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_reference_has_one_normal_form),
        cmocka_unit_test(what_is_no_reference_is_refused_with_the_reason),
        cmocka_unit_test(errors_say_which_part_is_wrong),
        cmocka_unit_test(a_reference_is_bounded),
        cmocka_unit_test(what_has_no_registry_is_of_docker_hub_when_fetched),
    };

    return RUN_TESTS(tests);
}
