/*
 * Logging. Libraries (base, net, model, sched, wire, store) never log: they return errors; a
 * program logs once, at its edge. One line an event, to stderr: journald priority prefix when
 * stderr is the journal, JSON lines with LOG_FORMAT_JSON, text otherwise.
 * Never a token, a key or an environment value; untrusted text in single quotes, through
 * str_escape.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* program is kept by reference ("musterd"). */
void log_setup(const char *program, enum log_level max, enum log_format format);
/* "err", "warning", "info", "debug" -> *ret; -EINVAL. */
int log_level_parse(const char *s, enum log_level *ret);

void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_err(...) log_write(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
