/*
 * muster-runtime RUNTIME ARG...: what conmon is given as its OCI runtime, in front of the real one.
 *
 * conmon calls `create`, and somebody has to call `start` then: a second process that loads and
 * copies the runtime once more, a tenth of all the time that a session takes to start. Nothing
 * happens between the two here, for muster-init waits at a barrier of its own. So `create` becomes
 * `run --detach` (both of runc(8) and crun(1)).
 *
 * The runtime executes from a sealed copy in memory, which the container cannot write to
 * (CVE-2019-5736). crun and runc make one and execute themselves again when they find that they
 * do not run from such a copy.
 *
 * Static and small: it runs once for each container.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define ARGS_MAX 64

/* A descriptor to execute; -1 where there is no such memory: the runtime then makes its own. */
static int sealed_copy(const char *path)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat st;
    off_t at = 0;

    if (from < 0 || to < 0 || fstat(from, &st) < 0)
        return -1;
    while (at < st.st_size)
        if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
            return -1;
    close(from);
    return fcntl(to, F_ADD_SEALS, SEALS) < 0 ? -1 : to;
}

int main(int argc, char **argv, char **env)
{
    char *args[ARGS_MAX + 2];
    int n = 0, fd;

    if (argc < 2 || argc > ARGS_MAX) {
        fprintf(stderr, "usage: muster-runtime RUNTIME ARG...\n");
        return 2;
    }
    for (int i = 1, verb = 0; i < argc; i++) {
        int create = i > 1 && !verb && strcmp(argv[i], "create") == 0;

        verb |= create;
        args[n++] = create ? "run" : argv[i];
        if (create)
            args[n++] = "--detach";
    }
    args[n] = NULL;
    fd = sealed_copy(argv[1]);
    if (fd >= 0)
        fexecve(fd, args, env);
    execve(argv[1], args, env);
    perror(argv[1]);
    return 127;
}
