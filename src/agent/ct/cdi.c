/*
 * Reading a CDI specification. Only device nodes, mounts and environment are taken. The file is the
 * administrator's, but its bytes are checked like any others.
 */
#include "agent/ct/cdi.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/ct/cdi_yaml.h"
#include "base/fs.h"
#include "base/strv.h"

#define CDI_MAX_BYTES (4 << 20)
#define KIND "nvidia.com/gpu"

static int is_spec_name(const struct dirent *e)
{
    return e->d_name[0] != '.' && (str_ends(e->d_name, ".json") || str_ends(e->d_name, ".yaml"));
}

static int load_file(const char *path, json_t **ret, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r = fs_read(path, CDI_MAX_BYTES, &text, &len, err);

    /* JSON is YAML, too. */
    if (r == 0)
        r = yaml_to_json(text, len, CDI_MAX_BYTES, ret, err);
    return r < 0 && err ? err_prefix(err, "CDI specification '%s'", path) : r;
}

/* The last one of our kind in the folder replaces *spec. */
static int load_folder(const char *folder, json_t **spec, struct err *err)
{
    struct dirent **names;
    int n = scandir(folder, &names, is_spec_name, alphasort), r = 0;

    if (n < 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "cannot open '%s'", folder);
    for (int i = 0; i < n; i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", folder, names[i]->d_name);
        json_t *doc = NULL;

        if (r == 0)
            r = load_file(path, &doc, err);
        if (doc && str_eq(json_str_or(doc, "kind", ""), KIND)) {
            json_decref(*spec);
            *spec = doc;
        } else {
            json_decref(doc);
        }
        free(names[i]);
    }
    free(names);
    return r;
}

int cdi_load(const char *root, json_t **ret, struct err *err)
{
    _cleanup_free_ char *etc = xasprintf("%s/etc/cdi", root);
    _cleanup_free_ char *run = xasprintf("%s/var/run/cdi", root);
    _cleanup_(json_decrefp) json_t *spec = NULL;
    int r = load_folder(etc, &spec, err);

    if (r == 0)
        r = load_folder(run, &spec, err);
    if (r == 0 && !spec)
        r = err_set(err, -ENOENT, "there is no CDI specification of '%s'", KIND);
    if (r == 0)
        *ret = TAKE_PTR(spec);
    return r;
}

int extra_add_device(struct runtime_extra *x, const char *host, const char *container,
    uint32_t major, uint32_t minor, struct err *err)
{
    struct device *d;

    for (uint32_t i = 0; i < x->device_count; i++)
        if (str_eq(x->devices[i].container_path, container))
            return 0;
    x->devices = reallocarray(x->devices, x->device_count + 1, sizeof(*d));
    assert(x->devices);
    d = &x->devices[x->device_count];
    *d = (struct device){.major = major, .minor = minor};
    if (!str_starts(container, "/dev/") || strstr(container, "/../"))
        return err_set(
            err, -EINVAL, "a device node belongs below /dev, not at '%.100s'", container);
    if (str_copy(d->host_path, sizeof(d->host_path), host) < 0 ||
        str_copy(d->container_path, sizeof(d->container_path), container) < 0)
        return err_set(err, -ENAMETOOLONG, "the path of a device node is too long");
    x->device_count++;
    return 0;
}

static int add_node(const json_t *node, const char *root, struct runtime_extra *x, struct err *err)
{
    const char *path = json_str_or(node, "path", "");
    const char *host = json_str_or(node, "hostPath", path);
    uint64_t major = json_u64_or(node, "major", 0), minor = json_u64_or(node, "minor", 0);
    struct stat st;

    if (!json_object_get(node, "major")) {
        _cleanup_free_ char *real = xasprintf("%s%s", root, host);

        if (stat(real, &st) < 0)
            return err_sys(err, -errno, "device node '%.100s'", real);
        if (!S_ISCHR(st.st_mode))
            return err_set(err, -EINVAL, "'%.100s' is no character device", real);
        major = major(st.st_rdev);
        minor = minor(st.st_rdev);
    }
    return extra_add_device(x, host, path, (uint32_t)major, (uint32_t)minor, err);
}

static int add_mount(const json_t *mount, struct runtime_extra *x, struct err *err)
{
    const char *host = json_str_or(mount, "hostPath", "");
    const char *target = json_str_or(mount, "containerPath", host);

    if (host[0] != '/' || target[0] != '/' || strchr(host, ':') || strstr(target, "/../"))
        return err_set(
            err, -EINVAL, "a mount needs absolute paths, not '%.60s' and '%.60s'", host, target);
    strv_pushf(&x->mounts, "%s:%s", host, target);
    return 0;
}

static int add_variable(const json_t *variable, struct runtime_extra *x, struct err *err)
{
    const char *text = json_string_value(variable), *equals = text ? strchr(text, '=') : NULL;
    _cleanup_free_ char *key = NULL;

    if (!equals || equals == text)
        return err_set(err, -EINVAL, "an 'env' entry must be NAME=VALUE");
    key = xstrndup(text, (size_t)(equals - text));
    strv_env_set(&x->env, key, equals + 1);
    return 0;
}

static int add_edits(
    const json_t *edits, const char *root, struct runtime_extra *x, struct err *err)
{
    json_t *v;
    size_t i;
    int r = 0;

    json_array_foreach (json_object_get(edits, "deviceNodes"), i, v)
        if (r == 0)
            r = add_node(v, root, x, err);
    json_array_foreach (json_object_get(edits, "mounts"), i, v)
        if (r == 0)
            r = add_mount(v, x, err);
    json_array_foreach (json_object_get(edits, "env"), i, v)
        if (r == 0)
            r = add_variable(v, x, err);
    return r;
}

/* A YAML name of digits only has become a number. */
static bool is_named(const json_t *device, const struct gpu *gpu)
{
    const json_t *name = json_object_get(device, "name");
    char index[16];

    snprintf(index, sizeof(index), "%u", gpu->index);
    if (json_is_integer(name))
        return json_integer_value(name) == gpu->index;
    return str_eq(json_string_value(name), gpu->uuid) || str_eq(json_string_value(name), index);
}

static int add_gpu(const json_t *spec, const char *root, const struct gpu *gpu,
    struct runtime_extra *x, struct err *err)
{
    json_t *device;
    size_t i;

    json_array_foreach (json_object_get(spec, "devices"), i, device)
        if (is_named(device, gpu))
            return add_edits(json_object_get(device, "containerEdits"), root, x, err);
    return err_set(
        err, -ENOENT, "the CDI specification has no device '%u' or '%s'", gpu->index, gpu->uuid);
}

int cdi_apply(const json_t *spec, const char *root, const struct gpu *gpus, const uint32_t *given,
    uint32_t given_count, struct runtime_extra *x, struct err *err)
{
    int r = add_edits(json_object_get(spec, "containerEdits"), root, x, err);

    for (uint32_t i = 0; r == 0 && i < given_count; i++)
        r = add_gpu(spec, root, &gpus[given[i]], x, err);
    return r;
}
