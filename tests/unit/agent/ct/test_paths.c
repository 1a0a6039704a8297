#include "agent/ct/paths.h"
#include "unit.h"

#define ID "3e9f4c2a-8a5b-4b7e-9d63-1f0a2b3c4d5e"

TEST(paths_lie_below_the_containers_folders)
{
    struct rootfs_dirs d = {.run = "/run/muster", .state = "/var/lib/muster"};
    char path[CT_PATH_MAX];

    assert_string_equal(ct_run_path(&d, ID, "", path), "/run/muster/ct/" ID);
    assert_string_equal(
        ct_run_path(&d, ID, "etc/record", path), "/run/muster/ct/" ID "/etc/record");
    assert_string_equal(ct_state_path(&d, ID, "upper", path), "/var/lib/muster/ct/" ID "/upper");
    assert_string_equal(ct_path("/run/muster", "ns", path), "/run/muster/ns");
}

TEST(only_a_uuid_becomes_a_name)
{
    static const char *const bad[] = {"", ".", "..", "../../etc", ID "/..", "3e9f4c2a"};
    struct err err = ERR_INIT;

    assert_ok(ct_check_id("container", ID, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(ct_check_id("container", bad[i], &err), &err, -EINVAL,
            "the container's id is not a UUID");
}

TEST(only_a_sha256_is_a_digest)
{
    static const char hex[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char text[128];

    snprintf(text, sizeof(text), "sha256:%s", hex);
    assert_string_equal(ct_digest_hex(text), hex);
    text[20] = '/';
    assert_null(ct_digest_hex(text));
    assert_null(ct_digest_hex(hex));
    assert_null(ct_digest_hex("sha256:"));
    assert_null(ct_digest_hex("sha512:0123456789abcdef"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lie_below_the_containers_folders),
        cmocka_unit_test(only_a_uuid_becomes_a_name),
        cmocka_unit_test(only_a_sha256_is_a_digest),
    };

    return RUN_TESTS(tests);
}
