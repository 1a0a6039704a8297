/*
 * muster-init [--etc DIR] | step DIR COMMAND... | --version. But for a step, it refuses to be
 * anything but process 1: it signals everybody it can see when it stops.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "init/init.h"
#include "init/step.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int usage(void)
{
    fputs("usage: muster-init [--etc DIR] | step DIR COMMAND... | --version\n", stderr);
    return INIT_EXIT_BAD_PLAN;
}

int main(int argc, char **argv)
{
    const char *etc = INIT_ETC_DEFAULT;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("muster-init " MUSTER_VERSION);
        return 0;
    }
    if (argc >= 4 && strcmp(argv[1], "step") == 0)
        return step_run(argv[2], argv + 3);
    if (argc == 3 && strcmp(argv[1], "--etc") == 0)
        etc = argv[2];
    else if (argc != 1)
        return usage();
    if (getpid() != 1) {
        fputs("muster-init: must be process 1 of a container\n", stderr);
        return INIT_EXIT_BAD_PLAN;
    }
    /* Whatever the runtime left open stays out of the user's reach (Linux 5.9; else it is closed
     * already, or so we hope, as everybody did before). */
    syscall(SYS_close_range, 3U, ~0U, 0U);
    return init_run(etc);
}
