/*
 * Kernel features. A version number says little (distributions backport), and an answer of success
 * says not much more: Linux 6.1 takes "lowerdir+" by descriptor and mounts something else. So the
 * overlay is tried with two small layers, and what it shows is looked at.
 */
#include "agent/ct/feature.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agent/ct/mnt.h"

static atomic_uint missing;
static pthread_once_t probed = PTHREAD_ONCE_INIT;

static int layer_with(const char *name)
{
    const struct mnt_opt opts[] = {{"mode", "755"}, {0}};
    int mount = mnt_new("tmpfs", opts, 0, NULL);
    int file;

    if (mount < 0)
        return mount;
    file = openat(mount, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
    return mount;
}

static int stack(int upper, int lower)
{
    _cleanup_close_ int context = fsopen("overlay", FSOPEN_CLOEXEC);

    if (context < 0 || fsconfig(context, FSCONFIG_SET_FD, "lowerdir+", NULL, upper) < 0 ||
        fsconfig(context, FSCONFIG_SET_FD, "lowerdir+", NULL, lower) < 0)
        return -EINVAL;
    return mnt_finish(context, "overlay", MOUNT_ATTR_RDONLY, NULL);
}

static bool stacks_by_fd(void)
{
    _cleanup_close_ int a = layer_with("a");
    _cleanup_close_ int b = layer_with("b");
    _cleanup_close_ int both = -1;

    if (a < 0 || b < 0)
        return false;
    both = stack(a, b);
    return both >= 0 && faccessat(both, "a", F_OK, 0) == 0 && faccessat(both, "b", F_OK, 0) == 0;
}

static void probe(void)
{
    if (!stacks_by_fd())
        feature_clear(FEATURE_LAYER_FD);
}

bool feature_has(enum feature f)
{
    if (f == FEATURE_LAYER_FD)
        pthread_once(&probed, probe);
    return !(atomic_load(&missing) & (unsigned)f);
}

void feature_clear(enum feature f)
{
    atomic_fetch_or(&missing, (unsigned)f);
}

void feature_forbid(unsigned mask)
{
    atomic_fetch_or(&missing, mask);
}
