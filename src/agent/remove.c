/*
 * Taking a session away: runtime, root, network, cgroups, in one job a session. Only when all of it
 * is gone is the manager told, and the spec file removed; what fails is tried again.
 */
#include <fcntl.h>

#include "agent/link.h"
#include "agent/sess.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/work.h"

#define RETRY_USEC (2 * USEC_PER_SEC)

static int remove_job(void *arg, struct err *err)
{
    struct sess *s = arg;
    struct agent *ag = s->agent;
    int r = 0;

    for (uint32_t i = 0; i < s->a->container_count; i++) {
        const char *id = s->a->containers[i].id;
        r = runtime_remove(&ag->rt, s->a->session, id, err);
        if (r == 0)
            r = crash_point("remove.after_runtime", err);
        if (r == 0)
            r = rootfs_remove(&ag->rt.dirs, id, err);
        if (r < 0)
            return err_prefix(err, "%s", s->a->containers[i].name);
    }
    r = edge_remove(&ag->node_net, s->a->session, err);
    if (r == 0)
        r = runtime_remove_session(&ag->rt, s->a->session, err);
    if (r == 0)
        r = crash_point("remove.after_edge", err);
    return r;
}

static void removed(void *arg, int result, const struct err *err)
{
    struct sess *s = arg;
    struct agent *ag = s->agent;
    struct assignment *next;

    s->jobs--;
    s->removing = false;
    if (result < 0) {
        log_warning("session %s: not all of it could be removed, will be tried again: %s",
            s->a->session, err_text(err));
        s->retry_at_usec = clock_mono_usec() + RETRY_USEC;
        return;
    }
    log_info("session %s: removed, nothing is left", s->a->session);
    next = TAKE_PTR(s->next);
    spec_remove(ag, s->a->session);
    link_session_removed(ag, s->a->session, s->a->attempt);
    sess_free(s);
    if (next)
        sess_assign(ag, next);
}

void remove_session(struct sess *s)
{
    if (s->retry_at_usec)
        return;
    s->removing = true;
    s->jobs++;
    for (uint32_t i = 0; i < s->a->container_count; i++) {
        unwatch_container(&s->cts[i]);
        if (s->cts[i].report.state != CONTAINER_EXITED) {
            s->cts[i].report.state = CONTAINER_EXITED;
            s->cts[i].report.end = END_STOPPED;
        }
    }
    work_start(s->agent->loop, remove_job, removed, s);
}
