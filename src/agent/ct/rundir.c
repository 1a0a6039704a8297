/*
 * The tmpfs is mounted in the node's own mount namespace, before the agent's is made from it: other
 * programs (muster-agent-clean) find the files, too.
 */
#include "agent/ct/rundir.h"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "agent/ct/mountns.h"
#include "base/fs.h"

#define RUN_MODE 0711

static bool is_in_memory(const char *path)
{
    struct statfs sf;

    return statfs(path, &sf) == 0 && (sf.f_type == TMPFS_MAGIC || sf.f_type == RAMFS_MAGIC);
}

int rundir_make(const char *path, struct err *err)
{
    int r = fs_mkdir_p(path, RUN_MODE, err);

    if (r < 0 || is_in_memory(path) || mountns_is_pinned(path))
        return r;
    if (mount("muster-run", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0711") < 0)
        return err_sys(err, -errno, "cannot mount a tmpfs at '%s'", path);
    return 0;
}

/* Another file system than its parent's. */
static bool is_mounted(const char *path)
{
    _cleanup_free_ char *parent = xasprintf("%s/..", path);
    struct stat st, up;

    return stat(path, &st) == 0 && stat(parent, &up) == 0 && st.st_dev != up.st_dev;
}

int rundir_remove(const char *path, struct err *err)
{
    if (is_mounted(path) && is_in_memory(path) && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
        return err_sys(err, -errno, "cannot unmount '%s'", path);
    return fs_remove_tree(path, err);
}
