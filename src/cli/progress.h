/*
 * One line on stderr that says what is waited for, overwritten as it changes and erased when done.
 * Nothing at all when stderr is no terminal. May be called from several threads.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "base/base.h"

bool progress_is_shown(void);
void progress_set(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Before anything else is written to the terminal. */
void progress_clear(void);
/* Write all of it, waiting as long as the reader takes. -EPIPE and others. */
int write_all(int fd, const void *data, size_t len);
/* Columns of the terminal at fd, or 0 when it is none. */
unsigned terminal_width(int fd);

#endif
