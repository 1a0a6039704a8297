/* Looking words up. The tables belong to the nouns. */
#include "model/words.h"

#include "base/str.h"

int word_find(const char *const *words, size_t count, const char *text)
{
    if (!text)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (str_eq(words[i], text))
            return (int)i;
    return -EINVAL;
}
