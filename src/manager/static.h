/*
 * Files that are part of the program: the contract and the page that shows it. Made from
 * docs/openapi.yaml and src/manager/static/ when Muster is built, served to everybody.
 */
#ifndef MANAGER_STATIC_H
#define MANAGER_STATIC_H

#include <stddef.h>

struct static_file {
    const char *path, *type;
    const unsigned char *data;
    size_t len;
};

extern const struct static_file static_files[]; /* path NULL ends */

#endif
