/*
 * Options of a program from one table: the command line, the configuration file (YAML, nested by
 * the dots of the name), --help and the man page read the same rows.
 *
 * "listen" is --listen on the command line and "listen:" in the file; "scheduler.backfill_depth" is
 * --scheduler-backfill-depth and "backfill_depth:" below "scheduler:". The command line wins over
 * the file, the file over the default.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/err.h"

enum opt_type {
    OPT_STR,      /* char * member, heap */
    OPT_STRV,     /* char ** member; a YAML list, or the option given several times */
    OPT_BOOL,     /* bool member; --name, --no-name, --name=yes|no */
    OPT_U64,      /* uint64_t member */
    OPT_SIZE,     /* uint64_t member, bytes; size_parse */
    OPT_DURATION, /* uint64_t member, usec; duration_parse */
};

struct opt {
    const char *name;
    enum opt_type type;
    size_t offset;    /* of the member in the configuration struct */
    const char *dflt; /* text as in the file, a list with commas; NULL: unset (NULL, 0, false) */
    const char *arg;  /* "PATH", "HOST:PORT"; NULL for OPT_BOOL */
    const char *help; /* one sentence, no full stop */
    char short_name;  /* 0: none */
    bool line_only;   /* on the command line only (--config, --help) */
    /* Further check of the text value; may be NULL. */
    int (*check)(const char *value, struct err *err);
};

#define OPT_END \
    { \
        0 \
    }

/* Set defaults. config must be zeroed. */
void opt_defaults(const struct opt *table, void *config);
/* Read a YAML file. -EINVAL with "FILE:LINE: unknown option 'lisen'; did you mean 'listen'?" */
int opt_load(const struct opt *table, void *config, const char *path, struct err *err);
/*
 * Read argv[1..] until the first word that is no option or "--"; *ret_rest is its index. An option
 * may be "--name=value" or "--name value". Options on the line replace lists of the file whole.
 */
int opt_parse(
    const struct opt *table, void *config, int argc, char **argv, int *ret_rest, struct err *err);
/* The whole order: defaults, then the file named by --config (member config_path at offset) or
 * dflt_path if it exists, then the line. */
int opt_read(const struct opt *table, void *config, size_t config_path_offset,
    const char *dflt_path, int argc, char **argv, int *ret_rest, struct err *err);
/* One line an option, aligned: "  -l, --listen HOST:PORT   help (default: ...)". */
void opt_print_help(const struct opt *table, FILE *out);
void opt_free(const struct opt *table, void *config);

#endif
