/* Tables that fit the terminal. Keeps the cells; libsmartcols draws them. */
#include "cli/table.h"

#include <libsmartcols.h>
#include <wchar.h>

#include "base/strv.h"
#include "cli/progress.h"

struct table {
    const struct column *columns;
    size_t count;
    char **cells;
    size_t used, cap;
};

struct table *table_new(const struct column *columns, size_t count)
{
    struct table *t = xnew(struct table);

    t->columns = columns;
    t->count = count;
    return t;
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->used; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
}

void table_freep(struct table **t)
{
    table_free(*t);
}

void table_cell(struct table *t, char *text)
{
    t->cells = xgrow(t->cells, &t->cap, t->used + 1, sizeof(*t->cells));
    t->cells[t->used++] = text;
}

static size_t text_width(const char *text)
{
    wchar_t wide[1024];
    size_t n = mbstowcs(wide, text, ARRAY_LEN(wide) - 1);
    int width;

    if (n == (size_t)-1)
        return strlen(text);
    wide[n] = L'\0';
    width = wcswidth(wide, n);
    return width < 0 ? strlen(text) : (size_t)width;
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t width = strlen(t->columns[column].name);

    for (size_t i = column; i < t->used; i += t->count)
        width = MAX_OF(width, text_width(t->cells[i]));
    return width;
}

/* The shown column that is wanted least, or count when all that is left must stay. */
static size_t least_wanted(const struct table *t, const bool *shown)
{
    size_t worst = t->count;

    for (size_t i = 0; i < t->count; i++)
        if (shown[i] && t->columns[i].drop > 0 &&
            (worst == t->count || t->columns[i].drop > t->columns[worst].drop))
            worst = i;
    return worst;
}

void table_choose(const struct table *t, unsigned width, bool *shown)
{
    size_t total = 0, worst;

    for (size_t i = 0; i < t->count; i++) {
        shown[i] = true;
        /* A column that may be cut is worth showing from 12 characters on. */
        total += (t->columns[i].cut ? MIN_OF(column_width(t, i), 12u) : column_width(t, i)) + 1;
    }
    while (width > 0 && total > width + 1 && (worst = least_wanted(t, shown)) < t->count) {
        shown[worst] = false;
        total -= (t->columns[worst].cut ? MIN_OF(column_width(t, worst), 12u)
                                        : column_width(t, worst)) +
            1;
    }
}

static void fill(const struct table *t, const bool *shown, bool limited, struct libscols_table *out)
{
    for (size_t i = 0; i < t->count; i++)
        if (shown[i])
            scols_table_new_column(out, t->columns[i].name, 0,
                (t->columns[i].right ? SCOLS_FL_RIGHT : 0) |
                    (limited && t->columns[i].cut ? SCOLS_FL_TRUNC : 0));
    for (size_t row = 0; row + t->count <= t->used; row += t->count) {
        struct libscols_line *line = scols_table_new_line(out, NULL);
        size_t at = 0;
        for (size_t i = 0; i < t->count; i++)
            if (shown[i])
                scols_line_set_data(line, at++, t->cells[row + i]);
    }
}

void table_print(const struct table *t, FILE *out)
{
    unsigned width = terminal_width(fileno(out));
    _cleanup_free_ bool *shown = xnew_array(bool, t->count);
    struct libscols_table *drawn = scols_new_table();

    assert(drawn);
    table_choose(t, width, shown);
    fill(t, shown, width > 0, drawn);
    scols_table_set_stream(drawn, out);
    if (width > 0) {
        scols_table_set_termforce(drawn, SCOLS_TERMFORCE_ALWAYS);
        scols_table_set_termwidth(drawn, width);
    } else {
        scols_table_set_termforce(drawn, SCOLS_TERMFORCE_NEVER);
    }
    scols_print_table(drawn);
    scols_unref_table(drawn);
}
