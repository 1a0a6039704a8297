/*
 * Tables for people: fit the terminal by leaving out the least wanted columns, then by cutting the
 * last; whole when the output goes elsewhere. (libsmartcols draws.)
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/base.h"

struct column {
    const char *name;
    unsigned drop; /* 0: always shown; the highest is left out first */
    bool right;    /* numbers */
    bool cut;      /* may be cut to fit */
};

struct table;

/* columns: count of them, kept by reference. */
struct table *table_new(const struct column *columns, size_t count);
/* One cell, in order, row by row; text is taken (heap). */
void table_cell(struct table *t, char *text);
/* Which columns are shown at this width (0: no limit); for tests. shown: count flags. */
void table_choose(const struct table *t, unsigned width, bool *shown);
void table_print(const struct table *t, FILE *out);
void table_free(struct table *t);
void table_freep(struct table **t);

#endif
