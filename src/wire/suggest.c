/* "did you mean": the nearest known name, if it is near. */
#include "wire/suggest.h"

#include "base/str.h"

int suggest_unknown(const char *key, const char *const *known, size_t count, struct err *err)
{
    _cleanup_free_ char *shown = str_escape(key, strlen(key), 64);
    /* Half of what was written may be wrong, but no more than three letters. */
    unsigned nearest = (unsigned)MIN_OF((strlen(key) + 1) / 2, 3u) + 1;
    const char *best = NULL;

    for (size_t i = 0; i < count; i++) {
        unsigned distance = str_distance(key, known[i]);

        if (distance < nearest) {
            nearest = distance;
            best = known[i];
        }
    }
    if (best)
        return err_set(err, -EINVAL, "unknown member '%s'; did you mean '%s'?", shown, best);
    return err_set(err, -EINVAL, "unknown member '%s'", shown);
}
