/* NULL-terminated vectors of heap strings; a NULL vector is an empty one. */
#ifndef BASE_STRV_H
#define BASE_STRV_H

#include "base/base.h"

size_t strv_len(char *const *v);
char **strv_copy(char *const *v);
void strv_free(char **v);
void strv_freep(char ***v); /* for _cleanup_(strv_freep) */
/* Append a copy / append and own. */
void strv_push(char ***v, const char *s);
void strv_take(char ***v, char *s);
void strv_pushf(char ***v, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool strv_has(char *const *v, const char *s);
char *strv_join(char *const *v, const char *sep); /* heap, "" for none */
/* Split at every sep; empty parts are kept ("a,,b" is three). "" gives an empty vector. */
char **strv_split(const char *s, char sep);

/* K=V vectors. */
const char *strv_env_get(char *const *env, const char *key);
void strv_env_set(char ***env, const char *key, const char *value);

#define strv_for_each(s, v) for (__typeof__((v)[0]) *s = (v); s && *s; s++)

#endif
