#include "agent/ct/seccomp.h"
#include "unit.h"

static const char *const caps[] = {"CAP_CHOWN", "CAP_SYS_CHROOT", NULL};

static json_t *convert(const char *text)
{
    struct err err = ERR_INIT;
    json_t *profile = NULL, *out = NULL;

    assert_ok(json_parse(text, strlen(text), 1 << 20, &profile, &err), &err);
    assert_ok(seccomp_convert(profile, caps, &out, &err), &err);
    json_decref(profile);
    return out;
}

static void check(const char *text, const char *want)
{
    json_t *out = convert(text);
    char *have = json_text(out);

    assert_string_equal(have, want);
    free(have);
    json_decref(out);
}

#define HEAD "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"syscalls\":["
#if defined(__x86_64__)
#define ARCH "SCMP_ARCH_X86_64"
#define HERE "amd64"
#else
#define ARCH "SCMP_ARCH_AARCH64"
#define HERE "arm64"
#endif
#define WANT \
    "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"architectures\":[\"" ARCH \
    "\"],\"syscalls\":["

TEST(rules_of_the_same_kind_become_one)
{
    check(HEAD
        "{\"names\":[\"a\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[],\"comment\":\"\"},"
        "{\"names\":[\"b\"],\"action\":\"SCMP_ACT_ALLOW\"},"
        "{\"names\":[\"c\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,\"errno\":\"EPERM\"}]}",
        WANT "{\"names\":[\"a\",\"b\"],\"action\":\"SCMP_ACT_ALLOW\"},"
             "{\"names\":[\"c\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1}]}");
}

TEST(arguments_are_kept_and_keep_rules_apart)
{
    check(HEAD
        "{\"names\":[\"p\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"value\":8,"
        "\"valueTwo\":0,\"op\":\"SCMP_CMP_EQ\"}]},"
        "{\"names\":[\"q\"],\"action\":\"SCMP_ACT_ALLOW\"}]}",
        WANT "{\"names\":[\"p\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"value\":8,"
             "\"valueTwo\":0,\"op\":\"SCMP_CMP_EQ\"}]},"
             "{\"names\":[\"q\"],\"action\":\"SCMP_ACT_ALLOW\"}]}");
}

TEST(capabilities_decide)
{
    check(HEAD
        "{\"names\":[\"chroot\"],\"action\":\"A\",\"includes\":{\"caps\":[\"CAP_SYS_CHROOT\"]}},"
        "{\"names\":[\"no\"],\"action\":\"E\",\"excludes\":{\"caps\":[\"CAP_SYS_CHROOT\"]}},"
        "{\"names\":[\"bpf\"],\"action\":\"A\",\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}},"
        "{\"names\":[\"bpf\"],\"action\":\"E\",\"excludes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}}]}",
        WANT "{\"names\":[\"chroot\"],\"action\":\"A\"},{\"names\":[\"bpf\"],\"action\":\"E\"}]}");
}

TEST(architectures_and_kernels_decide)
{
    check(HEAD "{\"names\":[\"a\"],\"action\":\"A\",\"includes\":{\"arches\":[\"" HERE
               "\",\"x32\"]}},"
               "{\"names\":[\"b\"],\"action\":\"B\",\"includes\":{\"arches\":[\"s390x\"]}},"
               "{\"names\":[\"c\"],\"action\":\"C\",\"includes\":{\"minKernel\":\"4.8\"}},"
               "{\"names\":[\"d\"],\"action\":\"D\",\"includes\":{\"minKernel\":\"99.0\"}},"
               "{\"names\":[\"e\"],\"action\":\"E\",\"excludes\":{\"arches\":[\"" HERE "\"]}}]}",
        WANT "{\"names\":[\"a\"],\"action\":\"A\"},{\"names\":[\"c\"],\"action\":\"C\"}]}");
}

TEST(sub_architectures_come_from_the_map)
{
    json_t *out = convert("{\"defaultAction\":\"X\",\"archMap\":[{\"architecture\":\"" ARCH
                          "\",\"subArchitectures\":[\"S1\",\"S2\"]},{\"architecture\":\"OTHER\","
                          "\"subArchitectures\":[\"S3\"]}],\"syscalls\":[]}");
    char *have = json_text(json_object_get(out, "architectures"));

    assert_string_equal(have, "[\"" ARCH "\",\"S1\",\"S2\"]");
    free(have);
    json_decref(out);
}

TEST(what_is_no_profile_is_refused)
{
    json_t *bad = json_pack("{s:s}", "syscalls", "x"), *out = NULL;
    json_t *rule = json_pack("{s:s, s:[{s:[]}]}", "defaultAction", "X", "syscalls", "names");
    struct err err;

    assert_fails(seccomp_convert(bad, caps, &out, &err), &err, -EINVAL,
        "not a seccomp profile: no 'defaultAction' or 'syscalls'");
    assert_fails(seccomp_convert(rule, caps, &out, &err), &err, -EINVAL,
        "rule 0 has no 'names' or no 'action'");
    assert_fails(seccomp_load("/nonexistent", caps, &out, &err), &err, -ENOENT,
        "seccomp profile '/nonexistent': cannot open '/nonexistent': No such file or directory");
    json_decref(bad);
    json_decref(rule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_the_same_kind_become_one),
        cmocka_unit_test(arguments_are_kept_and_keep_rules_apart),
        cmocka_unit_test(capabilities_decide),
        cmocka_unit_test(architectures_and_kernels_decide),
        cmocka_unit_test(sub_architectures_come_from_the_map),
        cmocka_unit_test(what_is_no_profile_is_refused),
    };

    return RUN_TESTS(tests);
}
