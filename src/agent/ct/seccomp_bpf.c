/*
 * Compilation of a seccomp profile. libseccomp takes one comparison of an argument in a rule, so
 * several of the same argument become rules of their own, any of which is enough: so read them crun
 * and runc.
 */
#include "agent/ct/seccomp_bpf.h"

#include <ctype.h>
#include <seccomp.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/str.h"

#define ARGS_MAX 6                   /* of a system call */
#define PROGRAM_MAX_BYTES (4096 * 8) /* BPF_MAXINSNS of the kernel, struct sock_filter */

static int action_of(const json_t *o, const char *key, const char *code_key, uint32_t *ret)
{
    /* clang-format off */
    static const struct { const char *name; uint32_t action; } actions[] = {
        { "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW }, { "SCMP_ACT_LOG", SCMP_ACT_LOG },
        { "SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD }, { "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
        { "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS }, { "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
    };
    /* clang-format on */
    const char *name = json_str_or(o, key, "");
    json_int_t code = json_integer_value(json_object_get(o, code_key));

    if (str_eq(name, "SCMP_ACT_ERRNO")) {
        *ret = SCMP_ACT_ERRNO((uint32_t)(json_object_get(o, code_key) ? code : EPERM));
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (str_eq(name, actions[i].name)) {
            *ret = actions[i].action;
            return 0;
        }
    return -ENOTSUP;
}

static int comparison_of(const json_t *o, struct scmp_arg_cmp *ret)
{
    /* clang-format off */
    static const struct { const char *name; enum scmp_compare op; } ops[] = {
        { "SCMP_CMP_NE", SCMP_CMP_NE }, { "SCMP_CMP_LT", SCMP_CMP_LT },
        { "SCMP_CMP_LE", SCMP_CMP_LE }, { "SCMP_CMP_EQ", SCMP_CMP_EQ },
        { "SCMP_CMP_GE", SCMP_CMP_GE }, { "SCMP_CMP_GT", SCMP_CMP_GT },
        { "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
    };
    /* clang-format on */
    json_int_t index = json_integer_value(json_object_get(o, "index"));
    const char *name = json_str_or(o, "op", "");

    for (size_t i = 0; i < ARRAY_LEN(ops) && index >= 0 && index < ARGS_MAX; i++)
        if (str_eq(name, ops[i].name)) {
            *ret = (struct scmp_arg_cmp){
                .arg = (unsigned)index,
                .op = ops[i].op,
                .datum_a = (scmp_datum_t)json_integer_value(json_object_get(o, "value")),
                .datum_b = (scmp_datum_t)json_integer_value(json_object_get(o, "valueTwo")),
            };
            return 0;
        }
    return -EINVAL;
}

/* The rule's comparisons; *ret_repeats: two are of one argument. The number, or -EINVAL. */
static int comparisons(const json_t *args, struct scmp_arg_cmp list[ARGS_MAX], bool *ret_repeats)
{
    unsigned seen = 0;
    int n = 0;
    size_t i;
    json_t *arg;

    *ret_repeats = false;
    json_array_foreach ((json_t *)args, i, arg) {
        if (n == ARGS_MAX || comparison_of(arg, &list[n]) < 0)
            return -EINVAL;
        *ret_repeats |= (seen & 1u << list[n].arg) != 0;
        seen |= 1u << list[n++].arg;
    }
    return n;
}

static int add_call(scmp_filter_ctx ctx, uint32_t action, int call, const struct scmp_arg_cmp *list,
    int count, bool apart)
{
    int r = 0;

    if (!apart)
        return seccomp_rule_add_array(ctx, action, call, (unsigned)count, list);
    for (int i = 0; r == 0 && i < count; i++)
        r = seccomp_rule_add_array(ctx, action, call, 1, &list[i]);
    return r;
}

static int add_rule(scmp_filter_ctx ctx, uint32_t usual, const json_t *rule)
{
    struct scmp_arg_cmp list[ARGS_MAX];
    uint32_t action;
    bool apart;
    int count = comparisons(json_object_get(rule, "args"), list, &apart);
    int r = count < 0 ? count : action_of(rule, "action", "errnoRet", &action);
    size_t i;
    json_t *name;

    if (r < 0 || action == usual) /* libseccomp refuses what changes nothing */
        return r;
    json_array_foreach (json_object_get(rule, "names"), i, name) {
        int call = seccomp_syscall_resolve_name(json_string_value(name));

        if (call != __NR_SCMP_ERROR)
            r = add_call(ctx, action, call, list, count, apart);
        if (r < 0)
            return r;
    }
    return 0;
}

/* "SCMP_ARCH_X86_64" is "x86_64" to libseccomp. */
static int add_architectures(scmp_filter_ctx ctx, const json_t *list)
{
    size_t i;
    json_t *v;

    json_array_foreach ((json_t *)list, i, v) {
        const char *name = json_string_value(v);
        char lower[32];
        uint32_t token;
        int r;

        if (!name || !str_starts(name, "SCMP_ARCH_"))
            return -EINVAL;
        str_copy(lower, sizeof(lower), name + strlen("SCMP_ARCH_"));
        for (char *c = lower; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        token = seccomp_arch_resolve_name(lower);
        r = token ? seccomp_arch_add(ctx, token) : -EINVAL;
        if (r < 0 && r != -EEXIST)
            return r;
    }
    return 0;
}

static int fill(scmp_filter_ctx ctx, uint32_t usual, const json_t *oci)
{
    int r = add_architectures(ctx, json_object_get(oci, "architectures"));
    size_t i;
    json_t *rule;

    /* A search tree over the numbers, not a list of all: every system call passes here. */
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    json_array_foreach (json_object_get(oci, "syscalls"), i, rule)
        if (r == 0)
            r = add_rule(ctx, usual, rule);
    return r;
}

static int export(scmp_filter_ctx ctx, char **ret)
{
    _cleanup_close_ int fd = memfd_create("seccomp", MFD_CLOEXEC);
    _cleanup_free_ unsigned char *program = NULL;
    struct stat st;
    size_t room;
    int r = fd < 0 ? -errno : seccomp_export_bpf(ctx, fd);

    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size <= 0 || st.st_size > PROGRAM_MAX_BYTES)
        return -E2BIG;
    program = xnew_array(unsigned char, (size_t)st.st_size);
    if (pread(fd, program, (size_t)st.st_size, 0) != st.st_size)
        return -EIO;
    room = sodium_base64_encoded_len((size_t)st.st_size, sodium_base64_VARIANT_ORIGINAL);
    *ret = xnew_array(char, room);
    sodium_bin2base64(*ret, room, program, (size_t)st.st_size, sodium_base64_VARIANT_ORIGINAL);
    return 0;
}

int seccomp_bpf(const json_t *oci, char **ret, struct err *err)
{
    scmp_filter_ctx ctx;
    uint32_t usual;
    int r;

    if (json_object_get(oci, "flags") || json_object_get(oci, "listenerPath"))
        return err_set(err, -ENOTSUP, "the profile asks for more than a program");
    r = action_of(oci, "defaultAction", "defaultErrnoRet", &usual);
    if (r < 0)
        return err_set(err, r, "the profile's default action is not known");
    ctx = seccomp_init(usual);
    if (!ctx)
        return err_set(err, -ENOMEM, "libseccomp cannot start");
    r = fill(ctx, usual, oci);
    if (r == 0)
        r = export(ctx, ret);
    seccomp_release(ctx);
    return r < 0 ? err_sys(err, r, "libseccomp cannot compile the profile") : 0;
}
