/*
 * What a session waits for is looked up by number: live ones in memory, ended ones in the store.
 * Whether it waits is kept in the session (waits_for_others), which is made anew at each start.
 */
#include "manager/depends.h"

#include "base/strv.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "model/depend.h"

static bool has_earlier(const struct manager *m, const struct session *s)
{
    map_for_each (e, &m->sessions) {
        const struct session *o = e->value;
        if (o != s && o->num < s->num && str_eq(o->name, s->name) && str_eq(o->owner, s->owner))
            return true;
    }
    return false;
}

static enum depend_state state_of(
    struct manager *m, const struct session *s, const struct depend *d)
{
    struct session *other = d->kind == DEPEND_SINGLETON ? NULL : session_by_num(m, d->num);
    _cleanup_(session_freep) struct session *loaded = NULL;

    if (d->kind == DEPEND_SINGLETON)
        return has_earlier(m, s) ? DEPEND_WAITS : DEPEND_MET;
    if (!other)
        loaded = session_load_num(m, d->num);
    return depend_state(d, other ? other : loaded);
}

/* *ret_never: the dependency that cannot be met any more. */
static enum depend_state look(struct manager *m, const struct session *s, const char **ret_never)
{
    enum depend_state all = DEPEND_MET;
    char **list = s->depends;

    strv_for_each (text, list) {
        struct depend d;
        enum depend_state one = DEPEND_MET;

        if (depend_parse(*text, &d, NULL) == 0)
            one = state_of(m, s, &d);
        if (one == DEPEND_NEVER) {
            *ret_never = *text;
            return one;
        }
        if (one == DEPEND_WAITS)
            all = one;
    }
    return all;
}

int depends_check(struct manager *m, const struct user *u, const struct session *s, struct err *err)
{
    char **list = s->depends;

    strv_for_each (text, list) {
        _cleanup_(session_freep) struct session *loaded = NULL;
        struct session *other;
        struct depend d;
        char num[24];
        int r = depend_parse(*text, &d, err);

        if (r < 0)
            return r;
        if (d.kind == DEPEND_SINGLETON)
            continue;
        snprintf(num, sizeof(num), "%llu", (unsigned long long)d.num);
        r = session_find(m, u, num, &other, &loaded, err);
        if (r < 0)
            return err_prefix(err, "'depends'");
    }
    return 0;
}

void depends_note(struct manager *m, struct session *s)
{
    const char *never = NULL;

    s->waits_for_others = s->depends && look(m, s, &never) != DEPEND_MET;
}

static void look_at(struct manager *m, struct session *s)
{
    const char *never = NULL;
    enum depend_state state = look(m, s, &never);

    if (state == DEPEND_WAITS)
        return;
    if (state == DEPEND_NEVER) {
        launch_stop(m, s, RESULT_CANCELLED, "dependency_never", true,
            "it was to start %s, which cannot be any more", never);
        return;
    }
    s->waits_for_others = false;
    pass_session_changed(m, s->id);
    pass_want(m);
}

static void want_look(void *arg)
{
    struct manager *m = arg;

    m->depends_wanted = true;
}

void depends_ended(struct manager *m)
{
    store_after(m->store, want_look, m);
}

void depends_look(struct manager *m)
{
    map_for_each (e, &m->sessions) {
        struct session *s = e->value;
        if (s->state == SESSION_PENDING && s->waits_for_others)
            look_at(m, s); /* at most this one is gone then, and the map bears that */
    }
}
