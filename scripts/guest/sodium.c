/*
 * What libsodium of the distribution, made for glibc, asks of a C library and musl does not have.
 */
#include <stddef.h>
#include <string.h>

void __explicit_bzero_chk(void *p, size_t n, size_t size);

/* glibc's explicit_bzero() under _FORTIFY_SOURCE. */
void __explicit_bzero_chk(void *p, size_t n, size_t size)
{
    if (n > size)
        __builtin_trap();
    explicit_bzero(p, n);
}
