/*
 * Options from a table: what a row's member holds, defaults, --help, and the order in which the
 * sources are read. The file is read in opt_file.c, the command line in opt_line.c; both set
 * members only through opt_set.
 */
#include "base/opt.h"

#include <strings.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/opt_table.h"
#include "base/str.h"
#include "base/strv.h"

/* The member of a row, as what its type says. */
#define MEMBER(o, config, type) ((type *)((char *)(config) + (o)->offset))

const struct opt *opt_find(const struct opt *table, const char *name)
{
    opt_for_each(o, table) if (str_eq(o->name, name)) return o;
    return NULL;
}

char *opt_line_name(const struct opt *o, char name[OPT_NAME_MAX])
{
    int r = str_copy(name, OPT_NAME_MAX, o->name);

    assert(r == 0);
    for (char *c = name; *c; c++)
        if (*c == '.' || *c == '_')
            *c = '-';
    return name;
}

int opt_unknown(const struct opt *table, const char *name, bool on_line, struct err *err)
{
    _cleanup_free_ char *echo = str_escape(name, strlen(name), OPT_NAME_MAX);
    const char *dashes = on_line ? "--" : "";
    char best[OPT_NAME_MAX] = "";
    size_t least = strlen(name) / 4 + 2;

    opt_for_each(o, table)
    {
        char other[OPT_NAME_MAX];
        size_t distance;

        if (o->line_only && !on_line)
            continue;
        if (on_line)
            opt_line_name(o, other);
        else
            STR_SET(other, o->name);
        distance = str_distance(name, other);
        if (distance < least) {
            least = distance;
            STR_SET(best, other);
        }
    }
    if (!*best)
        return err_set(err, -EINVAL, "unknown option '%s%s'", dashes, echo);
    return err_set(
        err, -EINVAL, "unknown option '%s%s'; did you mean '%s%s'?", dashes, echo, dashes, best);
}

static int bool_parse(const char *text, bool *ret, struct err *err)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
    _cleanup_free_ char *echo = NULL;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasecmp(text, words[i]) == 0) {
            *ret = i % 2;
            return 0;
        }
    echo = str_escape(text, strlen(text), 80);
    return err_set(err, -EINVAL, "'%s' must be yes or no", echo);
}

static int number_parse(const char *text, uint64_t *ret, struct err *err)
{
    _cleanup_free_ char *echo = NULL;
    int r = str_to_u64(text, UINT64_MAX, ret);

    if (r == 0)
        return 0;
    echo = str_escape(text, strlen(text), 80);
    if (r == -ERANGE)
        return err_set(err, r, "'%s' is too large", echo);
    return err_set(err, r, "'%s' is not a whole number", echo);
}

int opt_set(const struct opt *o, void *config, const char *text, struct err *err)
{
    int r = o->check ? o->check(text, err) : 0;

    if (r < 0)
        return r;
    switch (o->type) {
    case OPT_STR:
        opt_clear(o, config);
        *MEMBER(o, config, char *) = xstrdup(text);
        return 0;
    case OPT_STRV:
        strv_push(MEMBER(o, config, char **), text);
        return 0;
    case OPT_BOOL:
        return bool_parse(text, MEMBER(o, config, bool), err);
    case OPT_U64:
        return number_parse(text, MEMBER(o, config, uint64_t), err);
    case OPT_SIZE:
        return size_parse(text, MEMBER(o, config, uint64_t), err);
    case OPT_DURATION:
        return duration_parse(text, MEMBER(o, config, uint64_t), err);
    }
    abort();
}

void opt_clear(const struct opt *o, void *config)
{
    switch (o->type) {
    case OPT_STR:
        free(TAKE_PTR(*MEMBER(o, config, char *)));
        return;
    case OPT_STRV:
        strv_free(TAKE_PTR(*MEMBER(o, config, char **)));
        return;
    case OPT_BOOL:
        *MEMBER(o, config, bool) = false;
        return;
    case OPT_U64:
    case OPT_SIZE:
    case OPT_DURATION:
        *MEMBER(o, config, uint64_t) = 0;
        return;
    }
    abort();
}

static void default_set(const struct opt *o, void *config)
{
    _cleanup_(strv_freep) char **parts = NULL;

    opt_clear(o, config);
    if (!o->dflt)
        return;
    if (o->type == OPT_STRV)
        parts = strv_split(o->dflt, ',');
    else
        strv_push(&parts, o->dflt);
    strv_for_each (text, parts) {
        int r = opt_set(o, config, *text, NULL);

        assert(r == 0); /* the table is wrong */
    }
}

void opt_defaults(const struct opt *table, void *config)
{
    opt_for_each(o, table) default_set(o, config);
}

void opt_free(const struct opt *table, void *config)
{
    opt_for_each(o, table) opt_clear(o, config);
}

/* --help and --version must work with a broken file. */
static bool only_asks(const struct opt *table, const void *config)
{
    static const char *const names[] = {"help", "version"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct opt *o = opt_find(table, names[i]);

        if (o && o->line_only && o->type == OPT_BOOL && *MEMBER(o, config, const bool))
            return true;
    }
    return false;
}

int opt_read(const struct opt *table, void *config, size_t config_path_offset,
    const char *dflt_path, int argc, char **argv, int *ret_rest, struct err *err)
{
    _cleanup_free_ char *path = NULL;
    int r;

    /* The line is read twice: first for --config, then once more over what the file said. */
    opt_defaults(table, config);
    r = opt_parse(table, config, argc, argv, ret_rest, err);
    if (r < 0 || only_asks(table, config))
        return r;
    path = xstrdup(*(char **)((char *)config + config_path_offset));
    if (!path && dflt_path && fs_exists(dflt_path))
        path = xstrdup(dflt_path);
    opt_defaults(table, config);
    r = path ? opt_load(table, config, path, err) : 0;
    if (r < 0)
        return r;
    return opt_parse(table, config, argc, argv, ret_rest, err);
}

/* "  -l, --listen HOST:PORT" */
static char *help_left(const struct opt *o)
{
    char name[OPT_NAME_MAX], letter[8] = "    ";

    opt_line_name(o, name);
    if (o->short_name)
        snprintf(letter, sizeof(letter), "-%c, ", o->short_name);
    return xasprintf("  %s--%s%s%s", letter, name, o->arg ? " " : "", o->arg ? o->arg : "");
}

void opt_print_help(const struct opt *table, FILE *out)
{
    size_t width = 0;

    opt_for_each(o, table)
    {
        _cleanup_free_ char *left = help_left(o);

        width = MAX_OF(width, strlen(left));
    }
    opt_for_each(o, table)
    {
        _cleanup_free_ char *left = help_left(o);

        fprintf(out, "%-*s   %s", (int)width, left, o->help);
        if (o->dflt)
            fprintf(out, " (default: %s)", o->dflt);
        fputc('\n', out);
    }
}
