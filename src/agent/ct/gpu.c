/*
 * The node's GPUs and what a container gets of them. Pretend GPUs are character devices of NVIDIA's
 * major number that no driver answers: a container's own opens with ENXIO, another with EPERM.
 *
 * Real ones are injected by a CDI specification. Without one a container gets the device nodes and
 * nothing else: its image must then bring the driver's libraries in the very version of the node.
 */
#include "agent/ct/gpu.h"

#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "agent/ct/cdi.h"
#include "agent/ct/gpu_test.h"
#include "agent/ct/nvml.h"
#include "base/fs.h"
#include "base/strv.h"

#define NVIDIA_MAJOR 195
#define NVIDIA_MINOR_CTL 255
#define INFORMATION_MAX 4096

static const char *gpu_root = ""; /* discovery reads below it */

void gpu_set_root(const char *root)
{
    gpu_root = root;
}

/* Usual sizes, in GiB; the rest gets 80. */
static uint64_t fake_memory(const char *model)
{
    /* clang-format off */
    static const struct { const char *model; uint64_t gib; } known[] = {
        { "a100", 80 }, { "h100", 80 }, { "h200", 141 }, { "b200", 180 }, { "v100", 32 },
        { "l40s", 48 }, { "l4", 24 }, { "t4", 16 }, { "a10", 24 }, { "a6000", 48 },
        { "rtx3090", 24 }, { "rtx4090", 24 }, { "rtx5090", 32 },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq(known[i].model, model))
            return known[i].gib << 30;
    return UINT64_C(80) << 30;
}

static uint64_t fnv1a(const char *text, uint64_t hash)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The same for the same node and index, always. */
static void fake_uuid(const char *node_name, uint32_t index, char *uuid, size_t size)
{
    _cleanup_free_ char *seed = xasprintf("%s/%u", node_name, index);
    uint64_t a = fnv1a(seed, UINT64_C(0xcbf29ce484222325)), b = fnv1a(seed, a ^ UINT64_MAX);

    snprintf(uuid, size, "GPU-%08x-%04x-%04x-%04x-%012jx", (unsigned)(a >> 32),
        (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xffff), (unsigned)(b >> 48),
        (uintmax_t)(b & UINT64_C(0xffffffffffff)));
}

/* /run is often mounted nodev; a device node there opens with EACCES whoever asks. */
static int make_dev_dir(const char *dir, struct err *err)
{
    struct statvfs sv;
    int r = fs_mkdir_p(dir, 0755, err);

    if (r < 0)
        return r;
    if (statvfs(dir, &sv) < 0)
        return err_sys(err, -errno, "cannot look at '%s'", dir);
    if (!(sv.f_flag & ST_NODEV))
        return 0;
    if (mount("muster", dir, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755") < 0)
        return err_sys(err, -errno, "cannot mount a tmpfs at '%s'", dir);
    return 0;
}

static int fake_node(const char *dir, uint32_t index, struct err *err)
{
    _cleanup_free_ char *path = xasprintf("%s/nvidia%u", dir, index);
    dev_t dev = makedev(NVIDIA_MAJOR, index);
    struct stat st;

    if (lstat(path, &st) == 0) {
        if (S_ISCHR(st.st_mode) && st.st_rdev == dev && (st.st_mode & 0777) == 0666)
            return 0;
        if (unlink(path) < 0)
            return err_sys(err, -errno, "cannot replace '%s'", path);
    }
    if (mknod(path, S_IFCHR | 0600, dev) < 0 || chmod(path, 0666) < 0)
        return err_sys(err, -errno, "cannot make the device node '%s'", path);
    return 0;
}

static int fake_discover(const char *spec, const char *dev_dir, const char *node_name,
    struct gpu **ret, uint32_t *ret_count, struct err *err)
{
    _cleanup_free_ struct gpu *gpus = NULL;
    char model[NAME_MAX_LEN + 1] = "";
    uint32_t count = 0;
    int r = gpu_fake_parse(spec, model, &count, err);

    if (r == 0)
        r = make_dev_dir(dev_dir, err);
    if (r < 0)
        return r;
    gpus = xnew_array(struct gpu, count);
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        struct gpu *g = &gpus[i];

        g->index = i;
        g->healthy = true;
        g->mem = fake_memory(model);
        g->numa = 1 + i * 2 / count; /* as on a machine with two sockets */
        STR_SET(g->model, model);
        fake_uuid(node_name, i, g->uuid, sizeof(g->uuid));
        r = fake_node(dev_dir, i, err);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(gpus);
    *ret_count = count;
    return 0;
}

int gpu_discover(const char *spec, const char *dev_dir, const char *node_name, struct gpu **ret,
    uint32_t *ret_count, struct err *err)
{
    int r;

    if (str_starts(spec, GPU_FAKE))
        return fake_discover(spec, dev_dir, node_name, ret, ret_count, err);
    if (!str_eq(spec, "none") && !str_eq(spec, "auto"))
        return err_set(
            err, -EINVAL, "GPUs are 'auto', 'none' or 'fake:MODEL:COUNT', not '%.60s'", spec);
    r = str_eq(spec, "auto") ? nvml_discover(ret, ret_count, err) : -ENOENT;
    if (r != -ENOENT)
        return r;
    if (err)
        *err = ERR_INIT;
    *ret = NULL;
    *ret_count = 0;
    return 0;
}

/* "Key: \t value" in the text of a file. */
static bool has_value(const char *text, const char *key, const char *value)
{
    const char *at = strstr(text, key);
    size_t n = strlen(value);

    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, ": \t");
    return strncmp(at, value, n) == 0 && strchr(" \t\n", at[n]);
}

static bool take_minor(const char *text, const char *uuid, uint32_t *ret)
{
    const char *at = strstr(text, "Device Minor");

    return at && has_value(text, "GPU UUID", uuid) && sscanf(at, "Device Minor: %u", ret) == 1;
}

/* The N of /dev/nvidiaN, which need not be NVML's index: the driver tells it by UUID. */
static int find_minor(const struct gpu *g, uint32_t *ret, struct err *err)
{
    _cleanup_free_ char *folder = xasprintf("%s/proc/driver/nvidia/gpus", gpu_root);
    DIR *dir = opendir(folder);
    bool found = false;
    struct dirent *e;

    while (dir && !found && (e = readdir(dir))) {
        _cleanup_free_ char *path = xasprintf("%s/%s/information", folder, e->d_name);
        _cleanup_free_ char *text = NULL;

        if (fs_read(path, INFORMATION_MAX, &text, NULL, NULL) == 0)
            found = take_minor(text, g->uuid, ret);
    }
    if (dir)
        closedir(dir);
    return found ? 0 : err_set(err, -ENOENT, "the driver does not know GPU '%s'", g->uuid);
}

static int add_fake(const char *dev_dir, uint32_t index, struct runtime_extra *x, struct err *err)
{
    _cleanup_free_ char *host = xasprintf("%s/nvidia%u", dev_dir, index);
    _cleanup_free_ char *inside = xasprintf("/dev/nvidia%u", index);

    return extra_add_device(x, host, inside, NVIDIA_MAJOR, index, err);
}

/* A control node, where the driver made one. */
static int add_control(const char *path, struct runtime_extra *x, struct err *err)
{
    _cleanup_free_ char *real = xasprintf("%s%s", gpu_root, path);
    struct stat st;

    if (stat(real, &st) < 0 || !S_ISCHR(st.st_mode))
        return 0;
    return extra_add_device(x, path, path, major(st.st_rdev), minor(st.st_rdev), err);
}

static int add_bare(const struct gpu *g, struct runtime_extra *x, struct err *err)
{
    char path[64];
    uint32_t minor = 0;
    int r = find_minor(g, &minor, err);

    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
    r = extra_add_device(x, path, path, NVIDIA_MAJOR, minor, err);
    if (r == 0)
        r = add_control("/dev/nvidiactl", x, err);
    if (r == 0)
        r = add_control("/dev/nvidia-uvm", x, err);
    return r == 0 ? add_control("/dev/nvidia-uvm-tools", x, err) : r;
}

static int add_real(const struct gpu *gpus, const uint32_t *given, uint32_t given_count,
    struct runtime_extra *x, struct err *err)
{
    _cleanup_(json_decrefp) json_t *spec = NULL;
    int r = cdi_load(gpu_root, &spec, err);

    if (r == 0)
        return cdi_apply(spec, gpu_root, gpus, given, given_count, x, err);
    for (uint32_t i = 0; (r == -ENOENT || r == 0) && i < given_count; i++)
        r = add_bare(&gpus[given[i]], x, err);
    if (r == 0 && err)
        *err = ERR_INIT;
    return r;
}

/* Ours last: a CDI specification says NVIDIA_VISIBLE_DEVICES=void for another runtime's hook. */
static void set_env(
    const struct gpu *gpus, const uint32_t *given, uint32_t given_count, struct runtime_extra *x)
{
    _cleanup_(strv_freep) char **uuids = NULL, **numbers = NULL;
    _cleanup_free_ char *uuid_list = NULL, *number_list = NULL;

    for (uint32_t i = 0; i < given_count; i++) {
        strv_push(&uuids, gpus[given[i]].uuid);
        strv_pushf(&numbers, "%u", i);
    }
    uuid_list = strv_join(uuids, ",");
    number_list = strv_join(numbers, ",");
    strv_env_set(&x->env, "NVIDIA_VISIBLE_DEVICES", given_count ? uuid_list : "void");
    strv_env_set(&x->env, "CUDA_VISIBLE_DEVICES", number_list);
}

static int check_given(
    uint32_t gpu_count, const uint32_t *given, uint32_t given_count, struct err *err)
{
    for (uint32_t i = 0; i < given_count; i++)
        if (given[i] >= gpu_count)
            return err_set(err, -EINVAL, "there is no GPU %u on this node", given[i]);
    return 0;
}

int gpu_inject(const char *spec, const char *dev_dir, const struct gpu *gpus, uint32_t gpu_count,
    const uint32_t *given, uint32_t given_count, struct runtime_extra *ret, struct err *err)
{
    _cleanup_(runtime_extra_done) struct runtime_extra x = {0};
    int r = check_given(gpu_count, given, given_count, err);

    if (r == 0 && given_count > 0) {
        if (!str_starts(spec, GPU_FAKE))
            r = add_real(gpus, given, given_count, &x, err);
        for (uint32_t i = 0; str_starts(spec, GPU_FAKE) && r == 0 && i < given_count; i++)
            r = add_fake(dev_dir, gpus[given[i]].index, &x, err);
    }
    if (r < 0)
        return r;
    set_env(gpus, given, given_count, &x);
    *ret = x;
    x = (struct runtime_extra){0};
    return 0;
}

void runtime_extra_done(struct runtime_extra *x)
{
    free(x->devices);
    strv_free(x->mounts);
    strv_free(x->env);
    *x = (struct runtime_extra){0};
}
