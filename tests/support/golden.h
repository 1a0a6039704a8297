/*
 * Comparing text with a file that a reviewer can read. MUSTER_GOLDEN_UPDATE=1 writes the file anew
 * instead: look at the difference before you commit it.
 */
#ifndef SUPPORT_GOLDEN_H
#define SUPPORT_GOLDEN_H

#include "base/fs.h"

static inline bool golden_equals(const char *dir, const char *name, const char *text)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
    _cleanup_free_ char *expected = NULL;
    struct err err = ERR_INIT;

    if (getenv("MUSTER_GOLDEN_UPDATE"))
        return fs_write(path, text, strlen(text), 0644, &err) == 0;
    if (fs_read(path, 4 << 20, &expected, NULL, &err) < 0) {
        fprintf(stderr, "%s\n", err_text(&err));
        return false;
    }
    if (strcmp(expected, text) == 0)
        return true;
    fprintf(stderr, "--- %s has\n%s--- but it is\n%s---\n", path, expected, text);
    return false;
}

#endif
