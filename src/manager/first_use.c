/*
 * Waiting for an image: such a session is pending and has no image id, and the scheduler is not
 * told of it. Which registries may be asked is the administrator's (image.auto_import); "*" stands
 * for every one that a reference names, so that a misspelt short name asks nobody.
 */
#include "manager/first_use.h"

#include "base/strv.h"
#include "manager/imports.h"
#include "manager/launch.h"
#include "manager/state.h"

int first_use_take(struct session *s, const struct image *i, struct err *err)
{
    _cleanup_(strv_freep) char **command = NULL;
    int r;

    STR_SET(s->image_id, i->id);
    image_command(i, s->command, s->kind == KIND_TRAIN, &command, NULL);
    s->has_command = strv_len(command) > 0;
    r = session_request_check(s, s->has_command, err);
    return r < 0 ? r : session_environment_check(s, i->env, command, err);
}

static bool is_allowed(const struct manager *m, const struct image_ref *ref)
{
    return strv_has(m->config.auto_import, image_ref_host(ref)) ||
        (ref->host[0] && strv_has(m->config.auto_import, "*"));
}

int first_use_check(const struct manager *m, struct session *s, struct err *err)
{
    struct image_ref ref;
    int r = image_ref_parse(s->image, &ref, err);

    if (r < 0)
        return r;
    if (!is_allowed(m, &ref))
        return err_set(err, -ENOENT,
            "there is no image '%s'; see 'muster image ls', or import it with 'muster image "
            "import'",
            s->image);
    s->image_id[0] = '\0';
    s->has_command = s->command || s->kind == KIND_TRAIN;
    r = session_request_check(s, s->has_command, err);
    return r < 0 ? r : session_environment_check(s, NULL, s->command, err);
}

bool first_use_waits(const struct session *s)
{
    return s->state == SESSION_PENDING && s->image_id[0] == '\0';
}

void first_use_begin(struct manager *m, struct session *s)
{
    char name[IMAGE_REF_MAX + 1];

    map_for_each (e, &m->images) {
        struct image *i = e->value;
        if (!str_eq(i->id, s->image_id))
            continue;
        i->last_used_usec = s->submitted_usec;
        image_save(m, i, NULL);
    }

    if (!first_use_waits(s) || image_ref_normal(s->image, name, NULL) < 0)
        return;
    STR_SET(s->reason_code, "image");
    STR_SET(s->reason, "its image has to be imported");
    session_save(m, s);
    import_ref(m, name, s->image, s->owner, NULL);
}

static bool waits_for(const struct session *s, const char *name)
{
    char normal[IMAGE_REF_MAX + 1];

    return first_use_waits(s) && image_ref_normal(s->image, normal, NULL) == 0 &&
        str_eq(normal, name);
}

static void end_wait(struct manager *m, struct session *s, const char *name, const char *error)
{
    const struct image *i = map_get(&m->images, name);
    struct err err = ERR_INIT;

    if (error || !i) {
        launch_stop(m, s, RESULT_FAILED, "image_import", false, "its image cannot be imported: %s",
            error ? error : "it was removed");
    } else if (first_use_take(s, i, &err) < 0) {
        launch_stop(
            m, s, RESULT_FAILED, "image_unusable", false, "with its image: %s", err_text(&err));
    } else {
        STR_SET(s->reason_code, "queued");
        STR_SET(s->reason, "waits for the scheduler");
        session_save(m, s);
        pass_want(m);
    }
}

/* Those that end leave the map, so one after the other is looked for. */
static struct session *next_that_waits(struct manager *m, const char *name)
{
    map_for_each (e, &m->sessions)
        if (waits_for(e->value, name))
            return e->value;
    return NULL;
}

void first_use_done(struct manager *m, const char *name, const char *error)
{
    struct session *s;

    while ((s = next_that_waits(m, name)))
        end_wait(m, s, name, error);
}

void first_use_resume(struct manager *m)
{
    map_for_each (e, &m->sessions) {
        struct session *s = e->value;
        char name[IMAGE_REF_MAX + 1];
        if (!first_use_waits(s) || image_ref_normal(s->image, name, NULL) < 0)
            continue;
        if (map_get(&m->images, name))
            end_wait(m, s, name, NULL);
        else
            first_use_begin(m, s);
    }
}

void first_use_reason(const struct manager *m, const struct session *s, char *text, size_t size)
{
    char name[IMAGE_REF_MAX + 1];

    if (image_ref_normal(s->image, name, NULL) < 0 || !import_status(m, name, text, size))
        snprintf(text, size, "its image has to be imported");
}
