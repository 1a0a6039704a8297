/*
 * Hash map from string to pointer. Keys are copied, values are the caller's. Iteration is in order
 * of insertion, so that output is deterministic; a map_remove of the current key inside the loop
 * is safe, an insertion is not.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/base.h"

struct map_entry {
    char *key; /* NULL: removed */
    void *value;
    uint64_t hash;
};

struct map {
    struct map_entry *entries; /* in order of insertion, with holes */
    size_t used, cap, count;
    uint32_t *index; /* open addressing; entry number + 1, 0 empty */
    size_t index_size;
};

void map_init(struct map *m);
/* Free the table, and each value through free_value (may be NULL). */
void map_done(struct map *m, void (*free_value)(void *));
/* The same keys and values, in the same order. */
void map_copy(struct map *to, const struct map *from);
void *map_get(const struct map *m, const char *key);
/* Set; returns the value that was there before, or NULL. value must not be NULL. */
void *map_set(struct map *m, const char *key, void *value);
void *map_remove(struct map *m, const char *key);
size_t map_count(const struct map *m);

#define map_for_each(e, m) \
    for (struct map_entry *e = (m)->entries; e && e < (m)->entries + (m)->used; e++) \
        if (e->key)

#endif
