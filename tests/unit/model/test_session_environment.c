/* What containers see: environment, hosts, hostfile, against files that can be read. */
#include "base/strv.h"
#include "model/session.h"
#include "support/cm.h"
#include "support/golden.h"

static struct session *make(uint32_t size)
{
    struct session *s = session_new();

    STR_SET(s->id, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111");
    s->num = 42;
    STR_SET(s->name, "train-7b");
    s->size = size;
    s->each = (struct resources){.cpu_milli = 2500, .mem = UINT64_C(4) << 30};
    s->placed_mode = size > 1 ? MODE_MULTI_NODE : MODE_SINGLE_NODE;
    s->master_port = 29613;
    session_make_containers(s);
    for (uint32_t i = 0; i < size; i++) {
        s->containers[i].ip = 0x0a800002 + i;
        snprintf(s->containers[i].id, sizeof(s->containers[i].id),
            "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a%x", 0x111 + i);
    }
    return s;
}

static void check_environment(const struct session *s, uint32_t rank, char *const *image_env,
    const char *gpu_uuids, const char *golden)
{
    _cleanup_(strv_freep) char **env = NULL;
    _cleanup_free_ char *joined = NULL, *text = NULL;

    env = session_environment(s, &s->containers[rank], image_env, gpu_uuids);
    joined = strv_join(env, "\n");
    text = xasprintf("%s\n", joined);
    assert_true(golden_equals(GOLDEN_DIR, golden, text));
}

static void one_container_sees_itself(void **state)
{
    _cleanup_(session_freep) struct session *s = make(1);

    check_environment(s, 0, NULL, NULL, "env-size1-main1.txt");
}

static void one_of_twelve_sees_all_in_numeric_order(void **state)
{
    _cleanup_(session_freep) struct session *s = make(12);

    check_environment(s, 0, NULL, NULL, "env-size12-main1.txt");
    check_environment(s, 10, NULL, NULL, "env-size12-sub10.txt");
}

/* The image sets what is ours, the user changes a launcher's default, both try to set identity. */
static void each_layer_replaces_the_one_below(void **state)
{
    static char *const image_env[] = {"PATH=/opt/conda/bin:/usr/bin", "HOME=/root",
        "LANG=ko_KR.UTF-8", "CUDA_VERSION=12.4", "BACKENDAI_CLUSTER_ROLE=sub",
        "NVIDIA_VISIBLE_DEVICES=all", "broken", "=nameless", "EMPTY=", "DUP=1", "DUP=2", NULL};
    _cleanup_(session_freep) struct session *s = make(2);

    strv_push(&s->env, "OMP_NUM_THREADS=16");
    strv_push(&s->env, "CUDA_VERSION=12.5");
    strv_push(&s->env, "MUSTER_JOB_ID=1");
    strv_push(&s->env, "EXTRA=a=b c");
    check_environment(s, 1, image_env, "GPU-1,GPU-2", "env-layers.txt");
    check_environment(s, 1, image_env, "", "env-layers-no-gpu.txt");
}

static void a_user_may_choose_the_path(void **state)
{
    _cleanup_(session_freep) struct session *s = make(1);
    _cleanup_(strv_freep) char **env = NULL;

    strv_push(&s->env, "PATH=/mine");
    env = session_environment(s, &s->containers[0], NULL, NULL);
    assert_string_equal(strv_env_get(env, "PATH"), "/mine");
}

static void threads_are_at_least_one(void **state)
{
    _cleanup_(session_freep) struct session *s = make(1);
    _cleanup_(strv_freep) char **env = NULL;

    s->each.cpu_milli = 500;
    env = session_environment(s, &s->containers[0], NULL, NULL);
    assert_string_equal(strv_env_get(env, "OMP_NUM_THREADS"), "1");
}

static void check_refused(
    const struct session *s, char *const *image_env, char *const *command, const char *says)
{
    struct err err = ERR_INIT;

    assert_int_equal(session_environment_check(s, image_env, command, &err), -EINVAL);
    assert_non_null(strstr(err_text(&err), says));
}

/* What passes must fit an order: the environment as it will be, with all of the names in it. */
static void what_an_order_cannot_take_is_refused(void **state)
{
    _cleanup_(session_freep) struct session *s = make(1000);
    _cleanup_(strv_freep) char **image = NULL, **env = NULL, **command = NULL;
    _cleanup_free_ char *value = xcalloc(1, 32768), *joined = NULL;

    memset(value, 'x', 32767);
    for (int i = 0; i < 4; i++)
        strv_pushf(&image, "K%d=%.*s", i, i < 3 ? 32764 : 10000, value);
    assert_int_equal(session_environment_check(s, image, NULL, NULL), 0);
    env = session_environment(s, &s->containers[999], image, NULL);
    joined = strv_join(env, "\n");
    assert_true(strlen(joined) < CONTAINER_ENV_BYTES_MAX - 2000);
    strv_pushf(&s->env, "MORE=%.1000s", value);
    check_refused(s, image, NULL, "have 109324 bytes; at most 108880");
    s->env[0][100] = '"';
    check_refused(s, image, NULL, "have 109325 bytes");
    strv_free(TAKE_PTR(image));
    for (int i = 0; i < CONTAINER_ENV_MAX - 64 - 1; i++)
        strv_pushf(&image, "K%d=", i);
    assert_int_equal(session_environment_check(s, image, NULL, NULL), 0);
    strv_push(&image, "ONE=more");
    check_refused(s, image, NULL, "set 1985 variables; at most 1984");
    for (int i = 0; i < 9; i++)
        strv_push(&command, value);
    check_refused(s, NULL, command, "9 words of 294912 bytes");
}

static void hosts_have_every_container_by_rank(void **state)
{
    _cleanup_(session_freep) struct session *s = make(12);
    _cleanup_free_ char *text = session_hosts(s);

    assert_true(golden_equals(GOLDEN_DIR, "hosts-size12.txt", text));
}

static void slots_are_gpus_or_whole_cpus_or_one(void **state)
{
    _cleanup_(session_freep) struct session *s = make(2);
    _cleanup_free_ char *cpus = NULL, *gpus = NULL, *less = NULL;

    cpus = session_hostfile(s);
    assert_string_equal(cpus, "main1 slots=2\nsub1 slots=2\n");
    s->each.gpus = 8;
    gpus = session_hostfile(s);
    assert_string_equal(gpus, "main1 slots=8\nsub1 slots=8\n");
    s->each.gpus = 0;
    s->each.cpu_milli = 100;
    less = session_hostfile(s);
    assert_string_equal(less, "main1 slots=1\nsub1 slots=1\n");
}

static void a_thousand_containers_have_whole_files(void **state)
{
    _cleanup_(session_freep) struct session *s = make(1000);
    _cleanup_free_ char *hosts = session_hosts(s), *hostfile = session_hostfile(s);

    assert_non_null(strstr(hosts, "\n10.128.3.233 sub999\n"));
    assert_non_null(strstr(hostfile, "\nsub999 slots=2\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_container_sees_itself),
        cmocka_unit_test(one_of_twelve_sees_all_in_numeric_order),
        cmocka_unit_test(each_layer_replaces_the_one_below),
        cmocka_unit_test(a_user_may_choose_the_path),
        cmocka_unit_test(threads_are_at_least_one),
        cmocka_unit_test(what_an_order_cannot_take_is_refused),
        cmocka_unit_test(hosts_have_every_container_by_rank),
        cmocka_unit_test(slots_are_gpus_or_whole_cpus_or_one),
        cmocka_unit_test(a_thousand_containers_have_whole_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
