/* A line cut into fields, and fields found by the name of their column. Inside sim only. */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include "base/err.h"

#define FIELDS_MAX 64
#define FIELDS_LINE_MAX 65536 /* bytes, the last is 0 */

struct columns {
    char *names[FIELDS_MAX]; /* heap, lower case */
    unsigned count;
};

struct fields {
    char *values[FIELDS_MAX]; /* into the line */
    unsigned count;
    const struct columns *columns; /* NULL: none have names */
};

void columns_read(struct columns *c, char *line, char separator);
void columns_done(struct columns *c);
bool columns_have(const struct columns *c, const char *name);
/* The line is changed. */
void fields_split(struct fields *f, char *line, char separator);
/* "" when there is no such column, or the line has ended before. */
const char *fields_get(const struct fields *f, const char *name);
/* A number of the column, times scale, rounded; dflt when it is empty. -EINVAL with its name. */
int fields_number(const struct fields *f, const char *name, double scale, uint64_t dflt,
    uint64_t *ret, struct err *err);

/* A file of lines with commas, the first of which names the columns: fn for each of the others; a
 * negative return ends it. "'FILE' line 3: ..." */
int fields_each(const char *path, int (*fn)(void *arg, const struct fields *f, struct err *err),
    void *arg, struct err *err);

#endif
