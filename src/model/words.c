/* Looking words up. The tables belong to the nouns. */
#include "model/words.h"

#include "base/str.h"

int words_find(const struct words *words, const char *text)
{
    if (!text)
        return -EINVAL;
    for (size_t i = 0; i < words->count; i++)
        if (str_eq(words->list[i], text))
            return (int)i;
    return -EINVAL;
}
