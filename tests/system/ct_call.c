/*
 * Runs inside containers of the system tests: makes one system call by number and prints its errno
 * (0 when it succeeded), or opens one path read-write.
 *
 * usage: ct_call NUMBER [NUMBER|@TEXT]... | /PATH
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long a[6] = {0}, r;

    if (argc < 2)
        return 2;
    for (int i = 2; i < argc && i < 8; i++)
        a[i - 2] = argv[i][0] == '@' ? (long)(argv[i] + 1) : strtol(argv[i], NULL, 0);
    if (argv[1][0] == '/')
        r = open(argv[1], O_RDWR);
    else
        r = syscall(strtol(argv[1], NULL, 0), a[0], a[1], a[2], a[3], a[4], a[5]);
    printf("%d\n", r < 0 ? errno : 0);
    return 0;
}
