/*
 * Structs in: the reading half of the field tables. Everything here comes from outside: nothing is
 * allocated before its size was checked, and what was filled can always be freed.
 */
#include "base/str.h"
#include "base/strv.h"
#include "model/ip.h"
#include "model/path.h"
#include "wire/fields.h"

static int check_text(const struct field *f, const char *s, struct err *err)
{
    char what[64];

    if (f->empty_ok && !s[0])
        return 0;
    snprintf(what, sizeof(what), "'%s'", f->key);
    if (f->type == FIELD_NAME)
        return name_check(what, s, err);
    if (f->type == FIELD_UUID && !uuid_is_valid(s))
        return err_set(err, -EINVAL, "%s must be a UUID", what);
    if (f->type == FIELD_PATH && !path_is_clean(s))
        return err_set(err, -EINVAL, "%s must be an absolute path without '.' and '..'", what);
    if (f->type == FIELD_ADDRESS && !ip_is_valid(s))
        return err_set(err, -EINVAL, "%s must be an IP address", what);
    if (f->type == FIELD_DIGEST && !digest_is_valid(s))
        return err_set(err, -EINVAL, "%s must be 'sha256:' and 64 hex digits", what);
    return 0;
}

static int read_text(const struct field *f, const json_t *value, char *dst, struct err *err)
{
    const char *s = json_string_value(value);
    int r;

    if (!s)
        return err_set(err, -EINVAL, "'%s' must be a string", f->key);
    if (json_string_length(value) >= f->max)
        return err_set(
            err, -EINVAL, "'%s' must be at most %ju bytes long", f->key, (uintmax_t)f->max - 1);
    if (strlen(s) != json_string_length(value))
        return err_set(err, -EINVAL, "'%s' must not contain a zero byte", f->key);
    r = check_text(f, s, err);
    if (r < 0)
        return r;
    return str_copy(dst, f->max, s);
}

static int read_heap(const struct field *f, const json_t *value, char **dst, struct err *err)
{
    const char *s = json_string_value(value);

    if (json_is_null(value) && f->type == FIELD_HEAP)
        return 0;
    if (!s || strlen(s) != json_string_length(value))
        return err_set(err, -EINVAL, "'%s' must be a string", f->key);
    if (json_string_length(value) > f->max)
        return err_set(
            err, -EINVAL, "'%s' must be at most %ju bytes long", f->key, (uintmax_t)f->max);
    if (f->type == FIELD_HEAP_PATH && !path_is_clean(s))
        return err_set(err, -EINVAL, "'%s' must be an absolute path without '.' and '..'", f->key);
    *dst = xstrdup(s);
    return 0;
}

/* The list, if it is one and not too long. */
static int check_list(const struct field *f, const json_t *value, struct err *err)
{
    if (!json_is_array(value))
        return err_set(err, -EINVAL, "'%s' must be a list", f->key);
    if (json_array_size(value) > f->max)
        return err_set(err, -EINVAL, "'%s' must have at most %ju entries, not %zu", f->key,
            (uintmax_t)f->max, json_array_size(value));
    return 0;
}

static int read_strv(const struct field *f, const json_t *value, char ***dst, struct err *err)
{
    size_t i, bytes = 0;
    json_t *word;
    int r;

    if (json_is_null(value))
        return 0;
    r = check_list(f, value, err);
    if (r < 0)
        return r;
    *dst = xnew_array(char *, json_array_size(value) + 1);
    json_array_foreach (value, i, word) {
        const char *s = json_string_value(word);

        if (!s || strlen(s) != json_string_length(word))
            return err_set(err, -EINVAL, "'%s[%zu]' must be a string", f->key, i);
        bytes += json_string_length(word) + 1;
        if (bytes > STRV_BYTES_MAX)
            return err_set(
                err, -EINVAL, "'%s' must be at most %d bytes long", f->key, STRV_BYTES_MAX);
        (*dst)[i] = xstrdup(s);
    }
    return 0;
}

static int read_word(const struct field *f, const json_t *value, unsigned *dst, struct err *err)
{
    _cleanup_free_ char *shown = NULL;
    const char *s = json_string_value(value);
    int i = words_find(f->words, s);

    if (i >= 0) {
        *dst = (unsigned)i;
        return 0;
    }
    if (!s)
        return err_set(err, -EINVAL, "'%s' must be a string", f->key);
    shown = str_escape(s, strlen(s), 40);
    return err_set(err, -EINVAL, "'%s' cannot be '%s'", f->key, shown);
}

static int read_number(const struct field *f, const json_t *value, uint64_t *ret, struct err *err)
{
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value) || n < 0 || (uint64_t)n < f->min || (uint64_t)n > f->max)
        return err_set(err, -EINVAL, "'%s' must be a whole number from %ju to %ju", f->key,
            (uintmax_t)f->min, (uintmax_t)f->max);
    *ret = (uint64_t)n;
    return 0;
}

static int read_u16(const struct field *f, const json_t *value, uint16_t *dst, struct err *err)
{
    uint64_t n = 0;
    int r = read_number(f, value, &n, err);

    *dst = (uint16_t)n;
    return r;
}

static int read_u32(const struct field *f, const json_t *value, uint32_t *dst, struct err *err)
{
    uint64_t n = 0;
    int r = read_number(f, value, &n, err);

    *dst = (uint32_t)n;
    return r;
}

static int read_int(const struct field *f, const json_t *value, int *dst, struct err *err)
{
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value) || n < INT32_MIN || n > INT32_MAX)
        return err_set(err, -EINVAL, "'%s' must be a whole number of 32 bits", f->key);
    *dst = (int)n;
    return 0;
}

static int read_bool(const struct field *f, const json_t *value, bool *dst, struct err *err)
{
    if (!json_is_boolean(value))
        return err_set(err, -EINVAL, "'%s' must be true or false", f->key);
    *dst = json_is_true(value);
    return 0;
}

static int read_ipv4(const struct field *f, const json_t *value, uint32_t *dst, struct err *err)
{
    if (ipv4_parse(json_string_value(value), dst) < 0)
        return err_set(err, -EINVAL, "'%s' must be an IPv4 address", f->key);
    return 0;
}

static bool has_index(const uint32_t *v, size_t count, uint32_t n)
{
    for (size_t i = 0; i < count; i++)
        if (v[i] == n)
            return true;
    return false;
}

static int read_indexes(
    const struct field *f, const json_t *value, uint32_t **dst, uint32_t *count, struct err *err)
{
    size_t i;
    json_t *entry;
    int r = check_list(f, value, err);

    if (r < 0)
        return r;
    *dst = xnew_array(uint32_t, json_array_size(value));
    json_array_foreach (value, i, entry) {
        json_int_t n = json_integer_value(entry);

        if (!json_is_integer(entry) || n < 0 || (uint64_t)n >= f->max ||
            has_index(*dst, i, (uint32_t)n))
            return err_set(err, -EINVAL, "'%s' must be different whole numbers below %ju", f->key,
                (uintmax_t)f->max);
        (*dst)[i] = (uint32_t)n;
        *count = (uint32_t)i + 1;
    }
    return 0;
}

static int read_list(
    const struct field *f, const json_t *value, void **dst, uint32_t *count, struct err *err)
{
    size_t i;
    json_t *entry;
    int r = check_list(f, value, err);

    if (r < 0)
        return r;
    *dst = xcalloc(json_array_size(value), f->elem_size);
    *count = (uint32_t)json_array_size(value);
    json_array_foreach (value, i, entry) {
        r = fields_read(f->fields, entry, (char *)*dst + i * f->elem_size, err);
        if (r < 0)
            return err_prefix(err, "%s[%zu]", f->key, i), r;
    }
    return 0;
}

static int read_struct(const struct field *f, const json_t *value, void *dst, struct err *err)
{
    int r = fields_read(f->fields, value, dst, err);

    if (r < 0)
        err_prefix(err, "%s", f->key);
    return r;
}

static int read_value(const struct field *f, const json_t *value, char *data, struct err *err)
{
    void *p = data + f->offset;
    uint32_t *count = (void *)(data + f->count_offset);

    switch (f->type) {
    case FIELD_TEXT:
    case FIELD_NAME:
    case FIELD_UUID:
    case FIELD_PATH:
    case FIELD_ADDRESS:
    case FIELD_DIGEST:
        return read_text(f, value, p, err);
    case FIELD_HEAP:
    case FIELD_HEAP_PATH:
        return read_heap(f, value, p, err);
    case FIELD_STRV:
        return read_strv(f, value, p, err);
    case FIELD_WORD:
        return read_word(f, value, p, err);
    case FIELD_BOOL:
        return read_bool(f, value, p, err);
    case FIELD_INT:
        return read_int(f, value, p, err);
    case FIELD_U16:
        return read_u16(f, value, p, err);
    case FIELD_U32:
        return read_u32(f, value, p, err);
    case FIELD_U64:
        return read_number(f, value, p, err);
    case FIELD_IPV4:
        return read_ipv4(f, value, p, err);
    case FIELD_INDEXES:
        return read_indexes(f, value, p, count, err);
    case FIELD_STRUCT:
        return read_struct(f, value, p, err);
    case FIELD_LIST:
        return read_list(f, value, p, count, err);
    case FIELD_END:
        break;
    }
    abort();
}

int fields_read(const struct field *table, const json_t *obj, void *data, struct err *err)
{
    int r;

    if (!json_is_object(obj))
        return err_set(err, -EINVAL, "must be an object");
    for (const struct field *f = table; f->type != FIELD_END; f++) {
        const json_t *value = json_object_get(obj, f->key);

        if (!value && f->optional)
            continue;
        if (!value)
            return err_set(err, -EINVAL, "'%s' is missing", f->key);
        r = read_value(f, value, data, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void list_done(const struct field *f, void **list, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        fields_done(f->fields, (char *)*list + i * f->elem_size);
    free(*list);
    *list = NULL;
    *count = 0;
}

static void value_done(const struct field *f, char *data)
{
    void *p = data + f->offset;

    if (f->type == FIELD_HEAP || f->type == FIELD_HEAP_PATH || f->type == FIELD_INDEXES) {
        free(*(void **)p);
        *(void **)p = NULL;
    } else if (f->type == FIELD_STRV) {
        strv_free(*(char ***)p);
        *(char ***)p = NULL;
    } else if (f->type == FIELD_STRUCT) {
        fields_done(f->fields, p);
    } else if (f->type == FIELD_LIST) {
        list_done(f, p, (void *)(data + f->count_offset));
    }
}

void fields_done(const struct field *table, void *data)
{
    for (const struct field *f = table; f->type != FIELD_END; f++)
        value_done(f, data);
}
