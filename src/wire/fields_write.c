/* Structs out: the writing half of the field tables. */
#include "base/strv.h"
#include "model/ip.h"
#include "wire/fields.h"

/* A text that was cut may end within a character. Every byte that is not ASCII becomes '?', so that
 * it grows no longer than its array and can be read again. */
static json_t *text_make(const char *s)
{
    _cleanup_free_ char *ascii = NULL;
    json_t *value = json_string(s);

    if (value)
        return value;
    ascii = xstrdup(s);
    for (char *p = ascii; *p; p++)
        if (*p & 0x80)
            *p = '?';
    return json_string(ascii);
}

static json_t *strv_make(char *const *v)
{
    json_t *list;

    if (!v)
        return json_null();
    list = json_array();
    for (; *v; v++)
        json_array_append_new(list, text_make(*v));
    return list;
}

static json_t *number_make(uint64_t n)
{
    assert(n <= INT64_MAX);
    return json_integer((json_int_t)n);
}

static json_t *indexes_make(const uint32_t *v, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, number_make(v[i]));
    return list;
}

static json_t *list_make(const struct field *f, const char *elems, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, fields_to_json(f->fields, elems + i * f->elem_size));
    return list;
}

static json_t *ipv4_make(uint32_t ip)
{
    char text[IPV4_TEXT_MAX];

    return json_string(ipv4_format(ip, text));
}

static json_t *word_make(const struct words *words, unsigned value)
{
    assert(value < words->count);
    return json_string(words->list[value]);
}

static json_t *value_make(const struct field *f, const char *data)
{
    const void *p = data + f->offset;
    const uint32_t *count = (const void *)(data + f->count_offset);

    switch (f->type) {
    case FIELD_TEXT:
    case FIELD_NAME:
    case FIELD_UUID:
    case FIELD_PATH:
    case FIELD_ADDRESS:
    case FIELD_DIGEST:
        return text_make(p);
    case FIELD_HEAP:
    case FIELD_HEAP_PATH:
        return *(char *const *)p ? text_make(*(char *const *)p) : json_null();
    case FIELD_STRV:
        return strv_make(*(char *const *const *)p);
    case FIELD_WORD:
        return word_make(f->words, *(const unsigned *)p);
    case FIELD_BOOL:
        return json_boolean(*(const bool *)p);
    case FIELD_INT:
        return json_integer(*(const int *)p);
    case FIELD_U16:
        return number_make(*(const uint16_t *)p);
    case FIELD_U32:
        return number_make(*(const uint32_t *)p);
    case FIELD_U64:
        return number_make(*(const uint64_t *)p);
    case FIELD_IPV4:
        return ipv4_make(*(const uint32_t *)p);
    case FIELD_INDEXES:
        return indexes_make(*(const uint32_t *const *)p, *count);
    case FIELD_STRUCT:
        return fields_to_json(f->fields, p);
    case FIELD_LIST:
        return list_make(f, *(void *const *)p, *count);
    case FIELD_END:
        break;
    }
    abort();
}

void fields_write(const struct field *table, const void *data, json_t *obj)
{
    for (const struct field *f = table; f->type != FIELD_END; f++)
        json_object_set_new(obj, f->key, value_make(f, data));
}

json_t *fields_to_json(const struct field *table, const void *data)
{
    json_t *obj = json_object();

    fields_write(table, data, obj);
    return obj;
}
