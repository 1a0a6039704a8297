/*
 * The errors that setsid, setresuid, chdir, open and execve can give, and no more.
 */
#include "init/errname.h"

#include <errno.h>
#include <stddef.h>

#include "base/banned.h"

#define NAME(e) \
    { \
        e, #e \
    }

static const struct {
    int error;
    const char *name;
} names[] = {
    NAME(E2BIG),
    NAME(EACCES),
    NAME(EAGAIN),
    NAME(EBADF),
    NAME(EBUSY),
    NAME(EFAULT),
    NAME(EFBIG),
    NAME(EINTR),
    NAME(EINVAL),
    NAME(EIO),
    NAME(EISDIR),
    NAME(ELIBBAD),
    NAME(ELOOP),
    NAME(EMFILE),
    NAME(ENODEV),
    NAME(ENFILE),
    NAME(ENAMETOOLONG),
    NAME(ENOENT),
    NAME(ENOEXEC),
    NAME(ENOMEM),
    NAME(ENOSPC),
    NAME(ENOSYS),
    NAME(ENOTDIR),
    NAME(ENXIO),
    NAME(EPERM),
    NAME(EROFS),
    NAME(ESTALE),
    NAME(ETIMEDOUT),
    NAME(ETXTBSY),
};

const char *errname(int error)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].error == error)
            return names[i].name;
    return "EUNKNOWN";
}
