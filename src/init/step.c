/*
 * Steps. The words that a person reads here are the CLI's: they come out of `muster exec`.
 */
#include "init/step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "init/path.h"

extern char **environ;

int step_run(const char *dir, char *const argv[])
{
    bool found = false;
    int r;

    if (chdir(dir) < 0) {
        fprintf(stderr, "muster: cannot go to the folder '%s': %s\n", dir, strerror(errno));
        return STEP_EXIT_DENIED;
    }
    r = path_exec(getenv("PATH"), argv, environ, &found);
    if (r == -ENOENT && found)
        fprintf(stderr, "muster: cannot run '%s': its interpreter or loader is missing\n", argv[0]);
    else if (r == -ENOENT && !strchr(argv[0], '/'))
        fprintf(stderr, "muster: there is no '%s' in the container's PATH\n", argv[0]);
    else
        fprintf(stderr, "muster: cannot run '%s': %s\n", argv[0], strerror(-r));
    return r == -ENOENT ? STEP_EXIT_NOT_FOUND : STEP_EXIT_DENIED;
}
