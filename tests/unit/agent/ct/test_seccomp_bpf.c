/*
 * The compiled filter, by the kernel itself: a child loads it and makes calls.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/ct/seccomp.h"
#include "agent/ct/seccomp_bpf.h"
#include "unit.h"

static char *compile(const char *rules, int want, struct err *err)
{
    _cleanup_free_ char *text = xasprintf(
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[%s]}", rules);
    static const char *const caps[] = {NULL};
    json_t *profile = NULL, *oci = NULL;
    char *bpf = NULL;

    assert_ok(json_parse(text, strlen(text), 1 << 20, &profile, err), err);
    assert_ok(seccomp_convert(profile, caps, &oci, err), err);
    assert_int_equal(seccomp_bpf(oci, &bpf, err), want);
    json_decref(profile);
    json_decref(oci);
    return bpf;
}

/* What errno `call` has under the filter; 0: it works. */
static int errno_of(const char *bpf, long (*call)(void))
{
    unsigned char program[32768];
    size_t len;
    int status;
    pid_t pid;

    assert_int_equal(sodium_base642bin(program, sizeof(program), bpf, strlen(bpf), NULL, &len, NULL,
                         sodium_base64_VARIANT_ORIGINAL),
        0);
    pid = fork();
    if (pid == 0) {
        struct sock_fprog p = {
            .len = (unsigned short)(len / sizeof(struct sock_filter)), .filter = (void *)program};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0)
            _exit(255);
        _exit(call() < 0 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static long personality_0(void)
{
    return syscall(SYS_personality, 0);
}

static long personality_8(void)
{
    return syscall(SYS_personality, 8);
}

static long personality_unknown(void)
{
    return syscall(SYS_personality, 0x20);
}

static long get_parent(void)
{
    return syscall(SYS_getppid);
}

TEST(a_forbidden_call_fails_with_its_errno_and_others_work)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *bpf = compile(
        "{\"names\":[\"personality\",\"no_such_call\"],\"action\":\"SCMP_ACT_ERRNO\","
        "\"errnoRet\":38}",
        0, &err);

    assert_int_equal(errno_of(bpf, personality_0), ENOSYS);
    assert_int_equal(errno_of(bpf, get_parent), 0);
}

TEST(an_argument_decides)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *bpf = compile(
        "{\"names\":[\"personality\"],\"action\":\"SCMP_ACT_ERRNO\","
        "\"args\":[{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_EQ\"}]}",
        0, &err);

    assert_int_equal(errno_of(bpf, personality_8), EPERM);
    assert_int_equal(errno_of(bpf, personality_0), 0);
}

TEST(of_two_comparisons_of_one_argument_either_is_enough)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *bpf = compile("{\"names\":[\"personality\"],\"action\":\"SCMP_ACT_ERRNO\","
                                       "\"args\":[{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_EQ\"},"
                                       "{\"index\":0,\"value\":32,\"op\":\"SCMP_CMP_EQ\"}]}",
        0, &err);

    assert_int_equal(errno_of(bpf, personality_8), EPERM);
    assert_int_equal(errno_of(bpf, personality_unknown), EPERM);
    assert_int_equal(errno_of(bpf, personality_0), 0);
}

TEST(what_is_not_a_program_alone_is_left_to_the_runtime)
{
    struct err err = ERR_INIT;

    assert_null(compile("{\"names\":[\"mount\"],\"action\":\"SCMP_ACT_NOTIFY\"}", -ENOTSUP, &err));
}

TEST(a_broken_comparison_is_an_error)
{
    struct err err = ERR_INIT;

    assert_null(compile("{\"names\":[\"personality\"],\"action\":\"SCMP_ACT_ERRNO\","
                        "\"args\":[{\"index\":6,\"value\":8,\"op\":\"SCMP_CMP_EQ\"}]}",
        -EINVAL, &err));
    assert_string_equal(err_text(&err), "libseccomp cannot compile the profile: Invalid argument");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forbidden_call_fails_with_its_errno_and_others_work),
        cmocka_unit_test(an_argument_decides),
        cmocka_unit_test(of_two_comparisons_of_one_argument_either_is_enough),
        cmocka_unit_test(what_is_not_a_program_alone_is_left_to_the_runtime),
        cmocka_unit_test(a_broken_comparison_is_an_error),
    };

    return RUN_TESTS(tests);
}
