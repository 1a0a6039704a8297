/*
 * Shows how it was started (ids, folder, arguments, environment), then waits: for the seconds of
 * its first argument, or until SIGTERM, and ends with 0. For images that have nothing else.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void leave(int sig)
{
    (void)sig;
    _exit(0);
}

int main(int argc, char **argv)
{
    struct timespec left = {.tv_sec = argc > 1 ? strtol(argv[1], NULL, 10) : INT_MAX};
    char cwd[PATH_MAX];

    signal(SIGTERM, leave);
    printf("pid %d uid %d gid %d\n", (int)getpid(), (int)getuid(), (int)getgid());
    printf("cwd %s\n", getcwd(cwd, sizeof(cwd)) ? cwd : "?");
    for (int i = 0; i < argc; i++)
        printf("arg %s\n", argv[i]);
    for (char **env = environ; *env; env++)
        printf("env %s\n", *env);
    fflush(stdout);
    nanosleep(&left, NULL);
    return 0;
}
