/* What a request may say, and what it is answered. */
#include "base/strv.h"
#include "model/session.h"
#include "support/cm.h"

static struct session *good(void)
{
    struct session *s = session_new();

    STR_SET(s->name, "try");
    STR_SET(s->group, "default");
    STR_SET(s->image, "base");
    s->size = 2;
    s->each = (struct resources){.cpu_milli = 1000, .mem = UINT64_C(2) << 30};
    s->shm = 64 << 20;
    return s;
}

static void add_mount(struct session *s, const char *volume, const char *path)
{
    s->mounts = reallocarray(s->mounts, s->mount_count + 1, sizeof(*s->mounts));
    assert_non_null(s->mounts);
    s->mounts[s->mount_count] = (struct session_mount){0};
    STR_SET(s->mounts[s->mount_count].volume, volume);
    STR_SET(s->mounts[s->mount_count].path, path);
    s->mount_count++;
}

#define REQUEST(change, text) \
    do { \
        _cleanup_(session_freep) struct session *s = good(); \
        change; \
        assert_fails(session_request_check(s, false, &err), -EINVAL, text); \
    } while (0)
#define REQUEST_OK(change) \
    do { \
        _cleanup_(session_freep) struct session *s = good(); \
        change; \
        assert_works(session_request_check(s, false, &err)); \
    } while (0)

static void a_plain_request_is_taken(void **state)
{
    REQUEST_OK((void)0);
    REQUEST_OK(s->name[0] = '\0');
    REQUEST_OK(STR_SET(s->image, "registry.example.com:5000/team/torch:2.3@sha256:abc"));
    REQUEST_OK(STR_SET(s->workdir, "/home/work/x"));
    REQUEST_OK(s->each.gpus = 8; STR_SET(s->gpu_model, "h100"));
    REQUEST_OK(s->each.gpus = 8; STR_SET(s->gpu_model, "h100|a100"));
}

static void names_that_mean_something_else_are_refused(void **state)
{
    REQUEST(STR_SET(s->name, "12"),
        "'name' must have something beside digits ('12' would read as a job number)");
    REQUEST(STR_SET(s->name, "99999999999999999999999"),
        "'name' must have something beside digits ('99999999999999999999999' would read as a job "
        "number)");
    REQUEST(STR_SET(s->name, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111"),
        "'name' must not have the form of a session id");
    REQUEST(STR_SET(s->name, "-x"), "'name' '-x' must start with a letter or digit");
}

static void resources_out_of_range_are_refused(void **state)
{
    REQUEST(s->size = 0, "'size' must be a whole number from 1 to 1000, not 0");
    REQUEST(s->size = 1001, "'size' must be a whole number from 1 to 1000, not 1001");
    REQUEST(s->each.cpu_milli = 9, "'cpus' must be a number from 0.01 to 4096");
    REQUEST(s->each.cpu_milli = 4096001, "'cpus' must be a number from 0.01 to 4096");
    REQUEST(s->each.mem = 1 << 20, "'mem' must be from 16 MiB to 1024 TiB, not 1 MiB");
    REQUEST(s->each.mem = UINT64_C(1) << 51, "'mem' must be from 16 MiB to 1024 TiB, not 2 PiB");
    REQUEST(s->shm = 0,
        "'shm' must be from 64 KiB to what 'mem' is (2 GiB, of which it is a part), not 0 B");
    REQUEST(s->shm = UINT64_C(3) << 30,
        "'shm' must be from 64 KiB to what 'mem' is (2 GiB, of which it is a part), not 3 GiB");
    REQUEST(s->each.gpus = 65, "'gpus' must be a whole number from 0 to 64, not 65");
    REQUEST(STR_SET(s->gpu_model, "h100"), "'gpu_model' is 'h100', but 'gpus' is 0: say how many");
    REQUEST(s->each.gpus = 1;
            STR_SET(s->gpu_model, "H100"), "'gpu_model' must be in lower case, not 'H100'");
}

static void images_are_references_and_never_options(void **state)
{
    REQUEST(s->image[0] = '\0', "'image' is missing: name the image to run");
    REQUEST(STR_SET(s->image, "--root=/"), "'image' must start with a letter or digit");
    REQUEST(STR_SET(s->image, "a b"),
        "'image' must be like 'registry/name:tag': letters, digits and ._-/:@+[] only");
    REQUEST(STR_SET(s->image, "a;rm"),
        "'image' must be like 'registry/name:tag': letters, digits and ._-/:@+[] only");
}

static void a_command_is_whole_or_not_there(void **state)
{
    _cleanup_(session_freep) struct session *train = good();

    REQUEST(strv_push(&s->command, ""), "'command' must begin with a program, not an empty word");
    REQUEST(s->kind = KIND_TRAIN,
        "a 'train' session needs a 'command', since image 'base' has none of its own");
    REQUEST_OK(s->kind = KIND_TRAIN; strv_push(&s->command, "true"));
    REQUEST_OK(strv_push(&s->command, "true"); strv_push(&s->command, ""));
    train->kind = KIND_TRAIN;
    assert_works(session_request_check(train, true, &err));
}

static void fill_command(struct session *s, size_t words, size_t length)
{
    _cleanup_free_ char *word = xcalloc(1, length + 1);

    memset(word, 'x', length);
    for (size_t i = 0; i < words; i++)
        strv_push(&s->command, word);
}

static void a_command_is_bounded(void **state)
{
    REQUEST_OK(fill_command(s, SESSION_COMMAND_MAX, 1));
    REQUEST(fill_command(s, SESSION_COMMAND_MAX + 1, 1),
        "'command' has 4097 words; at most 4096 are taken");
    REQUEST_OK(fill_command(s, 1, 128 * 1024 - 1));
    REQUEST(fill_command(s, 1, 128 * 1024),
        "'command' and 'env' together have 131073 bytes; at most 131072 are taken (put what is "
        "longer in a file on a volume)");
}

static void identity_is_not_for_the_user_to_set(void **state)
{
    REQUEST(strv_push(&s->env, "BACKENDAI_CLUSTER_SIZE=9"),
        "'env' must not set 'BACKENDAI_CLUSTER_SIZE': BACKENDAI_* and MUSTER_* say what a "
        "container "
        "is, and Muster sets them");
    REQUEST(strv_push(&s->env, "MUSTER_JOB_ID=9"),
        "'env' must not set 'MUSTER_JOB_ID': BACKENDAI_* and MUSTER_* say what a container is, and "
        "Muster sets them");
    REQUEST_OK(strv_push(&s->env, "MASTER_PORT=1234"); strv_push(&s->env, "MUSTERD=1"));
}

static void environment_names_are_names(void **state)
{
    REQUEST(strv_push(&s->env, "1A=b"),
        "'env' name '1A' must be letters, digits and '_', and not start with a digit");
    REQUEST(strv_push(&s->env, "A B=c"),
        "'env' name 'A B' must be letters, digits and '_', and not start with a digit");
    REQUEST(strv_push(&s->env, "=c"),
        "'env' name '' must be letters, digits and '_', and not start with a digit");
    REQUEST(strv_push(&s->env, "A"), "'env' entry 'A' has no value");
    REQUEST(strv_push(&s->env, "A=1"); strv_push(&s->env, "A=2"), "'env' sets 'A' twice");
    REQUEST_OK(strv_push(&s->env, "A="); strv_push(&s->env, "AB=x=y");
               strv_push(&s->env, "_a9=\n"));
}

static void mounts_stay_off_each_other_and_off_ours(void **state)
{
    static const char *const ours[] = {"/etc/muster", "/etc/muster/x", "/etc", "/opt/muster",
        "/opt", "/proc", "/proc/sys", "/sys", "/dev", "/dev/shm", "/etc/passwd"};

    REQUEST_OK(add_mount(s, "data", "/data"); add_mount(s, "data", "/data2");
               add_mount(s, "home", "/home/work"));
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        _cleanup_(session_freep) struct session *s = good();
        struct err err = ERR_INIT;

        add_mount(s, "v", ours[i]);
        assert_int_equal(session_request_check(s, false, &err), -EINVAL);
        assert_non_null(strstr(err.text, "is Muster's; take another path"));
    }
    REQUEST(add_mount(s, "v", "/"), "a volume cannot be mounted on '/'");
    REQUEST(add_mount(s, "a", "/data"); add_mount(s, "b", "/data"),
            "mounts '/data' and '/data' lie on each other; put them side by side");
    REQUEST(add_mount(s, "a", "/data/x"); add_mount(s, "b", "/data"),
            "mounts '/data/x' and '/data' lie on each other; put them side by side");
    REQUEST(add_mount(s, "a", "/data/../etc"),
        "'path' of a mount must be an absolute path without '.', '..' or a '/' at its end, not "
        "'/data/../etc'");
    REQUEST(add_mount(s, "../x", "/data"),
        "'volume' of a mount '../x' must start with a letter or digit");
}

static void times_and_folders_are_bounded(void **state)
{
    REQUEST(s->time_limit_usec = UINT64_MAX / 2,
        "'time_limit' must be 10 years at most, not "
        "106751991d 4h");
    REQUEST(
        s->grace_usec = UINT64_C(3601) * 1000000, "'grace' must be 3600 seconds at most, not 3601");
    REQUEST(STR_SET(s->workdir, "home"),
        "'workdir' must be an absolute path without '.', '..' or a '/' at its end, not 'home'");
    REQUEST(
        STR_SET(s->group, "a b"), "'group' 'a b' may have only letters, digits, '-', '_' and '.'");
    REQUEST(s->group[0] = '\0', "'group' is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_request_is_taken),
        cmocka_unit_test(names_that_mean_something_else_are_refused),
        cmocka_unit_test(resources_out_of_range_are_refused),
        cmocka_unit_test(images_are_references_and_never_options),
        cmocka_unit_test(a_command_is_whole_or_not_there),
        cmocka_unit_test(a_command_is_bounded),
        cmocka_unit_test(identity_is_not_for_the_user_to_set),
        cmocka_unit_test(environment_names_are_names),
        cmocka_unit_test(mounts_stay_off_each_other_and_off_ours),
        cmocka_unit_test(times_and_folders_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
