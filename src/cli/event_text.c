/*
 * One line of words for each event: what it is about by the names that people use, and what became
 * of it. The types are the manager's ("session.running", "node.drained"); one that is not known
 * here is shown by its own words.
 */
#include "cli/event_text.h"

#include "base/str.h"
#include "cli/text.h"

/* clang-format off */
static const struct {
    const char *type, *words;
} words[] = {
    { "node.hello", "its agent has connected" },
    { "node.up", "up" },
    { "node.group", "put in another group" },
    { "node.resumed", "takes sessions again" },
    { "node.drained", "takes no new sessions" },
};
/* clang-format on */

static char *session_text(const json_t *event, const char *owner)
{
    const json_t *body = json_object_get(event, "body");
    _cleanup_free_ char *num = text_member(body, "num"), *name = text_member(body, "name");
    _cleanup_free_ char *state = text_member(body, "state"), *result = text_member(body, "result");
    _cleanup_free_ char *message = text_clean(json_str_or(body, "message", ""));
    bool ended = str_eq(state, "ended") && !str_eq(result, "-");
    uint64_t attempt = json_u64_or(body, "attempt", 0);
    char again[40] = "";

    if (attempt > 1 && !ended)
        snprintf(again, sizeof(again), ", attempt %llu", (unsigned long long)attempt);
    return xasprintf("session %s (%s) of %s: %s%s%s%s%s%s%s", num, name, owner, state, again,
        ended ? " (" : "", ended ? result : "", ended ? ")" : "", message[0] ? ": " : "", message);
}

/* "removed" of "volume.removed" */
static const char *words_of(const char *type)
{
    const char *dot = strchr(type, '.');

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq(words[i].type, type))
            return words[i].words;
    return dot ? dot + 1 : type;
}

char *event_text(const json_t *event)
{
    _cleanup_free_ char *type = text_member(event, "type"), *owner = text_member(event, "owner");
    _cleanup_free_ char *subject = text_member(event, "subject");
    size_t noun = strcspn(type, ".");

    if (str_starts(type, "session."))
        return session_text(event, owner);
    if (str_eq(owner, "-") || str_eq(owner, subject))
        return xasprintf("%.*s %s: %s", (int)noun, type, subject, words_of(type));
    return xasprintf("%.*s %s of %s: %s", (int)noun, type, subject, owner, words_of(type));
}
