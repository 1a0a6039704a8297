/* Enumerations as words, both ways: one table a type, in the order of the enumeration. */
#ifndef MODEL_WORDS_H
#define MODEL_WORDS_H

#include "base/base.h"

/* The word's index, or -EINVAL. NULL matches nothing. */
int word_find(const char *const *words, size_t count, const char *text);

/*
 * Defines NAME(value) and PARSE(text, &value) over a table. The value is asserted to be in range:
 * enumerations from outside come in through PARSE only. PARSE touches *ret on success only.
 */
#define WORDS_DEFINE(type, NAME, PARSE, ...)                                                       \
    static const char *const NAME##_words[] = {__VA_ARGS__};                                       \
    const char *NAME(type value)                                                                   \
    {                                                                                              \
        assert((size_t)value < ARRAY_LEN(NAME##_words));                                           \
        return NAME##_words[value];                                                                \
    }                                                                                              \
    int PARSE(const char *text, type *ret)                                                         \
    {                                                                                              \
        int i = word_find(NAME##_words, ARRAY_LEN(NAME##_words), text);                            \
        if (i < 0)                                                                                 \
            return i;                                                                              \
        *ret = (type)i;                                                                            \
        return 0;                                                                                  \
    }

#endif
