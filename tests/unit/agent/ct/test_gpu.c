#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/ct/cdi_yaml.h"
#include "agent/ct/gpu.h"
#include "agent/ct/gpu_test.h"
#include "agent/ct/nvml.h"
#include "base/strv.h"
#include "unit.h"

static char dir[UNIT_DIR_MAX];
static struct gpu gpus[2] = {
    {.index = 0, .model = "h100", .uuid = "GPU-aaaa"},
    {.index = 1, .model = "h100", .uuid = "GPU-bbbb"},
};
static const uint32_t second[] = {1};

static int setup(void **state UNUSED)
{
    unit_dir_init(dir);
    gpu_set_root(dir);
    return chdir(dir);
}

static int teardown(void **state UNUSED)
{
    gpu_set_root("");
    assert_int_equal(chdir("/"), 0);
    unit_dir_done(dir);
    return 0;
}

static void put(const char *folder, const char *name, const char *text)
{
    struct err err = ERR_INIT;
    char path[128];

    assert_ok(fs_mkdir_p(folder, 0755, &err), &err);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unit_write(path, text);
}

TEST(product_names_become_short)
{
    /* clang-format off */
    static const char *const names[][2] = {
        { "NVIDIA H100 80GB HBM3", "h100" }, { "NVIDIA A100-SXM4-80GB", "a100" },
        { "Tesla V100-SXM2-32GB", "v100" }, { "NVIDIA GeForce RTX 4090", "rtx4090" },
        { "NVIDIA GeForce RTX 3080 Ti", "rtx3080ti" }, { "NVIDIA L40S", "l40s" },
        { "NVIDIA RTX 6000 Ada Generation", "rtx6000ada" }, { "NVIDIA RTX A6000", "rtxa6000" },
        { "NVIDIA GH200 480GB", "gh200" }, { "Quadro RTX 8000", "rtx8000" }, { "", "gpu" },
        { "../../etc", "etc" },
    };
    /* clang-format on */
    char model[NAME_MAX_LEN + 1];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        gpu_model_name(names[i][0], model);
        assert_string_equal(model, names[i][1]);
    }
}

TEST(pretend_gpus_are_the_same_each_time)
{
    struct gpu *a = NULL, *b = NULL, *c = NULL;
    struct err err = ERR_INIT;
    uint32_t n = 0;
    struct stat st;

    if (geteuid() != 0)
        skip();
    assert_ok(gpu_discover("fake:h200:3", "dev", "node1", &a, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_ok(gpu_discover("fake:h200:3", "dev", "node1", &b, &n, &err), &err);
    assert_ok(gpu_discover("fake:h200:3", "dev", "node2", &c, &n, &err), &err);
    assert_string_equal(a[2].uuid, b[2].uuid);
    assert_string_not_equal(a[2].uuid, a[1].uuid);
    assert_string_not_equal(a[2].uuid, c[2].uuid);
    assert_int_equal(strlen(a[0].uuid), 40);
    assert_string_equal(a[0].model, "h200");
    assert_int_equal(a[0].mem, UINT64_C(141) << 30);
    assert_int_equal(stat("dev/nvidia2", &st), 0);
    assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(195, 2));
    assert_int_equal(st.st_mode & 0777, 0666);
    free(a);
    free(b);
    free(c);
}

TEST(a_description_of_gpus_that_is_none_is_refused)
{
    static const char *const bad[] = {"fake", "fakes", "all", ""};
    static const char *const bad_fakes[] = {
        "fake:h100", "fake:h100:0", "fake:h100:65", "fake:h100:x"};
    struct gpu *list = NULL;
    struct err err;
    uint32_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(gpu_discover(bad[i], "dev", "n", &list, &n, &err), -EINVAL);
    for (size_t i = 0; i < ARRAY_LEN(bad_fakes); i++)
        assert_fails(gpu_discover(bad_fakes[i], "dev", "n", &list, &n, &err), &err, -EINVAL,
            "pretend GPUs are 'fake:MODEL:COUNT' with a count of 1 to 64");
    assert_int_equal(gpu_discover("fake:../x:1", "dev", "n", &list, &n, &err), -EINVAL);
    assert_ok(gpu_discover("none", "dev", "n", &list, &n, &err), &err);
    assert_int_equal(n, 0);
}

TEST(a_pretend_gpu_keeps_its_index_inside)
{
    struct runtime_extra x = {0};
    struct err err = ERR_INIT;

    assert_ok(gpu_inject("fake:h100:2", "/run/m/dev", gpus, 2, second, 1, &x, &err), &err);
    assert_int_equal(x.device_count, 1);
    assert_string_equal(x.devices[0].host_path, "/run/m/dev/nvidia1");
    assert_string_equal(x.devices[0].container_path, "/dev/nvidia1");
    assert_int_equal(x.devices[0].minor, 1);
    assert_string_equal(strv_env_get(x.env, "NVIDIA_VISIBLE_DEVICES"), "GPU-bbbb");
    assert_string_equal(strv_env_get(x.env, "CUDA_VISIBLE_DEVICES"), "0");
    runtime_extra_done(&x);
}

TEST(no_gpu_is_said_so)
{
    struct runtime_extra x = {0};
    struct err err = ERR_INIT;

    assert_ok(gpu_inject("auto", "", gpus, 2, NULL, 0, &x, &err), &err);
    assert_int_equal(x.device_count, 0);
    assert_string_equal(strv_env_get(x.env, "NVIDIA_VISIBLE_DEVICES"), "void");
    assert_string_equal(strv_env_get(x.env, "CUDA_VISIBLE_DEVICES"), "");
    runtime_extra_done(&x);
}

TEST(a_gpu_that_is_not_there_is_refused)
{
    static const uint32_t ninth[] = {9};
    struct runtime_extra x = {0};
    struct err err;

    assert_fails(gpu_inject("fake:h100:2", "", gpus, 2, ninth, 1, &x, &err), &err, -EINVAL,
        "there is no GPU 9 on this node");
}

static const char cdi[] = "cdiVersion: 0.5.0\n"
                          "kind: nvidia.com/gpu\n"
                          "devices:\n"
                          "- name: \"0\"\n"
                          "  containerEdits:\n"
                          "    deviceNodes: [{path: /dev/nvidia0, major: 195, minor: 0}]\n"
                          "- name: GPU-bbbb\n"
                          "  containerEdits:\n"
                          "    deviceNodes:\n"
                          "    - path: /dev/nvidia7\n"
                          "      hostPath: /dev/x/nvidia7\n"
                          "      major: 195\n"
                          "      minor: 7\n"
                          "containerEdits:\n"
                          "  deviceNodes:\n"
                          "  - {path: /dev/nvidiactl, major: 195, minor: 255}\n"
                          "  env:\n"
                          "  - NVIDIA_VISIBLE_DEVICES=void\n"
                          "  - LIBS=here\n"
                          "  mounts:\n"
                          "  - hostPath: /usr/lib/libcuda.so.550\n"
                          "    containerPath: /usr/lib/x/libcuda.so.550\n"
                          "    options: [ro, nosuid, nodev, bind]\n"
                          "  hooks:\n"
                          "  - hookName: createContainer\n"
                          "    path: /usr/bin/nvidia-ctk\n"
                          "    args: [nvidia-ctk, hook, update-ldcache]\n";

TEST(a_cdi_specification_says_what_a_gpu_needs)
{
    struct runtime_extra x = {0};
    struct err err = ERR_INIT;

    put("etc/cdi", "nvidia.yaml", cdi);
    put("etc/cdi", "zz-other.json", "{\"kind\": \"other.com/nic\", \"devices\": []}");
    assert_ok(gpu_inject("auto", "", gpus, 2, second, 1, &x, &err), &err);
    assert_int_equal(x.device_count, 2);
    assert_string_equal(x.devices[0].container_path, "/dev/nvidiactl");
    assert_string_equal(x.devices[1].host_path, "/dev/x/nvidia7");
    assert_string_equal(x.devices[1].container_path, "/dev/nvidia7");
    assert_int_equal(x.devices[1].minor, 7);
    assert_string_equal(x.mounts[0], "/usr/lib/libcuda.so.550:/usr/lib/x/libcuda.so.550");
    assert_null(x.mounts[1]);
    assert_string_equal(strv_env_get(x.env, "LIBS"), "here");
    assert_string_equal(strv_env_get(x.env, "NVIDIA_VISIBLE_DEVICES"), "GPU-bbbb");
    runtime_extra_done(&x);
}

TEST(the_later_folder_wins_and_json_is_read_too)
{
    struct runtime_extra x = {0};
    struct err err = ERR_INIT;

    put("etc/cdi", "nvidia.yaml", cdi);
    put("var/run/cdi", "nvidia.json",
        "{\"kind\":\"nvidia.com/gpu\",\"devices\":[{\"name\":\"1\",\"containerEdits\":"
        "{\"env\":[\"FROM=run\"]}}]}");
    assert_ok(gpu_inject("auto", "", gpus, 2, second, 1, &x, &err), &err);
    assert_int_equal(x.device_count, 0);
    assert_string_equal(strv_env_get(x.env, "FROM"), "run");
    runtime_extra_done(&x);
}

static void assert_cdi_fails(const char *text, bool names_file, const char *want)
{
    struct runtime_extra x = {0};
    struct err err = ERR_INIT;
    char whole[300];

    put("etc/cdi", "a.yaml", text);
    assert_true(gpu_inject("auto", "", gpus, 2, second, 1, &x, &err) < 0);
    snprintf(whole, sizeof(whole), "CDI specification '%s/etc/cdi/a.yaml': %s", dir, want);
    assert_string_equal(err.text, names_file ? whole : want);
}

#define GPU_1 "kind: nvidia.com/gpu\ndevices: [{name: GPU-bbbb, containerEdits: {"

TEST(a_cdi_specification_that_is_wrong_says_where)
{
    assert_cdi_fails("a: &x [1]\nb: *x\n", true, "line 2: an alias is not taken here");
    assert_cdi_fails("kind: [\n", true, "line 2: did not find expected node content");
    assert_cdi_fails("? [a]\n: b\n", true, "line 1: a key must be a word");
    assert_cdi_fails(
        "kind: nvidia.com/gpu\n", false, "the CDI specification has no device '1' or 'GPU-bbbb'");
    assert_cdi_fails(GPU_1 "deviceNodes: [{path: /etc/passwd, major: 1, minor: 1}]}}]\n", false,
        "a device node belongs below /dev, not at '/etc/passwd'");
    assert_cdi_fails(GPU_1 "mounts: [{hostPath: etc, containerPath: /x}]}}]\n", false,
        "a mount needs absolute paths, not 'etc' and '/x'");
    assert_cdi_fails(GPU_1 "env: [NOVALUE]}}]\n", false, "an 'env' entry must be NAME=VALUE");
}

TEST(without_cdi_the_driver_tells_the_device_node)
{
    struct runtime_extra x = {0};
    struct err err = ERR_INIT;

    put("proc/driver/nvidia/gpus/0000:01:00.0", "information",
        "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-aaaa\nDevice Minor: \t 0\n");
    put("proc/driver/nvidia/gpus/0000:02:00.0", "information",
        "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-bbbb\nDevice Minor: \t 5\n");
    assert_ok(gpu_inject("auto", "", gpus, 2, second, 1, &x, &err), &err);
    assert_int_equal(x.device_count, 1);
    assert_string_equal(x.devices[0].container_path, "/dev/nvidia5");
    assert_int_equal(x.devices[0].minor, 5);
    runtime_extra_done(&x);
}

TEST(a_gpu_that_the_driver_does_not_know_is_refused)
{
    struct runtime_extra x = {0};
    struct err err;

    assert_fails(gpu_inject("auto", "", gpus, 2, second, 1, &x, &err), &err, -ENOENT,
        "the driver does not know GPU 'GPU-bbbb'");
}

TEST(yaml_becomes_json)
{
    static const char text[] = "a: 1\nb: [x, \"2\", true, ~, -7]\nc: {d: e f}\n";
    struct err err = ERR_INIT;
    json_t *doc = NULL;
    char *have;

    assert_ok(yaml_to_json(text, strlen(text), 1000, &doc, &err), &err);
    have = json_text(doc);
    assert_string_equal(have, "{\"a\":1,\"b\":[\"x\",\"2\",true,null,-7],\"c\":{\"d\":\"e f\"}}");
    free(have);
    json_decref(doc);
    assert_fails(
        yaml_to_json(text, strlen(text), 10, &doc, &err), &err, -EFBIG, "larger than 10 bytes");
    assert_fails(yaml_to_json("", 0, 10, &doc, &err), &err, -EINVAL, "an empty document");
}

TEST(yaml_nested_too_deeply_is_refused)
{
    char text[400];
    struct err err;
    json_t *doc = NULL;

    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    assert_fails(
        yaml_to_json(text, 200, 1000, &doc, &err), &err, -EINVAL, "line 1: nested too deeply");
}

#define GPU_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GPU_TEST(product_names_become_short),
        GPU_TEST(pretend_gpus_are_the_same_each_time),
        GPU_TEST(a_description_of_gpus_that_is_none_is_refused),
        GPU_TEST(a_pretend_gpu_keeps_its_index_inside),
        GPU_TEST(no_gpu_is_said_so),
        GPU_TEST(a_gpu_that_is_not_there_is_refused),
        GPU_TEST(a_cdi_specification_says_what_a_gpu_needs),
        GPU_TEST(the_later_folder_wins_and_json_is_read_too),
        GPU_TEST(a_cdi_specification_that_is_wrong_says_where),
        GPU_TEST(without_cdi_the_driver_tells_the_device_node),
        GPU_TEST(a_gpu_that_the_driver_does_not_know_is_refused),
        GPU_TEST(yaml_becomes_json),
        GPU_TEST(yaml_nested_too_deeply_is_refused),
    };

    return RUN_TESTS(tests);
}
