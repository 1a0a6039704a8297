/* Enumerations as words, both ways: one table a type, in the order of the enumeration. */
#ifndef MODEL_WORDS_H
#define MODEL_WORDS_H

#include "base/base.h"

/* The words of an enumeration whose values count up from 0. */
struct words {
    const char *const *list;
    size_t count;
};

extern const struct words container_state_words, container_end_words, node_state_words, role_words;
extern const struct words session_state_words, session_result_words, session_kind_words;
extern const struct words session_mode_words, session_on_words, session_on_failure_words,
    session_hold_words, session_qos_words;

/* The word's index, or -EINVAL. NULL matches nothing. */
int words_find(const struct words *words, const char *text);

/*
 * Defines PREFIX_words, PREFIX_name(value) and PREFIX_parse(text, &value). The value is asserted to
 * be in range: enumerations from outside come in through _parse only, which touches *ret on success
 * only.
 */
#define WORDS_DEFINE(prefix, type, ...) \
    static const char *const prefix##_list[] = {__VA_ARGS__}; \
    const struct words prefix##_words = {prefix##_list, ARRAY_LEN(prefix##_list)}; \
    const char *prefix##_name(type value) \
    { \
        assert((size_t)value < ARRAY_LEN(prefix##_list)); \
        return prefix##_list[value]; \
    } \
    int prefix##_parse(const char *text, type *ret) \
    { \
        int i = words_find(&prefix##_words, text); \
        if (i < 0) \
            return i; \
        *ret = (type)i; \
        return 0; \
    }

#endif
