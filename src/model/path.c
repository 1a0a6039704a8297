/* Paths as text. */
#include "model/path.h"

#include "base/str.h"

bool path_is_clean(const char *path)
{
    if (path[0] != '/' || !str_is_clean(path, strlen(path)))
        return false;
    if (path[1] == '\0')
        return true;
    while (*path == '/') {
        size_t len = strcspn(path + 1, "/");

        if (len == 0 || (len <= 2 && strncmp(path + 1, "..", len) == 0))
            return false;
        path += 1 + len;
    }
    return true;
}

bool path_overlaps(const char *a, const char *b)
{
    size_t n = MIN_OF(strlen(a), strlen(b));

    if (n == 1) /* "/" */
        return true;
    if (strncmp(a, b, n) != 0)
        return false;
    return a[n] == b[n] || a[n] == '/' || b[n] == '/';
}

int path_check(const char *what, const char *path, struct err *err)
{
    _cleanup_free_ char *shown = NULL;

    if (path_is_clean(path))
        return 0;
    shown = str_escape(path, strlen(path), 100);
    return err_set(err, -EINVAL,
        "%s must be an absolute path without '.', '..' or a '/' at its end, not '%s'", what, shown);
}
