/* Shared by opt.c, opt_file.c and opt_line.c only: rows of the table and the members they fill. */
#ifndef BASE_OPT_TABLE_H
#define BASE_OPT_TABLE_H

#include "base/opt.h"

#define OPT_NAME_MAX 64

#define opt_for_each(o, table) for (const struct opt *o = (table); o->name; o++)

/* The row with this name as in the file, or NULL. */
const struct opt *opt_find(const struct opt *table, const char *name);
/* "scheduler.backfill_depth" as on the line, without the dashes in front. */
char *opt_line_name(const struct opt *o, char name[OPT_NAME_MAX]);
/* Set the member from text; a list gets one more element. The error says what is wrong with the
 * value; the caller puts the option's name in front. */
int opt_set(const struct opt *o, void *config, const char *text, struct err *err);
/* Free and zero the member. */
void opt_clear(const struct opt *o, void *config);
/* -EINVAL, "unknown option 'lisen'; did you mean 'listen'?"; on_line: the names as on the line. */
int opt_unknown(const struct opt *table, const char *name, bool on_line, struct err *err);

#endif
