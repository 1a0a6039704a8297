/*
 * Helpers over jansson: bounded parsing, reading members with errors that name them, setting them
 * in one call. The bounds (bytes, depth) are checked before jansson sees the text.
 */
#include "base/json.h"

#include "base/str.h"

#define DEPTH_MAX 32

/* Brackets open at one time, outside strings. Broken text is left for the parser to report. */
static bool too_deep(const char *text, size_t len, int *ret_line)
{
    bool in_string = false;
    int depth = 0, line = 1;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        line += c == '\n';
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{'))
            depth++;
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
        if (depth > DEPTH_MAX) {
            *ret_line = line;
            return true;
        }
    }
    return false;
}

int json_parse(const char *text, size_t len, size_t max, json_t **ret, struct err *err)
{
    _cleanup_free_ char *reason = NULL;
    json_error_t error;
    json_t *doc;
    int line;

    if (len > max)
        return err_set(err, -EINVAL, "line 1: larger than %zu bytes", max);
    if (too_deep(text, len, &line))
        return err_set(err, -EINVAL, "line %d: nested deeper than %d", line, DEPTH_MAX);
    doc = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!doc) {
        /* jansson's reason quotes the text near the error. */
        reason = str_escape(error.text, strlen(error.text), 160);
        return err_set(err, -EINVAL, "line %d: %s", MAX_OF(error.line, 1), reason);
    }
    *ret = doc;
    return 0;
}

char *json_text(const json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);

    assert(text); /* a NULL or cyclic value is the caller's mistake */
    return text;
}

/* The member, borrowed; -ENOENT when it is missing or null. */
static int member(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
    json_t *value;

    if (!json_is_object(obj))
        return err_set(err, -EINVAL, "must be an object with '%s'", key);
    value = json_object_get(obj, key);
    if (!value || json_is_null(value))
        return err_set(err, -ENOENT, "'%s' is missing", key);
    *ret = value;
    return 0;
}

int json_get_str(const json_t *obj, const char *key, const char **ret, struct err *err)
{
    json_t *value = NULL;
    int r = member(obj, key, &value, err);

    if (r < 0)
        return r;
    if (!json_is_string(value))
        return err_set(err, -EINVAL, "'%s' must be a string", key);
    *ret = json_string_value(value);
    return 0;
}

int json_get_u64(const json_t *obj, const char *key, uint64_t max, uint64_t *ret, struct err *err)
{
    json_t *value = NULL;
    int r = member(obj, key, &value, err);

    if (r < 0)
        return r;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return err_set(
            err, -EINVAL, "'%s' must be a whole number from 0 to %ju", key, (uintmax_t)max);
    *ret = (uint64_t)json_integer_value(value);
    return 0;
}

int json_get_i64(const json_t *obj, const char *key, int64_t *ret, struct err *err)
{
    json_t *value = NULL;
    int r = member(obj, key, &value, err);

    if (r < 0)
        return r;
    if (!json_is_integer(value))
        return err_set(err, -EINVAL, "'%s' must be a whole number", key);
    *ret = json_integer_value(value);
    return 0;
}

int json_get_bool(const json_t *obj, const char *key, bool *ret, struct err *err)
{
    json_t *value = NULL;
    int r = member(obj, key, &value, err);

    if (r < 0)
        return r;
    if (!json_is_boolean(value))
        return err_set(err, -EINVAL, "'%s' must be true or false", key);
    *ret = json_is_true(value);
    return 0;
}

int json_get_obj(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
    json_t *value = NULL;
    int r = member(obj, key, &value, err);

    if (r < 0)
        return r;
    if (!json_is_object(value))
        return err_set(err, -EINVAL, "'%s' must be an object", key);
    *ret = value;
    return 0;
}

int json_get_arr(const json_t *obj, const char *key, json_t **ret, struct err *err)
{
    json_t *value = NULL;
    int r = member(obj, key, &value, err);

    if (r < 0)
        return r;
    if (!json_is_array(value))
        return err_set(err, -EINVAL, "'%s' must be a list", key);
    *ret = value;
    return 0;
}

const char *json_str_or(const json_t *obj, const char *key, const char *dflt)
{
    const char *value = json_string_value(json_object_get(obj, key));

    return value ? value : dflt;
}

uint64_t json_u64_or(const json_t *obj, const char *key, uint64_t dflt)
{
    uint64_t value = dflt;

    (void)json_get_u64(obj, key, UINT64_MAX, &value, NULL);
    return value;
}

bool json_bool_or(const json_t *obj, const char *key, bool dflt)
{
    const json_t *value = json_object_get(obj, key);

    return json_is_boolean(value) ? json_is_true(value) : dflt;
}

static void set(json_t *obj, const char *key, json_t *value)
{
    int r = json_object_set_new(obj, key, value);

    assert(r == 0); /* obj is no object, or the key is not UTF-8 */
}

/* JSON has no bytes that are not UTF-8: such a string goes out escaped. */
static json_t *string_make(const char *s)
{
    _cleanup_free_ char *escaped = NULL;
    json_t *value = json_string(s);

    if (value)
        return value;
    escaped = str_escape(s, strlen(s), SIZE_MAX);
    return json_string(escaped);
}

void json_set_str(json_t *obj, const char *key, const char *value)
{
    set(obj, key, value ? string_make(value) : json_null());
}

void json_set_u64(json_t *obj, const char *key, uint64_t value)
{
    assert(value <= INT64_MAX);
    set(obj, key, json_integer((json_int_t)value));
}

void json_set_bool(json_t *obj, const char *key, bool value)
{
    set(obj, key, json_boolean(value));
}

void json_set_strv(json_t *obj, const char *key, char *const *v)
{
    json_t *list = json_array();

    for (; v && *v; v++)
        json_array_append_new(list, string_make(*v));
    set(obj, key, list);
}
