/*
 * Bodies of POST /v1/sessions from an attacker. What is taken and checked must survive the store,
 * and can be shown and turned into an environment.
 */
#include "base/strv.h"
#include "wire/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX (1 << 20)

static void use(struct session *s)
{
    _cleanup_(json_decrefp) json_t *stored = NULL, *again = NULL, *public = NULL;
    _cleanup_free_ char *a = NULL, *b = NULL, *hosts = NULL;
    _cleanup_(session_freep) struct session *back = NULL;
    _cleanup_(strv_freep) char **env = NULL;
    struct err err = ERR_INIT;

    STR_SET(s->id, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111");
    STR_SET(s->owner, "alice");
    if (!s->name[0])
        STR_SET(s->name, "s");
    session_make_containers(s);
    stored = session_to_json_stored(s);
    if (session_from_json_stored(stored, &back, &err) < 0) {
        fprintf(stderr, "%s\n", err_text(&err));
        abort();
    }
    again = session_to_json_stored(back);
    a = json_text(stored);
    b = json_text(again);
    if (strcmp(a, b) != 0)
        abort();
    public = session_to_json_public(s);
    env = session_environment(s, &s->containers[s->size - 1], NULL, "");
    hosts = session_hosts(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(session_freep) struct session *s = session_new();
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;

    if (json_parse((const char *)data, size, BODY_MAX, &body, &err) < 0)
        return 0;
    if (session_request_from_json(body, s, &err) < 0 || session_request_check(s, true, &err) < 0) {
        if (!err.text[0])
            abort(); /* every refusal says why */
        return 0;
    }
    use(s);
    return 0;
}
