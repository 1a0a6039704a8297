/* /etc/passwd and its kin: pure editing of their text. Internal to this folder. */
#ifndef AGENT_CT_ACCOUNTS_H
#define AGENT_CT_ACCOUNTS_H

#include "base/base.h"

struct account_file {
    const char *path;
    int id_field;         /* 0-based field with the uid or gid that must not be 1000; -1: none */
    const char *fallback; /* what to start from when the image has none; NULL: leave it out then */
    const char *line;     /* of ours; "%s" is the login shell */
};
extern const struct account_file account_files[];
extern const size_t account_file_count;

/* The text with ours in place of every line named work or with id 1000, and without lines that
 * are none. Heap. */
char *accounts_edit(const struct account_file *f, const char *text, size_t len, const char *shell);

#endif
