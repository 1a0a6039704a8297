/*
 * An agent that starts looks at what is there: sessions by their spec files, each container by its
 * runtime. What runs goes on; what was half made is failed, so that the manager decides; what
 * belongs to an earlier boot is over. Then leftovers that no spec speaks of are removed.
 */
#include "agent/link.h"
#include "agent/sess.h"
#include "base/log.h"
#include "base/strv.h"

static void adopt(struct ct *c)
{
    struct sess *s = c->sess;
    struct agent *ag = s->agent;
    struct runtime_state st = {0};
    struct err err = ERR_INIT;

    if (c->report.state == CONTAINER_EXITED)
        return;
    if (ct_find_devices(c, &err) < 0)
        log_warning("session %s: %s: %s", s->a->session, c->spec->name, err_text(&err));
    if (runtime_state(&ag->rt, s->a->session, c->spec->id, &st, &err) < 0) {
        log_warning("session %s: %s: %s", s->a->session, c->spec->name, err_text(&err));
        st = (struct runtime_state){0};
    }
    if (c->report.state < CONTAINER_READY && s->a->phase != PHASE_STOP) {
        c->pid = st.running ? st.pid : 0;
        s->failed = true;
        atomic_store(&s->cancel, true);
        ct_ended(c, END_START_FAILED, 0, "the agent was restarted while it started");
        return;
    }
    c->rootfs_made = true;
    if (st.running) {
        c->pid = st.pid;
        c->conmon_pid = st.conmon_pid;
        c->start_time = st.start_time;
    }
    if (!c->pid && c->report.state < CONTAINER_READY)
        ct_ended(c, END_STOPPED, 0, "");
    else
        watch_container(c);
}

static void restore_session(struct sess *s)
{
    bool rebooted = !str_eq(s->a->boot_id, s->agent->boot_id);

    log_info("session %s: found with %u containers%s", s->a->session, s->a->container_count,
        rebooted ? " of an earlier boot" : "");
    for (uint32_t i = 0; i < s->a->container_count; i++) {
        struct ct *c = &s->cts[i];
        if (rebooted) {
            c->pid = 0;
            ct_ended(c, END_NODE_LOST, 0, "the node was rebooted");
        } else {
            adopt(c);
        }
    }
    sess_work(s);
}

static bool known_container(struct agent *ag, const char *id)
{
    return sess_container(ag, id) != NULL;
}

/* Nothing here has a spec: made by an agent that died between the making and the writing, or by a
 * boot before. */
static void remove_strays(struct agent *ag)
{
    char **ids = NULL;
    struct err err = ERR_INIT;

    if (runtime_list(&ag->rt, &ids, &err) == 0)
        strv_for_each (id, ids)
            if (!known_container(ag, *id) && runtime_remove(&ag->rt, "", *id, &err) < 0)
                log_warning("stray container %s: %s", *id, err_text(&err));
    strv_free(ids);
    ids = NULL;
    if (rootfs_list(&ag->rt.dirs, &ids, &err) == 0)
        strv_for_each (id, ids)
            if (!known_container(ag, *id) && rootfs_remove(&ag->rt.dirs, *id, &err) < 0)
                log_warning("stray root %s: %s", *id, err_text(&err));
    strv_free(ids);
    ids = NULL;
    if (edge_list(&ag->node_net, &ids, &err) == 0)
        strv_for_each (id, ids)
            if (!map_get(&ag->sessions, *id) && edge_remove(&ag->node_net, *id, &err) < 0)
                log_warning("stray network %s: %s", *id, err_text(&err));
    strv_free(ids);
    if (blob_unmount_unused(&ag->rt.dirs, &err) < 0)
        log_debug("unused blobs: %s", err_text(&err));
}

int sess_restore(struct agent *ag, struct err *err)
{
    int r = spec_load_all(ag, err);

    if (r < 0)
        return r;
    map_for_each (e, &ag->sessions)
        restore_session(e->value);
    remove_strays(ag);
    return 0;
}
