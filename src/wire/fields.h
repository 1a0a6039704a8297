/*
 * Struct <-> JSON by one table a struct: both directions, the checks and the freeing come from the
 * same rows, so they cannot disagree. Numbers are bounded, strings fit their arrays, lists have a
 * maximum; what a table cannot say (two fields that must agree) is checked by its noun afterwards.
 *
 * Members of the document that the table does not know are passed over: an older reader
 * understands a newer writer.
 */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include "base/json.h"
#include "model/words.h"

enum field_type {
    FIELD_TEXT,      /* char[max]: any text that fits */
    FIELD_NAME,      /* char[max]: as name_check takes it */
    FIELD_UUID,      /* char[max] */
    FIELD_PATH,      /* char[max]: absolute and clean */
    FIELD_ADDRESS,   /* char[max]: an IP address */
    FIELD_DIGEST,    /* char[max]: "sha256:" and 64 hex digits */
    FIELD_HEAP,      /* char *, NULL is null; at most max bytes */
    FIELD_HEAP_PATH, /* char *, never NULL: absolute and clean */
    FIELD_STRV, /* char **, NULL is null; at most max words, their bytes at most STRV_BYTES_MAX */
    FIELD_WORD, /* an enumeration, by words */
    FIELD_BOOL,
    FIELD_INT, /* int */
    FIELD_U16,
    FIELD_U32,
    FIELD_U64,     /* from min to max */
    FIELD_IPV4,    /* uint32_t in host byte order, as text */
    FIELD_INDEXES, /* uint32_t *, and its count: different numbers below max, at most max of them */
    FIELD_STRUCT,  /* a struct within, by fields */
    FIELD_LIST,    /* pointer to structs of elem_size, and their count: at most max */
    FIELD_END = -1,
};

#define STRV_BYTES_MAX (256 * 1024)

struct field {
    const char *key;
    enum field_type type;
    size_t offset;
    uint64_t min, max;
    bool empty_ok;       /* of the text types: "" passes unchecked */
    bool optional;       /* missing: the member stays as it was */
    size_t count_offset; /* uint32_t */
    const struct words *words;
    const struct field *fields;
    size_t elem_size;
};

/* clang-format off */
#define F_SIZE(s, m) sizeof(((s *)0)->m)
#define F_TYPED(s, m, member_type) \
    (offsetof(s, m) + 0 * sizeof(char[_Generic(((s *)0)->m, member_type: 1)]))
#define F_ARRAY(s, m, t, ...) {.key = #m, .type = t, .offset = offsetof(s, m), .max = F_SIZE(s, m), __VA_ARGS__}
#define F_TEXT(s, m, ...) F_ARRAY(s, m, FIELD_TEXT, __VA_ARGS__)
#define F_NAME(s, m, ...) F_ARRAY(s, m, FIELD_NAME, __VA_ARGS__)
#define F_UUID(s, m, ...) F_ARRAY(s, m, FIELD_UUID, __VA_ARGS__)
#define F_PATH(s, m, ...) F_ARRAY(s, m, FIELD_PATH, __VA_ARGS__)
#define F_ADDRESS(s, m, ...) F_ARRAY(s, m, FIELD_ADDRESS, __VA_ARGS__)
#define F_DIGEST(s, m, ...) F_ARRAY(s, m, FIELD_DIGEST, __VA_ARGS__)
#define F_HEAP(s, m, most, ...) {.key = #m, .type = FIELD_HEAP, .offset = F_TYPED(s, m, char *), .max = (most), __VA_ARGS__}
#define F_HEAP_PATH(s, m, most, ...) {.key = #m, .type = FIELD_HEAP_PATH, .offset = F_TYPED(s, m, char *), .max = (most), __VA_ARGS__}
#define F_STRV(s, m, most, ...) {.key = #m, .type = FIELD_STRV, .offset = F_TYPED(s, m, char **), .max = (most), __VA_ARGS__}
#define F_WORD(s, m, w, ...) {.key = #m, .type = FIELD_WORD, .offset = offsetof(s, m), .words = &(w), __VA_ARGS__}
#define F_BOOL(s, m, ...) {.key = #m, .type = FIELD_BOOL, .offset = F_TYPED(s, m, bool), __VA_ARGS__}
#define F_INT(s, m, ...) {.key = #m, .type = FIELD_INT, .offset = F_TYPED(s, m, int), __VA_ARGS__}
#define F_U16(s, m, ...) {.key = #m, .type = FIELD_U16, .offset = F_TYPED(s, m, uint16_t), .max = UINT16_MAX, __VA_ARGS__}
#define F_U32(s, m, most, ...) {.key = #m, .type = FIELD_U32, .offset = F_TYPED(s, m, uint32_t), .max = (most), __VA_ARGS__}
#define F_U64(s, m, most, ...) {.key = #m, .type = FIELD_U64, .offset = F_TYPED(s, m, uint64_t), .max = (most), __VA_ARGS__}
#define F_IPV4(s, m, ...) {.key = #m, .type = FIELD_IPV4, .offset = F_TYPED(s, m, uint32_t), __VA_ARGS__}
#define F_INDEXES(s, m, count, most, ...) {.key = #m, .type = FIELD_INDEXES, .offset = F_TYPED(s, m, uint32_t *), .count_offset = F_TYPED(s, count, uint32_t), .max = (most), __VA_ARGS__}
#define F_STRUCT(s, m, f, ...) {.key = #m, .type = FIELD_STRUCT, .offset = offsetof(s, m), .fields = (f), __VA_ARGS__}
#define F_LIST(s, m, count, f, most, ...) {.key = #m, .type = FIELD_LIST, .offset = offsetof(s, m), .count_offset = F_TYPED(s, count, uint32_t), .fields = (f), .elem_size = sizeof(*((s *)0)->m), .max = (most), __VA_ARGS__}
#define F_END {.type = FIELD_END}
/* clang-format on */

#define USEC_MAX INT64_MAX /* times and durations */
#define BYTES_MAX (INT64_C(1) << 60)

/* Append the members to obj, in the table's order. Text that is not UTF-8 (one that was cut, say)
 * goes out with '?' for what JSON cannot hold. */
void fields_write(const struct field *table, const void *data, json_t *obj);
json_t *fields_to_json(const struct field *table, const void *data);
/*
 * Fill data, which must be zeroed, from obj. -EINVAL with a text that names the way to the member:
 * "containers[2]: 'rank' must be a whole number from 0 to 999". What was filled is freed by
 * fields_done or by the noun's own function, on error as well.
 */
int fields_read(const struct field *table, const json_t *obj, void *data, struct err *err);
/* Free all that the members own. */
void fields_done(const struct field *table, void *data);

#endif
