/* Strings: comparing, numbers and sizes as people write them, untrusted text made printable. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/err.h"

bool str_eq(const char *a, const char *b);          /* NULL equals NULL only */
bool str_starts(const char *s, const char *prefix); /* false when s is NULL */
bool str_ends(const char *s, const char *suffix);
bool str_is_empty(const char *s); /* NULL or "" */

/* Copy into a fixed array; -ENAMETOOLONG when cut (dst is then ""). */
int str_copy(char *dst, size_t size, const char *src);
/* Copy into an array member, asserting that it fits: for text whose length was checked before. */
#define STR_SET(array, src) assert(str_copy((array), sizeof(array), (src)) == 0)

/* The whole string is a decimal number in range; -EINVAL or -ERANGE. */
int str_to_u64(const char *s, uint64_t max, uint64_t *ret);
int str_to_i64(const char *s, int64_t min, int64_t max, int64_t *ret);

/*
 * Bytes: "1073741824", "512M", "16G", "16GiB", "1.5T" (K M G T P, powers of 1024; an ending "B" or
 * "iB" is allowed; upper or lower case). -EINVAL with a text that shows the forms, -ERANGE over
 * 2^60.
 */
int size_parse(const char *s, uint64_t *ret_bytes, struct err *err);
/* "512 MiB", "1.5 GiB". */
#define SIZE_TEXT_MAX 24
char *size_format(uint64_t bytes, char text[SIZE_TEXT_MAX]);

/* Printable form of untrusted bytes: control characters and bytes that are not UTF-8 become
 * "\xNN"; at most max bytes of output with "..." at a cut. Heap. */
char *str_escape(const char *s, size_t len, size_t max);
/* True when s is valid UTF-8 with no control characters. */
bool str_is_clean(const char *s, size_t len);

/*
 * A name as Muster takes them for sessions, nodes, groups, volumes, users: 1..63 of a-z A-Z 0-9
 * and - _ . , starting with a letter or digit.
 */
#define NAME_MAX_LEN 63
int name_check(const char *what, const char *name, struct err *err);

/* "sha256:" and 64 lower-case hexadecimal digits: the only digest algorithm Muster takes (OCI
 * image-spec, descriptor.md, "Registered Algorithms"). NULL is none. */
bool digest_is_valid(const char *text);

/* Levenshtein distance, for "did you mean"; both up to 64 bytes, else returns 64. */
unsigned str_distance(const char *a, const char *b);

/* Random version-4 UUID (RFC 9562), lower case. */
#define UUID_TEXT_LEN 36
void uuid_make(char text[UUID_TEXT_LEN + 1]);
bool uuid_is_valid(const char *text);

#endif
