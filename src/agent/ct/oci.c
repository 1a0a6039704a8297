/*
 * The OCI runtime configuration of a container (runtime-spec 1.0). Builds a document and nothing
 * else. Mounts come in the order in which they lie on each other: the kernel's, ours, GPU files.
 * Volumes are part of the root already (volume.c).
 */
#include "agent/ct/oci.h"

#include <sys/stat.h>

#include "agent/ct/cgroup.h"
#include "agent/ct/paths.h"
#include "base/strv.h"

#define INIT_PATH "/opt/muster/bin/muster-init"
#define CPU_PERIOD_USEC 100000
#define SHM_DEFAULT (UINT64_C(64) << 20)

/* clang-format off */
const char *const oci_capabilities[] = {
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID", "CAP_SETGID",
    "CAP_SETFCAP", "CAP_SYS_CHROOT", "CAP_KILL", NULL,
};

/* As podman has them: what /proc and /sys tell about the node, or let root change. */
static const char *const masked_paths[] = {
    "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
    "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/dev/block", "/sys/firmware",
    "/sys/fs/selinux", "/sys/kernel/debug", NULL,
};
static const char *const readonly_paths[] = {
    "/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL,
};
static const char *const init_env[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/muster/bin", NULL,
};
/* clang-format on */

static json_t *words(const char *const *v)
{
    json_t *list = json_array();

    for (; v && *v; v++)
        json_array_append_new(list, json_string(*v));
    return list;
}

json_t *oci_capability_sets(bool root)
{
    json_t *sets = json_object();

    json_object_set_new(sets, "bounding", words(oci_capabilities));
    json_object_set_new(sets, "effective", root ? words(oci_capabilities) : json_array());
    json_object_set_new(sets, "permitted", root ? words(oci_capabilities) : json_array());
    json_object_set_new(sets, "inheritable", json_array());
    json_object_set_new(sets, "ambient", json_array());
    return sets;
}

char *oci_cgroup(const struct runtime *rt, const char *session_id, const char *container_id)
{
    return xasprintf("%s/%s/%s", rt->cgroup, session_id, container_id);
}

static json_t *process(void)
{
    static const char *const argv[] = {INIT_PATH, NULL};

    return json_pack("{s:b, s:{s:i, s:i}, s:o, s:o, s:s, s:o, s:b, s:i}", "terminal", 0, "user",
        "uid", 0, "gid", 0, "args", words(argv), "env", words(init_env), "cwd", "/", "capabilities",
        oci_capability_sets(true), "noNewPrivileges", 0, "oomScoreAdj", 0);
}

/* options: words with commas between. */
static void add_mount(
    json_t *list, const char *type, const char *source, const char *target, const char *options)
{
    _cleanup_(strv_freep) char **v = strv_split(options, ',');

    json_array_append_new(list,
        json_pack("{s:s, s:s, s:s, s:o}", "destination", target, "type", type, "source", source,
            "options", words((const char *const *)v)));
}

static void add_kernel_mounts(
    json_t *list, const struct runtime *rt, const struct assignment *a, const char *id)
{
    _cleanup_free_ char *shm = xasprintf(
        "nosuid,noexec,nodev,mode=1777,size=%ju", (uintmax_t)(a->shm ? a->shm : SHM_DEFAULT));
    char path[CT_PATH_MAX];

    add_mount(list, "proc", "proc", "/proc", "nosuid,noexec,nodev");
    /* A fresh tmpfs, never the image's folder: crun follows a link there. */
    add_mount(list, "tmpfs", "tmpfs", "/dev", "nosuid,noexec,strictatime,mode=755,size=65536k");
    add_mount(list, "devpts", "devpts", "/dev/pts",
        "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5");
    add_mount(list, "tmpfs", "shm", "/dev/shm", shm);
    add_mount(list, "mqueue", "mqueue", "/dev/mqueue", "nosuid,noexec,nodev");
    add_mount(list, "bind", ct_run_path(&rt->dirs, id, "sys", path), "/sys",
        "rbind,rprivate,ro,nosuid,noexec,nodev");
    if (cgroup_layout() == CGROUP_V2)
        add_mount(list, "cgroup", "cgroup", "/sys/fs/cgroup", "ro,nosuid,noexec,nodev");
}

static void add_ours(json_t *list, const struct runtime *rt, const char *id)
{
    char path[CT_PATH_MAX];

    add_mount(list, "bind", rt->dirs.guest, "/opt/muster", "bind,rprivate,ro,nosuid,nodev");
    add_mount(list, "bind", ct_run_path(&rt->dirs, id, "etc", path), "/etc/muster",
        "bind,rprivate,ro,nosuid,nodev,noexec");
    add_mount(list, "bind", ct_run_path(&rt->dirs, id, "etc/record", path), "/etc/muster/record",
        "bind,rprivate,nosuid,nodev,noexec");
}

/* A device node is bound: in a user namespace nobody can make one. */
static void add_extra(json_t *list, const struct runtime_extra *extra)
{
    for (uint32_t i = 0; i < extra->device_count; i++)
        add_mount(list, "bind", extra->devices[i].host_path, extra->devices[i].container_path,
            "bind,rprivate,nosuid,noexec");
    for (char **m = extra->mounts; m && *m; m++) {
        const char *colon = strchr(*m, ':');
        _cleanup_free_ char *source = xstrndup(*m, (size_t)(colon - *m));

        add_mount(list, "bind", source, colon + 1, "bind,rprivate,ro,nosuid,nodev");
    }
}

static json_t *mounts(const struct runtime *rt, const struct assignment *a, const char *id,
    const struct runtime_extra *extra)
{
    json_t *list = json_array();

    add_kernel_mounts(list, rt, a, id);
    add_ours(list, rt, id);
    add_extra(list, extra);
    return list;
}

static json_t *namespaces(const char *netns_path)
{
    static const char *const types[] = {"pid", "ipc", "uts", "mount", "cgroup", "user"};
    json_t *list = json_array();

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        json_array_append_new(list, json_pack("{s:s}", "type", types[i]));
    json_array_append_new(list, json_pack("{s:s, s:s}", "type", "network", "path", netns_path));
    return list;
}

static json_t *id_map(const struct user *u)
{
    struct id_extent map[USER_EXTENTS];
    json_t *list = json_array();

    user_id_map(u, map);
    for (size_t i = 0; i < USER_EXTENTS; i++)
        json_array_append_new(list,
            json_pack("{s:I, s:I, s:I}", "containerID", (json_int_t)map[i].inside, "hostID",
                (json_int_t)map[i].outside, "size", (json_int_t)map[i].count));
    return list;
}

/* Nothing but these; the runtime itself adds null, zero, full, random, urandom, tty and ptys. */
static json_t *device_rules(const struct runtime_extra *extra)
{
    json_t *list = json_array();

    json_array_append_new(list, json_pack("{s:b, s:s}", "allow", 0, "access", "rwm"));
    for (uint32_t i = 0; i < extra->device_count; i++)
        json_array_append_new(list,
            json_pack("{s:b, s:s, s:I, s:I, s:s}", "allow", 1, "type", "c", "major",
                (json_int_t)extra->devices[i].major, "minor", (json_int_t)extra->devices[i].minor,
                "access", "rw"));
    return list;
}

static json_t *resources(
    const struct runtime *rt, const struct assignment *a, const struct runtime_extra *extra)
{
    json_int_t quota = (json_int_t)a->each.cpu_milli * CPU_PERIOD_USEC / 1000;
    json_int_t shares = MAX_OF((json_int_t)a->each.cpu_milli * 1024 / 1000, (json_int_t)2);
    json_t *memory = json_pack("{s:I}", "limit", (json_int_t)a->each.mem);

    /* Memory and swap together: no swap. */
    if (cgroup_counts_swap())
        json_object_set_new(memory, "swap", json_integer((json_int_t)a->each.mem));
    return json_pack("{s:o, s:{s:I, s:i, s:I}, s:o, s:{s:I}}", "devices", device_rules(extra),
        "cpu", "quota", quota, "period", CPU_PERIOD_USEC, "shares", MIN_OF(shares, 262144),
        "memory", memory, "pids", "limit", (json_int_t)rt->pids_max);
}

static json_t *linux_part(const struct runtime *rt, const struct assignment *a, const char *id,
    const char *netns_path, const struct runtime_extra *extra)
{
    _cleanup_free_ char *group = oci_cgroup(rt, a->session, id);
    _cleanup_free_ char *cgroup = xasprintf("/%s", group);

    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:O, s:o, s:o}", "namespaces",
        namespaces(netns_path), "uidMappings", id_map(&a->user), "gidMappings", id_map(&a->user),
        "resources", resources(rt, a, extra), "cgroupsPath", cgroup, "seccomp", rt->filter,
        "maskedPaths", words(masked_paths), "readonlyPaths", words(readonly_paths));
}

int runtime_config(const struct runtime *rt, const struct assignment *a,
    const struct assigned_container *c, const char *netns_path, const struct runtime_extra *extra,
    json_t **ret, struct err *err)
{
    static const struct runtime_extra none = {0};
    char root[CT_PATH_MAX];
    json_t *doc;

    if (a->each.mem == 0 || a->each.cpu_milli == 0 || a->each.mem > INT64_MAX)
        return err_set(err, -EINVAL, "a container needs CPU and memory");
    extra = extra ? extra : &none;
    doc = json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o}", "ociVersion", "1.0.2", "process",
        process(), "root", "path", ct_run_path(&rt->dirs, c->id, "merged", root), "readonly", 0,
        "hostname", c->name, "mounts", mounts(rt, a, c->id, extra), "linux",
        linux_part(rt, a, c->id, netns_path, extra));
    if (!doc)
        return err_set(err, -EINVAL, "the container's configuration is not valid UTF-8");
    /* Beside linux.seccomp, not instead of it: a runtime that does not know the word still filters.
     */
    if (rt->filter_bpf)
        json_object_set_new(
            doc, "annotations", json_pack("{s:s}", "run.oci.seccomp_bpf_data", rt->filter_bpf));
    *ret = doc;
    return 0;
}
