/*
 * Helpers over jansson: reading members with errors that name them, and parsing bounded text.
 * Nothing here owns what it returns ("borrowed") unless it says so.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/err.h"

/* json_decrefp, for _cleanup_(json_decrefp), is jansson's. */

/* Parse one document: at most max bytes, depth 32, no duplicate keys, no NUL in strings, nothing
 * behind it. Owned by the caller. -EINVAL with line and reason. */
int json_parse(const char *text, size_t len, size_t max, json_t **ret, struct err *err);
/* Compact, keys in order of insertion. Heap; never NULL. */
char *json_text(const json_t *j);

/* Members of an object. -ENOENT: missing or null (ret untouched; err text set); -EINVAL: of another
 * type or out of range, with "'cpus' must be a whole number from 1 to 1024". */
int json_get_str(const json_t *obj, const char *key, const char **ret, struct err *err);
int json_get_u64(const json_t *obj, const char *key, uint64_t max, uint64_t *ret, struct err *err);
int json_get_i64(const json_t *obj, const char *key, int64_t *ret, struct err *err);
int json_get_bool(const json_t *obj, const char *key, bool *ret, struct err *err);
int json_get_obj(const json_t *obj, const char *key, json_t **ret, struct err *err);
int json_get_arr(const json_t *obj, const char *key, json_t **ret, struct err *err);

/* The value or a default, for members that are ours (written by us, checked before). */
const char *json_str_or(const json_t *obj, const char *key, const char *dflt);
uint64_t json_u64_or(const json_t *obj, const char *key, uint64_t dflt);
bool json_bool_or(const json_t *obj, const char *key, bool dflt);

void json_set_str(json_t *obj, const char *key, const char *value); /* NULL value: JSON null */
void json_set_u64(json_t *obj, const char *key, uint64_t value);
void json_set_bool(json_t *obj, const char *key, bool value);
void json_set_strv(json_t *obj, const char *key, char *const *v);

#endif
