#include "agent/ct/oci.h"
#include "base/strv.h"
#include "fixture.h"

static char dir[UNIT_DIR_MAX];
static struct runtime rt;

static int setup(void **state UNUSED)
{
    char path[128];

    unit_dir_init(dir);
    rt = (struct runtime){.dirs = {.run = "/run/m", .state = "/var/m", .guest = "/usr/lib/m"},
        .cgroup = "muster/x",
        .pids_max = 321,
        .crun = "/usr/bin/crun",
        .shim = "/usr/bin/muster-runtime",
        .root = "/run/m/crun"};
    snprintf(path, sizeof(path), "%s/seccomp.json", dir);
    unit_write(path, "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": []}");
    snprintf(rt.seccomp, sizeof(rt.seccomp), "%s", path);
    return runtime_open(&rt, NULL);
}

static int teardown(void **state UNUSED)
{
    runtime_close(&rt);
    unit_dir_done(dir);
    return 0;
}

static json_t *config(const struct runtime_extra *extra)
{
    struct err err = ERR_INIT;
    json_t *doc = NULL;

    assert_ok(
        runtime_config(&rt, &fixture, &fixture_container, "/run/m/netns/n", extra, &doc, &err),
        &err);
    return doc;
}

static void assert_json(const json_t *have, const char *want)
{
    _cleanup_free_ char *text = json_text(have);

    assert_string_equal(text, want);
}

static const json_t *find_mount(const json_t *doc, const char *target)
{
    const json_t *mounts = json_object_get(doc, "mounts"), *found = NULL;

    for (size_t i = 0; i < json_array_size(mounts); i++)
        if (strcmp(json_str_or(json_array_get(mounts, i), "destination", ""), target) == 0)
            found = json_array_get(mounts, i);
    assert_non_null(found);
    return found;
}

TEST(limits_are_what_was_asked)
{
    json_t *doc = config(NULL);
    json_t *res = json_object_get(json_object_get(doc, "linux"), "resources");

    assert_json(
        json_object_get(res, "cpu"), "{\"quota\":150000,\"period\":100000,\"shares\":1536}");
    assert_int_equal(json_u64_or(json_object_get(res, "memory"), "limit", 0), 1 << 30);
    assert_json(json_object_get(res, "pids"), "{\"limit\":321}");
    assert_json(json_object_get(res, "devices"), "[{\"allow\":false,\"access\":\"rwm\"}]");
    assert_string_equal(json_str_or(json_object_get(doc, "linux"), "cgroupsPath", ""),
        "/muster/x/" SESSION_ID "/" CONTAINER_ID);
    json_decref(doc);
}

TEST(ids_and_namespaces_are_the_containers_own)
{
    json_t *doc = config(NULL), *part = json_object_get(doc, "linux");

    assert_json(json_object_get(part, "uidMappings"),
        "[{\"containerID\":0,\"hostID\":268435456,\"size\":1000},"
        "{\"containerID\":1000,\"hostID\":20001,\"size\":1},"
        "{\"containerID\":1001,\"hostID\":268436457,\"size\":64535}]");
    assert_true(
        json_equal(json_object_get(part, "uidMappings"), json_object_get(part, "gidMappings")));
    assert_json(json_object_get(part, "namespaces"),
        "[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"mount\"},"
        "{\"type\":\"cgroup\"},{\"type\":\"user\"},"
        "{\"type\":\"network\",\"path\":\"/run/m/netns/n\"}]");
    json_decref(doc);
}

TEST(the_mounts_lie_in_their_order)
{
    json_t *doc = config(NULL), *mounts = json_object_get(doc, "mounts");
    int dev = -1, pts = -1, etc = -1, record = -1;

    for (int i = 0; i < (int)json_array_size(mounts); i++) {
        const char *to = json_str_or(json_array_get(mounts, i), "destination", "");

        dev = strcmp(to, "/dev") == 0 ? i : dev;
        pts = strcmp(to, "/dev/pts") == 0 ? i : pts;
        etc = strcmp(to, "/etc/muster") == 0 ? i : etc;
        record = strcmp(to, "/etc/muster/record") == 0 ? i : record;
    }
    assert_true(dev >= 0 && dev < pts && pts < etc);
    assert_true(etc >= 0 && etc < record);
    assert_json(json_object_get(find_mount(doc, "/dev/shm"), "options"),
        "[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=16777216\"]");
    json_decref(doc);
}

TEST(devices_are_bound_and_allowed_one_by_one)
{
    struct device d = {"/run/m/dev/nvidia3", "/dev/nvidia3", 195, 3};
    char *mounts[] = {(char *)"/usr/lib/libcuda.so.1:/usr/lib/libcuda.so.1", NULL};
    struct runtime_extra extra = {.devices = &d, .device_count = 1, .mounts = mounts};
    json_t *doc = config(&extra);

    assert_json(
        json_object_get(json_object_get(json_object_get(doc, "linux"), "resources"), "devices"),
        "[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"c\",\"major\":195,"
        "\"minor\":3,\"access\":\"rw\"}]");
    assert_json(find_mount(doc, "/dev/nvidia3"),
        "{\"destination\":\"/dev/nvidia3\",\"type\":\"bind\",\"source\":\"/run/m/dev/nvidia3\","
        "\"options\":[\"bind\",\"rprivate\",\"nosuid\",\"noexec\"]}");
    assert_json(json_object_get(find_mount(doc, "/usr/lib/libcuda.so.1"), "options"),
        "[\"bind\",\"rprivate\",\"ro\",\"nosuid\",\"nodev\"]");
    json_decref(doc);
}

TEST(a_container_without_memory_is_refused)
{
    struct assignment a = fixture;
    struct err err;
    json_t *doc = NULL;

    a.each.mem = 0;
    assert_fails(runtime_config(&rt, &a, &fixture_container, "/n", NULL, &doc, &err), &err, -EINVAL,
        "a container needs CPU and memory");
    assert_null(doc);
}

TEST(without_a_seccomp_profile_nothing_starts)
{
    struct runtime no_profile = rt;
    struct err err;

    snprintf(no_profile.seccomp, sizeof(no_profile.seccomp), "/nonexistent");
    assert_fails(runtime_open(&no_profile, &err), &err, -ENOENT,
        "seccomp profile '/nonexistent': cannot open '/nonexistent': No such file or directory");
}

TEST(the_filter_is_given_compiled_and_as_rules)
{
    json_t *doc = config(NULL);
    const char *bpf = json_str_or(
        json_object_get(doc, "annotations"), "run.oci.seccomp_bpf_data", "");

    assert_non_null(rt.filter);
    assert_true(json_equal(json_object_get(json_object_get(doc, "linux"), "seccomp"), rt.filter));
    assert_string_equal(bpf, rt.filter_bpf);
    json_decref(doc);
}

static json_t *exec_spec(const struct exec_spec *spec)
{
    char path[256], **argv = NULL, *text;
    struct err err = ERR_INIT;
    json_t *doc = NULL;

    snprintf(rt.dirs.run, sizeof(rt.dirs.run), "%s", dir);
    assert_ok(runtime_exec_argv(&rt, CONTAINER_ID, "step-1", spec, &argv, &err), &err);
    snprintf(path, sizeof(path), "%s/exec/step-1.json", dir);
    assert_string_equal(argv[0], "/usr/bin/muster-runtime");
    assert_string_equal(argv[1], "/usr/bin/crun");
    assert_string_equal(argv[7], path);
    assert_string_equal(argv[8], CONTAINER_ID);
    assert_null(argv[9]);
    text = unit_read(path);
    assert_ok(json_parse(text, strlen(text), 1 << 20, &doc, &err), &err);
    runtime_exec_done(&rt, "step-1");
    assert_false(fs_exists(path));
    free(text);
    strv_free(argv);
    return doc;
}

TEST(a_step_runs_as_work_with_no_capability)
{
    struct exec_spec spec = {.command = fixture_command, .env = fixture_env};
    json_t *doc = exec_spec(&spec), *sets = json_object_get(doc, "capabilities");

    assert_json(json_object_get(doc, "user"), "{\"uid\":1000,\"gid\":1000}");
    assert_json(json_object_get(doc, "args"),
        "[\"/opt/muster/bin/muster-init\",\"step\",\"/home/work\",\"/bin/sh\",\"-c\",\"exit 3\"]");
    assert_json(json_object_get(doc, "env"), "[\"A=1\",\"B=two words\"]");
    assert_json(json_object_get(sets, "effective"), "[]");
    assert_int_equal(json_array_size(json_object_get(sets, "bounding")), 9);
    assert_string_equal(json_str_or(doc, "cwd", ""), "/");
    assert_false(json_bool_or(doc, "terminal", true));
    json_decref(doc);
}

TEST(a_login_shell_of_root_is_roots)
{
    struct exec_spec spec = {.root = true, .tty = true, .env = fixture_env, .cwd = "/"};
    json_t *doc = exec_spec(&spec);

    assert_json(json_object_get(doc, "user"), "{\"uid\":0,\"gid\":0}");
    assert_json(json_object_get(doc, "args"),
        "[\"/opt/muster/bin/muster-init\",\"step\",\"/\",\"/bin/sh\",\"-l\"]");
    assert_json(json_object_get(doc, "env"),
        "[\"A=1\",\"B=two words\",\"HOME=/root\",\"USER=root\",\"LOGNAME=root\"]");
    assert_true(json_bool_or(doc, "terminal", false));
    json_decref(doc);
}

TEST(an_exec_id_that_is_a_path_is_refused)
{
    struct exec_spec spec = {0};
    struct err err = ERR_INIT;
    char **argv = NULL;

    assert_int_equal(runtime_exec_argv(&rt, CONTAINER_ID, "../x", &spec, &argv, &err), -EINVAL);
    assert_fails(runtime_exec_argv(&rt, "nonsense", "x", &spec, &argv, &err), &err, -EINVAL,
        "the container's id is not a UUID");
    assert_null(argv);
}

#define OCI_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OCI_TEST(limits_are_what_was_asked),
        OCI_TEST(ids_and_namespaces_are_the_containers_own),
        OCI_TEST(the_mounts_lie_in_their_order),
        OCI_TEST(devices_are_bound_and_allowed_one_by_one),
        OCI_TEST(a_container_without_memory_is_refused),
        OCI_TEST(without_a_seccomp_profile_nothing_starts),
        OCI_TEST(the_filter_is_given_compiled_and_as_rules),
        OCI_TEST(a_step_runs_as_work_with_no_capability),
        OCI_TEST(a_login_shell_of_root_is_roots),
        OCI_TEST(an_exec_id_that_is_a_path_is_refused),
    };

    return RUN_TESTS(tests);
}
