/* One dependency as text, and whether another session's state meets it. */
#include "model/depend.h"

static const struct {
    const char *word;
    enum depend_kind kind;
} kinds[] = {
    {"after", DEPEND_AFTER},
    {"afterok", DEPEND_OK},
    {"afternotok", DEPEND_NOT_OK},
    {"afterany", DEPEND_ANY},
};

int depend_parse(const char *text, struct depend *ret, struct err *err)
{
    size_t len = strcspn(text, ":");

    if (str_eq(text, "singleton")) {
        *ret = (struct depend){.kind = DEPEND_SINGLETON};
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strlen(kinds[i].word) != len || strncmp(text, kinds[i].word, len) != 0 ||
            text[len] != ':' || str_to_u64(text + len + 1, INT64_MAX, &ret->num) < 0 ||
            ret->num == 0)
            continue;
        ret->kind = kinds[i].kind;
        return 0;
    }
    return err_set(err, -EINVAL,
        "a dependency is like after:12, afterok:12, afternotok:12, afterany:12 (12: a session's "
        "number) or singleton, not '%.60s'",
        text);
}

enum depend_state depend_state(const struct depend *d, const struct session *other)
{
    bool over = !other || other->state == SESSION_ENDED;
    bool well = other && other->result == RESULT_SUCCEEDED;

    switch (d->kind) {
    case DEPEND_AFTER:
        return over || other->started_usec ? DEPEND_MET : DEPEND_WAITS;
    case DEPEND_ANY:
        return over ? DEPEND_MET : DEPEND_WAITS;
    case DEPEND_OK:
        return !over ? DEPEND_WAITS : well ? DEPEND_MET : DEPEND_NEVER;
    case DEPEND_NOT_OK:
        return !over ? DEPEND_WAITS : well ? DEPEND_NEVER : DEPEND_MET;
    case DEPEND_SINGLETON:
        break;
    }
    return DEPEND_MET;
}
