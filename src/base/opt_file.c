/*
 * The configuration file: YAML whose nested mappings spell the dotted names of the options. Every
 * error carries FILE:LINE. A file is bounded, one document, and sets each option once.
 */
#include <yaml.h>

#include "base/fs.h"
#include "base/opt_table.h"
#include "base/str.h"
#include "base/strv.h"

#define FILE_MAX_BYTES (1024 * 1024)

struct file {
    const struct opt *table;
    void *config;
    const char *path;
    yaml_document_t *doc;
    char **seen; /* full names of the options and sections so far */
};

static int mapping(struct file *f, const yaml_node_t *node, const char *prefix, struct err *err);

/* Put "FILE:LINE" before the error that is in err. */
static int at_node(const struct file *f, const yaml_node_t *node, struct err *err)
{
    return err_prefix(err, "%s:%zu", f->path, node->start_mark.line + 1);
}

/* Text of a scalar, borrowed; NULL if the node is none or has a NUL in it. */
static const char *scalar_text(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;

    if (node->type != YAML_SCALAR_NODE || strlen(text) != node->data.scalar.length)
        return NULL;
    return text;
}

/* Nothing behind the colon, or null. */
static bool is_null(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    const char *text = scalar_text(node);

    if (!text || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(nulls); i++)
        if (str_eq(text, nulls[i]))
            return true;
    return false;
}

static int value(struct file *f, const struct opt *o, const yaml_node_t *node, struct err *err)
{
    const char *text = scalar_text(node);
    int r;

    if (is_null(node))
        r = err_set(err, -EINVAL, "has no value");
    else if (!text)
        r = err_set(err, -EINVAL, "must be text or a number%s",
            o->type == OPT_STRV ? ", or a list of them" : "");
    else
        r = opt_set(o, f->config, text, err);
    if (r == 0)
        return 0;
    err_prefix(err, "'%s'", o->name);
    return at_node(f, node, err);
}

static int list(struct file *f, const struct opt *o, const yaml_node_t *node, struct err *err)
{
    const yaml_node_item_t *item = node->data.sequence.items.start;

    for (; item < node->data.sequence.items.top; item++) {
        int r = value(f, o, yaml_document_get_node(f->doc, *item), err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int option(struct file *f, const struct opt *o, const yaml_node_t *node, struct err *err)
{
    if (o->type != OPT_STRV)
        return value(f, o, node, err);
    opt_clear(o, f->config); /* the default's elements */
    if (node->type == YAML_SEQUENCE_NODE)
        return list(f, o, node, err);
    return value(f, o, node, err);
}

/* "scheduler" is a section when there is a "scheduler.backfill_depth". */
static bool is_section(const struct opt *table, const char *name)
{
    size_t len = strlen(name);

    opt_for_each(o, table) if (str_starts(o->name, name) && o->name[len] == '.') return true;
    return false;
}

static int section(struct file *f, const char *name, const yaml_node_t *node, struct err *err)
{
    if (is_null(node)) /* all its lines are commented out */
        return 0;
    if (node->type == YAML_MAPPING_NODE)
        return mapping(f, node, name, err);
    err_set(err, -EINVAL, "'%s' must have options below it", name);
    return at_node(f, node, err);
}

/* May this name stand here? Also notes that it did. */
static int name_allowed(struct file *f, const char *name, const struct opt *o, struct err *err)
{
    if (!o && !is_section(f->table, name))
        return opt_unknown(f->table, name, false, err);
    if (o && o->line_only)
        return err_set(err, -EINVAL, "'%s' goes on the command line only", name);
    if (strv_has(f->seen, name))
        return err_set(err, -EINVAL, "'%s' stands here twice", name);
    strv_push(&f->seen, name);
    return 0;
}

static int pair(struct file *f, const yaml_node_pair_t *p, const char *prefix, struct err *err)
{
    const yaml_node_t *key = yaml_document_get_node(f->doc, p->key);
    const yaml_node_t *node = yaml_document_get_node(f->doc, p->value);
    const char *text = scalar_text(key);
    _cleanup_free_ char *name = NULL;
    const struct opt *o;

    if (!text) {
        err_set(err, -EINVAL, "the name of an option must be text");
        return at_node(f, key, err);
    }
    name = prefix ? xasprintf("%s.%s", prefix, text) : xstrdup(text);
    o = opt_find(f->table, name);
    if (name_allowed(f, name, o, err) < 0)
        return at_node(f, key, err);
    return o ? option(f, o, node, err) : section(f, name, node, err);
}

/* Ends although aliases may make the document a loop: every name leads to a row of the table. */
static int mapping(struct file *f, const yaml_node_t *node, const char *prefix, struct err *err)
{
    const yaml_node_pair_t *p = node->data.mapping.pairs.start;

    for (; p < node->data.mapping.pairs.top; p++) {
        int r = pair(f, p, prefix, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int document(struct file *f, struct err *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(f->doc);

    if (!root || is_null(root))
        return 0;
    if (root->type == YAML_MAPPING_NODE)
        return mapping(f, root, NULL, err);
    err_set(err, -EINVAL, "a configuration file is a list of 'name: value'");
    return at_node(f, root, err);
}

static int broken(const yaml_parser_t *parser, const char *path, struct err *err)
{
    return err_set(err, -EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1,
        parser->problem ? parser->problem : "not YAML");
}

/* Nothing may come behind the first document. */
static int check_end(yaml_parser_t *parser, const char *path, struct err *err)
{
    yaml_document_t next;
    size_t line = parser->mark.line + 1;
    bool more;

    if (!yaml_parser_load(parser, &next))
        return broken(parser, path, err);
    more = yaml_document_get_root_node(&next) != NULL;
    yaml_document_delete(&next);
    if (more)
        return err_set(err, -EINVAL, "%s:%zu: a second document", path, line);
    return 0;
}

static int load(struct file *f, yaml_parser_t *parser, struct err *err)
{
    yaml_document_t doc;
    int r;

    if (!yaml_parser_load(parser, &doc))
        return broken(parser, f->path, err);
    f->doc = &doc;
    r = document(f, err);
    /* An empty stream has no second document to ask for. */
    if (r == 0 && yaml_document_get_root_node(&doc))
        r = check_end(parser, f->path, err);
    yaml_document_delete(&doc);
    f->doc = NULL;
    return r;
}

int opt_load(const struct opt *table, void *config, const char *path, struct err *err)
{
    struct file f = {.table = table, .config = config, .path = path};
    _cleanup_free_ char *text = NULL;
    struct err local = ERR_INIT;
    yaml_parser_t parser;
    size_t len;
    int r;

    err = err ? err : &local; /* texts are put together in it */
    r = fs_read(path, FILE_MAX_BYTES, &text, &len, err);
    if (r < 0)
        return r;
    r = yaml_parser_initialize(&parser);
    assert(r == 1);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    r = load(&f, &parser, err);
    yaml_parser_delete(&parser);
    strv_free(f.seen);
    return r;
}
