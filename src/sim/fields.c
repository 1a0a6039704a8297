/* Fields are cut at a separator; quotes around one are taken off, and a separator inside them does
 * not count. */
#include "sim/fields.h"

#include <ctype.h>
#include <math.h>

#include "base/str.h"

static char *next_field(char **rest, char separator)
{
    char *start = *rest, *end;

    if (*start == '"') {
        end = strchr(++start, '"');
        if (end)
            *end++ = '\0';
        end = end ? strchr(end, separator) : NULL;
    } else {
        end = strchr(start, separator);
    }
    if (end)
        *end = '\0';
    *rest = end ? end + 1 : NULL;
    return start;
}

void fields_split(struct fields *f, char *line, char separator)
{
    char *rest = line;

    line[strcspn(line, "\r\n")] = '\0';
    f->count = 0;
    while (rest && f->count < FIELDS_MAX)
        f->values[f->count++] = next_field(&rest, separator);
}

void columns_read(struct columns *c, char *line, char separator)
{
    struct fields f = {0};

    fields_split(&f, line, separator);
    c->count = f.count;
    for (unsigned i = 0; i < f.count; i++) {
        c->names[i] = xstrdup(f.values[i]);
        for (char *p = c->names[i]; *p; p++)
            *p = (char)tolower((unsigned char)*p);
    }
}

void columns_done(struct columns *c)
{
    for (unsigned i = 0; i < c->count; i++)
        free(c->names[i]);
    c->count = 0;
}

static unsigned find(const struct columns *c, const char *name)
{
    unsigned i = 0;

    while (i < c->count && !str_eq(c->names[i], name))
        i++;
    return i;
}

bool columns_have(const struct columns *c, const char *name)
{
    return find(c, name) < c->count;
}

const char *fields_get(const struct fields *f, const char *name)
{
    unsigned i = f->columns ? find(f->columns, name) : FIELDS_MAX;

    return i < f->count ? f->values[i] : "";
}

int fields_number(const struct fields *f, const char *name, double scale, uint64_t dflt,
    uint64_t *ret, struct err *err)
{
    const char *text = fields_get(f, name);
    char *end;
    double n;

    *ret = dflt;
    if (!text[0])
        return 0;
    errno = 0;
    n = strtod(text, &end) * scale;
    if (errno || *end || !(n >= 0 && n < 9e18))
        return err_set(err, -EINVAL, "'%s' is '%.40s', not a number", name, text);
    *ret = (uint64_t)llround(n);
    return 0;
}

int fields_each(const char *path, int (*fn)(void *arg, const struct fields *f, struct err *err),
    void *arg, struct err *err)
{
    _cleanup_free_ char *line = xcalloc(1, FIELDS_LINE_MAX);
    _cleanup_(columns_done) struct columns columns = {0};
    struct fields f = {.columns = &columns};
    FILE *file = fopen(path, "re");
    unsigned long number = 0;
    int r = 0;

    if (!file)
        return err_sys(err, -errno, "cannot open '%s'", path);
    while (r == 0 && fgets(line, FIELDS_LINE_MAX, file)) {
        if (!strchr(line, '\n') && !feof(file))
            r = err_set(err, -E2BIG, "the line is too long");
        if (number++ == 0) {
            columns_read(&columns, line, ',');
            continue;
        }
        fields_split(&f, line, ',');
        if (r == 0)
            r = fn(arg, &f, err);
    }
    fclose(file);
    return r < 0 ? err_prefix(err, "'%s' line %lu", path, number) : 0;
}
