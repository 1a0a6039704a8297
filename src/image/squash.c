/*
 * The kernel must never mount what a stranger made, so a program reads it: sqfs2tar, as nobody,
 * without the network, in a folder with a copy of the file (the file itself may be closed to
 * nobody).
 */
#include "image/squash.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/proc.h"
#include "base/str.h"
#include "image/sandbox.h"

#define MAGIC "hsqs"
#define CHUNK ((size_t)256 << 20)
#define MEMORY_MAX (UINT64_C(4) << 30)

bool squash_is_one(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char magic[sizeof(MAGIC) - 1];

    return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
        memcmp(magic, MAGIC, sizeof(magic)) == 0;
}

static int copy_in(int from, struct err *err)
{
    _cleanup_close_ int to = open("image.sqsh", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n;

    if (to < 0)
        return err_sys(err, -errno, "cannot copy the squashfs");
    do
        n = copy_file_range(from, NULL, to, NULL, CHUNK, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 ? err_sys(err, -errno, "cannot copy the squashfs") : 0;
}

/* The last words of the program. */
static int failed(int messages, int status, struct err *err)
{
    char text[512] = "";
    _cleanup_free_ char *shown = NULL;
    ssize_t n = pread(messages, text, sizeof(text) - 1, 0);

    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    shown = str_escape(text, strlen(text), 160);
    return err_set(
        err, -EINVAL, "sqfs2tar cannot read the squashfs (status %d): %s", status, shown);
}

/* proc.h runs programs in "/", and the way to this folder is closed to nobody: by descriptor. */
static int run_program(int image, int out, int messages, struct err *err)
{
    const char *const argv[] = {"sqfs2tar", "--root-becomes", ".", "/proc/self/fd/3", NULL};
    struct proc p = {.argv = argv, .keep_fd = image};
    int status, r;
    pid_t pid;

    r = proc_spawn(&p, out, messages, false, &pid, err);
    if (r == -ENOENT)
        return err_set(err, r, "a squashfs needs sqfs2tar (squashfs-tools-ng), which is not here");
    if (r < 0)
        return r;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? 0 : failed(messages, status, err);
}

static int convert(void *arg, struct err *err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    _cleanup_close_ int out = open("rootfs.tar", flags, 0600);
    _cleanup_close_ int messages = open("messages", flags, 0600);
    _cleanup_close_ int image = -1;
    int r = copy_in(*(int *)arg, err);

    if (r < 0)
        return r;
    image = open("image.sqsh", O_RDONLY | O_CLOEXEC);
    if (out < 0 || messages < 0 || image < 0)
        return err_sys(err, -errno, "cannot make files for the squashfs");
    r = run_program(image, out, messages, err);
    (void)unlink("image.sqsh");
    return r;
}

int squash_to_tar(const char *path, const char *folder, uint64_t max, struct err *err)
{
    const struct sandbox_limits limits = {max, MEMORY_MAX};
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, -errno, "cannot open");
    return sandbox_run(SANDBOX_OFFLINE, folder, &limits, convert, &fd, err);
}
