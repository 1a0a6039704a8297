/*
 * YAML to JSON by libyaml's document tree. Aliases are refused, not expanded: a few lines of them
 * would become gigabytes.
 */
#include "agent/ct/cdi_yaml.h"

#include <yaml.h>

#include "base/str.h"

#define DEPTH_MAX 32

static json_t *convert(yaml_document_t *doc, int index, int depth, struct err *err);

static json_t *refuse(const yaml_node_t *node, const char *why, struct err *err)
{
    err_set(err, -EINVAL, "line %zu: %s", node->start_mark.line + 1, why);
    return NULL;
}

static json_t *scalar(const yaml_node_t *node, struct err *err)
{
    const char *text = (const char *)node->data.scalar.value;
    int64_t number;
    json_t *value;

    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (str_to_i64(text, INT64_MIN, INT64_MAX, &number) == 0)
            return json_integer(number);
        if (str_eq(text, "true") || str_eq(text, "false"))
            return json_boolean(str_eq(text, "true"));
        if (!*text || str_eq(text, "null") || str_eq(text, "~"))
            return json_null();
    }
    value = json_stringn(text, node->data.scalar.length);
    return value ? value : refuse(node, "not valid UTF-8", err);
}

static json_t *sequence(yaml_document_t *doc, const yaml_node_t *node, int depth, struct err *err)
{
    json_t *list = json_array();

    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         i < node->data.sequence.items.top; i++)
        if (json_array_append_new(list, convert(doc, *i, depth, err)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *mapping(yaml_document_t *doc, const yaml_node_t *node, int depth, struct err *err)
{
    json_t *object = json_object();

    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
         p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(doc, p->key);
        json_t *value = NULL;

        if (key && key->type == YAML_SCALAR_NODE)
            value = convert(doc, p->value, depth, err);
        else
            refuse(node, "a key must be a word", err);
        if (!value ||
            json_object_set_new(object, (const char *)key->data.scalar.value, value) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *convert(yaml_document_t *doc, int index, int depth, struct err *err)
{
    const yaml_node_t *node = yaml_document_get_node(doc, index);

    if (!node)
        return NULL;
    if (depth > DEPTH_MAX)
        return refuse(node, "nested too deeply", err);
    if (node->type == YAML_SCALAR_NODE)
        return scalar(node, err);
    if (node->type == YAML_SEQUENCE_NODE)
        return sequence(doc, node, depth + 1, err);
    return mapping(doc, node, depth + 1, err);
}

/* The tree of libyaml has aliases resolved already: look for them in the events before. */
static int check_events(const char *text, size_t len, struct err *err)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool last = false;
    int r = 0;

    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    while (r == 0 && !last) {
        if (!yaml_parser_parse(&parser, &event)) {
            r = err_set(err, -EINVAL, "line %zu: %s", parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "not YAML");
            break;
        }
        if (event.type == YAML_ALIAS_EVENT)
            r = err_set(
                err, -EINVAL, "line %zu: an alias is not taken here", event.start_mark.line + 1);
        last = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return r;
}

static int load(const char *text, size_t len, json_t **ret, struct err *err)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    json_t *json = NULL;

    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (yaml_parser_load(&parser, &doc)) {
        yaml_node_t *root = yaml_document_get_root_node(&doc);

        if (root)
            json = convert(&doc, 1, 0, err);
        else
            err_set(err, -EINVAL, "an empty document");
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    if (!json)
        return err && err->code < 0 ? err->code : -EINVAL;
    *ret = json;
    return 0;
}

int yaml_to_json(const char *text, size_t len, size_t max, json_t **ret, struct err *err)
{
    int r;

    if (len > max)
        return err_set(err, -EFBIG, "larger than %zu bytes", max);
    r = check_events(text, len, err);
    return r < 0 ? r : load(text, len, ret, err);
}
