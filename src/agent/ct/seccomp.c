/*
 * Conversion of a seccomp profile. Rules whose condition does not hold here are left out, and rules
 * that differ in their names only become one. The first rule of libseccomp for a system call
 * without arguments wins, so their order is kept.
 */
#include "agent/ct/seccomp.h"

#include <sys/utsname.h>

#include "base/fs.h"
#include "base/str.h"

#define PROFILE_MAX (1 << 20)

/* The machine as the profile names it, twice: archMap's word and the rules'. */
#if defined(__x86_64__)
#define ARCH_SCMP "SCMP_ARCH_X86_64"
#define ARCH_RULE "amd64"
#elif defined(__aarch64__)
#define ARCH_SCMP "SCMP_ARCH_AARCH64"
#define ARCH_RULE "arm64"
#else
#error "name this architecture as containers-seccomp.json(5) does"
#endif

static bool has_cap(const char *const *caps, const char *cap)
{
    for (; *caps; caps++)
        if (str_eq(*caps, cap))
            return true;
    return false;
}

static bool any_cap(const json_t *list, const char *const *caps)
{
    size_t i;
    json_t *v;

    json_array_foreach ((json_t *)list, i, v)
        if (json_is_string(v) && has_cap(caps, json_string_value(v)))
            return true;
    return false;
}

static bool all_caps(const json_t *list, const char *const *caps)
{
    size_t i;
    json_t *v;

    json_array_foreach ((json_t *)list, i, v)
        if (!json_is_string(v) || !has_cap(caps, json_string_value(v)))
            return false;
    return true;
}

static bool has_arch(const json_t *list)
{
    size_t i;
    json_t *v;

    json_array_foreach ((json_t *)list, i, v)
        if (json_is_string(v) && str_eq(json_string_value(v), ARCH_RULE))
            return true;
    return false;
}

static bool kernel_is_at_least(const char *want)
{
    struct utsname u;
    unsigned have_major = 0, have_minor = 0, major = 0, minor = 0;

    if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &have_major, &have_minor) != 2 ||
        sscanf(want, "%u.%u", &major, &minor) != 2)
        return false;
    return have_major > major || (have_major == major && have_minor >= minor);
}

/* All that is named must hold. */
static bool is_included(const json_t *rule, const char *const *caps)
{
    const json_t *in = json_object_get(rule, "includes");
    const json_t *arches = json_object_get(in, "arches");
    const char *kernel = json_string_value(json_object_get(in, "minKernel"));

    return all_caps(json_object_get(in, "caps"), caps) &&
        (json_array_size(arches) == 0 || has_arch(arches)) &&
        (!kernel || kernel_is_at_least(kernel));
}

/* Any that is named is enough. */
static bool is_excluded(const json_t *rule, const char *const *caps)
{
    const json_t *ex = json_object_get(rule, "excludes");
    const char *kernel = json_string_value(json_object_get(ex, "minKernel"));

    return any_cap(json_object_get(ex, "caps"), caps) || has_arch(json_object_get(ex, "arches")) ||
        (kernel && kernel_is_at_least(kernel));
}

static json_t *copy_args(const json_t *args)
{
    static const char *const keys[] = {"index", "value", "valueTwo", "op"};
    json_t *out = json_array();
    size_t i;
    json_t *arg;

    json_array_foreach ((json_t *)args, i, arg) {
        json_t *o = json_object();

        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            if (json_object_get(arg, keys[k]))
                json_object_set(o, keys[k], json_object_get(arg, keys[k]));
        json_array_append_new(out, o);
    }
    return out;
}

/* The rule as OCI knows it; NULL if it has no names or no action. */
static json_t *copy_rule(const json_t *rule)
{
    json_t *names = json_object_get(rule, "names"), *action = json_object_get(rule, "action");
    json_t *code = json_object_get(rule, "errnoRet"), *args = json_object_get(rule, "args");
    json_t *out;

    if (json_array_size(names) == 0 || !json_is_string(action))
        return NULL;
    out = json_object();
    json_object_set_new(out, "names", json_copy(names));
    json_object_set(out, "action", action);
    if (json_is_integer(code))
        json_object_set(out, "errnoRet", code);
    if (json_array_size(args) > 0)
        json_object_set_new(out, "args", copy_args(args));
    return out;
}

static bool is_same_but_names(const json_t *a, const json_t *b)
{
    return a && !json_object_get(a, "args") && !json_object_get(b, "args") &&
        json_equal(json_object_get(a, "action"), json_object_get(b, "action")) &&
        ((!json_object_get(a, "errnoRet") && !json_object_get(b, "errnoRet")) ||
            json_equal(json_object_get(a, "errnoRet"), json_object_get(b, "errnoRet")));
}

static int convert_rules(const json_t *rules, const char *const *caps, json_t *out, struct err *err)
{
    json_t *rule, *last = NULL;
    size_t i;

    json_array_foreach ((json_t *)rules, i, rule) {
        json_t *copy;

        if (!is_included(rule, caps) || is_excluded(rule, caps))
            continue;
        copy = copy_rule(rule);
        if (!copy)
            return err_set(err, -EINVAL, "rule %zu has no 'names' or no 'action'", i);
        if (is_same_but_names(last, copy)) {
            json_array_extend(json_object_get(last, "names"), json_object_get(copy, "names"));
            json_decref(copy);
            continue;
        }
        json_array_append_new(out, copy);
        last = copy;
    }
    return 0;
}

static json_t *architectures(const json_t *profile)
{
    json_t *out = json_pack("[s]", ARCH_SCMP), *entry;
    size_t i;

    json_array_foreach (json_object_get(profile, "archMap"), i, entry)
        if (str_eq(json_string_value(json_object_get(entry, "architecture")), ARCH_SCMP))
            json_array_extend(out, json_object_get(entry, "subArchitectures"));
    return out;
}

int seccomp_convert(const json_t *profile, const char *const *caps, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *rules = json_array(), *out = NULL;
    json_t *action = json_object_get(profile, "defaultAction");
    json_t *code = json_object_get(profile, "defaultErrnoRet");
    int r;

    if (!json_is_string(action) || !json_is_array(json_object_get(profile, "syscalls")))
        return err_set(err, -EINVAL, "not a seccomp profile: no 'defaultAction' or 'syscalls'");
    r = convert_rules(json_object_get(profile, "syscalls"), caps, rules, err);
    if (r < 0)
        return r;
    out = json_object();
    json_object_set(out, "defaultAction", action);
    if (json_is_integer(code))
        json_object_set(out, "defaultErrnoRet", code);
    json_object_set_new(out, "architectures", architectures(profile));
    json_object_set(out, "syscalls", rules);
    *ret = TAKE_PTR(out);
    return 0;
}

int seccomp_load(const char *path, const char *const *caps, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *profile = NULL;
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r;

    r = fs_read(path, PROFILE_MAX, &text, &len, err);
    if (r == 0)
        r = json_parse(text, len, PROFILE_MAX, &profile, err);
    if (r == 0)
        r = seccomp_convert(profile, caps, ret, err);
    return r < 0 && err ? err_prefix(err, "seccomp profile '%s'", path) : r;
}
