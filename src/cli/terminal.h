/* The terminal in raw mode, given back as it was however the process ends (but for SIGKILL). */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "base/err.h"

/* Once a process. -ENOTTY when stdin is no terminal. */
int terminal_raw(struct err *err);
/* May be called at any time and from signal handlers; nothing when it is not raw. */
void terminal_restore(void);
/* Rows and columns of the terminal at fd; false when it has none. */
bool terminal_size(int fd, unsigned *ret_rows, unsigned *ret_cols);

#endif
