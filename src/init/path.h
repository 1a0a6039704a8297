/*
 * Finding a command in PATH. Like execvpe(3), but the PATH is the new environment's, a script
 * without a #! line is an error and not a shell script, and libc does not matter.
 */
#ifndef INIT_PATH_H
#define INIT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/*
 * Write the next candidate for name into buf and move *rest behind it; *rest is the PATH at first
 * and NULL after the last. An empty element is the current folder. buf is "" for a candidate that
 * does not fit. False: there are no more.
 */
bool path_next(const char **rest, const char *name, char *buf, size_t len);

/*
 * Replace this process. Returns only on failure, a negative errno: -EACCES when something was
 * found that may not be executed, else the last reason, -ENOENT when nothing was found.
 * *ret_found says that a file was there when the result is -ENOENT: its interpreter is missing.
 */
int path_exec(const char *path, char *const argv[], char *const envp[], bool *ret_found);

#endif
