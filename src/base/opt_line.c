/*
 * The command line: "--name value", "--name=value", "--no-name", "-n value", "-nvalue", and short
 * switches together ("-vq"). Stops at the first word that is no option.
 */
#include "base/opt_table.h"
#include "base/str.h"

struct line {
    const struct opt *table;
    void *config;
    int argc;
    char **argv;
    int at;     /* the word being read; moves on when it takes the next as its value */
    bool *seen; /* by row */
};

static const struct opt *find_long(const struct opt *table, const char *name)
{
    char other[OPT_NAME_MAX];

    opt_for_each(o, table) if (str_eq(opt_line_name(o, other), name)) return o;
    return NULL;
}

static const struct opt *find_short(const struct opt *table, char letter)
{
    opt_for_each(o, table) if (o->short_name == letter) return o;
    return NULL;
}

/* shown: the option as the user wrote it. value NULL: the next word. */
static int apply(
    struct line *l, const struct opt *o, const char *shown, const char *value, struct err *err)
{
    size_t row = (size_t)(o - l->table);

    if (!value && l->at + 1 >= l->argc)
        return err_set(err, -EINVAL, "%s needs a value: %s", shown, o->arg ? o->arg : "VALUE");
    if (!value)
        value = l->argv[++l->at];
    if (o->type == OPT_STRV && !l->seen[row])
        opt_clear(o, l->config); /* what the file or the default said */
    l->seen[row] = true;
    if (opt_set(o, l->config, value, err) < 0)
        return err_prefix(err, "%s", shown);
    return 0;
}

static int long_option(struct line *l, const char *word, struct err *err)
{
    const char *equals = strchr(word, '=');
    _cleanup_free_ char *shown = equals ? xstrndup(word, (size_t)(equals - word)) : xstrdup(word);
    const char *name = shown + 2;
    const char *value = equals ? equals + 1 : NULL;
    const struct opt *o = find_long(l->table, name);

    if (o)
        return apply(l, o, shown, !value && o->type == OPT_BOOL ? "yes" : value, err);
    if (str_starts(name, "no-"))
        o = find_long(l->table, name + 3);
    if (!o || o->type != OPT_BOOL)
        return opt_unknown(l->table, name, true, err);
    if (value)
        return err_set(err, -EINVAL, "%s takes no value", shown);
    return apply(l, o, shown, "no", err);
}

static int short_options(struct line *l, const char *word, struct err *err)
{
    for (const char *c = word + 1; *c; c++) {
        const struct opt *o = find_short(l->table, *c);
        char shown[] = {'-', *c, '\0'};
        int r;

        if (!o) {
            _cleanup_free_ char *echo = str_escape(word, strlen(word), OPT_NAME_MAX);

            return err_set(err, -EINVAL, "unknown option '%s'", echo);
        }
        if (o->type != OPT_BOOL)
            return apply(l, o, shown, c[1] ? c + 1 : NULL, err);
        r = apply(l, o, shown, "yes", err);
        if (r < 0)
            return r;
    }
    return 0;
}

static size_t row_count(const struct opt *table)
{
    size_t n = 0;

    while (table[n].name)
        n++;
    return n;
}

int opt_parse(
    const struct opt *table, void *config, int argc, char **argv, int *ret_rest, struct err *err)
{
    _cleanup_free_ bool *seen = xnew_array(bool, row_count(table));
    struct line l = {table, config, argc, argv, 1, seen};
    struct err local = ERR_INIT;

    err = err ? err : &local;
    for (; l.at < argc; l.at++) {
        const char *word = argv[l.at];
        int r;

        if (word[0] != '-' || !word[1])
            break;
        if (str_eq(word, "--")) {
            l.at++;
            break;
        }
        r = word[1] == '-' ? long_option(&l, word, err) : short_options(&l, word, err);
        if (r < 0)
            return r;
    }
    *ret_rest = MIN_OF(l.at, argc);
    return 0;
}
