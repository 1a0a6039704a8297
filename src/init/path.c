/*
 * PATH search. path_next is pure, path_exec tries what it yields.
 */
#include "init/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

bool path_next(const char **rest, const char *name, char *buf, size_t len)
{
    const char *dir = *rest;
    size_t dir_len;
    int n;

    if (!dir)
        return false;
    dir_len = strcspn(dir, ":");
    *rest = dir[dir_len] ? dir + dir_len + 1 : NULL;
    if (dir_len >= len) {
        buf[0] = '\0';
        return true;
    }
    if (dir_len == 0)
        n = snprintf(buf, len, "./%s", name);
    else
        n = snprintf(buf, len, "%.*s/%s", (int)dir_len, dir, name);
    if (n < 0 || (size_t)n >= len)
        buf[0] = '\0';
    return true;
}

/* May the search go on after this error? */
static bool is_not_here(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
        error == ENAMETOOLONG || error == ESTALE || error == ENODEV || error == ETIMEDOUT;
}

static int exec_one(const char *file, char *const argv[], char *const envp[], bool *found)
{
    int error;

    execve(file, argv, envp);
    error = errno;
    if (error == ENOENT && access(file, F_OK) == 0)
        *found = true;
    return error;
}

int path_exec(const char *path, char *const argv[], char *const envp[], bool *ret_found)
{
    const char *rest = path ? path : PATH_DEFAULT;
    char file[PATH_MAX];
    bool denied = false;
    int error = ENOENT;

    *ret_found = false;
    if (!argv[0][0])
        return -ENOENT;
    if (strchr(argv[0], '/'))
        return -exec_one(argv[0], argv, envp, ret_found);
    while (path_next(&rest, argv[0], file, sizeof(file))) {
        if (!file[0])
            continue;
        error = exec_one(file, argv, envp, ret_found);
        if (error == EACCES)
            denied = true;
        if (!is_not_here(error))
            return -error;
    }
    if (*ret_found)
        return -ENOENT;
    return denied ? -EACCES : -ENOENT;
}
