/*
 * A container's root from its parts, and its end. Making goes: the list of layers, blobs, overlay,
 * files, volumes, /etc/muster, and last a file "made". A folder without that file was left by an
 * agent that died in the middle; it is taken away and made again from nothing, since nobody has
 * run in it.
 */
#include "agent/ct/rootfs.h"

#include <dirent.h>
#include <sys/stat.h>

#include "agent/ct/blob.h"
#include "agent/ct/etc.h"
#include "agent/ct/guestfiles.h"
#include "agent/ct/mnt.h"
#include "agent/ct/overlay.h"
#include "agent/ct/volume.h"
#include "base/buf.h"
#include "base/crash.h"
#include "base/fs.h"
#include "base/strv.h"

#define MADE_FILE "made"

/* Others may get through, whatever the umask was. */
static int make_passable(const char *path, struct err *err)
{
    struct stat st;
    int r = fs_mkdir_p(path, 0711, err);

    if (r < 0)
        return r;
    if (stat(path, &st) < 0 || chmod(path, (st.st_mode & 07777) | 0111) < 0)
        return err_sys(err, -errno, "cannot set the mode of '%s'", path);
    return 0;
}

static int make_folders(const struct rootfs_dirs *d, const char *id, struct err *err)
{
    char path[CT_PATH_MAX];
    int r;

    /* The runtime's process of the container's root must get through to merged/; what lies beside
     * it is seen in the agent's mount namespace only. An upper folder is seen by the whole node:
     * its setuid files belong to a user's subordinate uids. */
    r = make_passable(d->run, err);
    if (r == 0)
        r = make_passable(ct_path(d->run, "ct", path), err);
    if (r == 0)
        r = make_passable(ct_run_path(d, id, "", path), err);
    if (r == 0)
        r = fs_mkdir_p(ct_path(d->state, "ct", path), 0700, err);
    if (r == 0)
        r = fs_mkdir_p(ct_state_path(d, id, "", path), 0700, err);
    return r;
}

static int write_layers(
    const struct rootfs_dirs *d, const struct assignment *a, const char *id, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
    char path[CT_PATH_MAX];

    for (uint32_t i = 0; i < a->layer_count; i++)
        buf_printf(&b, "%s\n", a->layers[i].digest);
    return fs_write(
        ct_run_path(d, id, BLOB_LIST_FILE, path), b.data ? b.data : "", b.len, 0600, err);
}

static int make_stack(
    const struct rootfs_dirs *d, const struct assignment *a, const char *id, struct err *err)
{
    int r = write_layers(d, a, id, err);

    for (uint32_t i = 0; r == 0 && i < a->layer_count; i++)
        r = blob_mount(d, a->layers[i].digest, err);
    if (r == 0)
        r = overlay_make(d, a, id, err);
    return r < 0 ? r : crash_point("container.after_mount", err);
}

static int make_files(const struct rootfs_dirs *d, const struct assignment *a,
    const struct assigned_container *c, char *const *env, struct err *err)
{
    _cleanup_(guest_done) struct guest g = {.root = -1};
    int r = guest_open(d, &a->user, c->id, &g, err);

    if (r == 0)
        r = guestfiles_make(d, &g, a, c, err);
    if (r == 0)
        r = volume_make(a, &g, err);
    if (r == 0)
        r = etc_make(d, a, c, env, err);
    return r < 0 ? r : crash_point("container.after_files", err);
}

/* What the node says replaces what an image may have said (NVIDIA_VISIBLE_DEVICES=all). */
static char **join_env(const struct assigned_container *c, char *const *extra)
{
    char **env = strv_copy(c->env);

    for (; extra && *extra; extra++) {
        const char *equals = strchr(*extra, '=');
        _cleanup_free_ char *key = NULL;

        assert(equals);
        key = xstrndup(*extra, (size_t)(equals - *extra));
        strv_env_set(&env, key, equals + 1);
    }
    return env;
}

static int make(const struct rootfs_dirs *d, const struct assignment *a,
    const struct assigned_container *c, char *const *extra_env, struct err *err)
{
    _cleanup_(strv_freep) char **env = join_env(c, extra_env);
    char path[CT_PATH_MAX];
    int r = make_folders(d, c->id, err);

    if (r == 0)
        r = make_stack(d, a, c->id, err);
    if (r == 0)
        r = make_files(d, a, c, env, err);
    if (r == 0)
        r = fs_write(ct_run_path(d, c->id, MADE_FILE, path), "", 0, 0600, err);
    return r;
}

int rootfs_make(const struct rootfs_dirs *d, const struct assignment *a,
    const struct assigned_container *c, char *const *extra_env, struct err *err)
{
    char path[CT_PATH_MAX], merged[CT_PATH_MAX];
    int r = ct_check_id("container", c->id, err);

    if (r < 0)
        return r;
    /* The file may have survived a reboot, the mount has not. */
    if (fs_exists(ct_run_path(d, c->id, MADE_FILE, path)) &&
        mnt_is_root(ct_run_path(d, c->id, "merged", merged)))
        return 0;
    if (fs_exists(ct_run_path(d, c->id, "", path)) || fs_exists(ct_state_path(d, c->id, "", path)))
        r = rootfs_remove(d, c->id, err);
    if (r == 0)
        r = make(d, a, c, extra_env, err);
    if (r < 0)
        (void)rootfs_remove(d, c->id, NULL);
    return r;
}

int rootfs_remove(const struct rootfs_dirs *d, const char *container_id, struct err *err)
{
    char path[CT_PATH_MAX], made[CT_PATH_MAX];
    int r = ct_check_id("container", container_id, err);

    if (r < 0)
        return r;
    /* First of all, so that a half removed root is not taken for a good one. */
    if (unlink(ct_run_path(d, container_id, MADE_FILE, made)) < 0 && errno != ENOENT)
        return err_sys(err, -errno, "cannot remove '%s'", made);
    ct_run_path(d, container_id, "", path);
    r = mnt_unmount_below(path, err);
    /* The state before the list of layers: rootfs_list names the container until all is gone. */
    if (r == 0)
        r = fs_remove_tree(ct_state_path(d, container_id, "", path), err);
    if (r == 0)
        r = fs_remove_tree(ct_run_path(d, container_id, "", path), err);
    return r;
}

static int add_ids(const char *folder, char ***ids, struct err *err)
{
    DIR *dir = opendir(folder);
    struct dirent *e;

    if (!dir)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "cannot open '%s'", folder);
    while ((e = readdir(dir)))
        if (uuid_is_valid(e->d_name) && !strv_has(*ids, e->d_name))
            strv_push(ids, e->d_name);
    closedir(dir);
    return 0;
}

int rootfs_list(const struct rootfs_dirs *d, char ***ret, struct err *err)
{
    _cleanup_(strv_freep) char **ids = NULL;
    char path[CT_PATH_MAX];
    int r;

    r = add_ids(ct_path(d->run, "ct", path), &ids, err);
    if (r == 0)
        r = add_ids(ct_path(d->state, "ct", path), &ids, err);
    if (r == 0)
        *ret = TAKE_PTR(ids);
    return r;
}
