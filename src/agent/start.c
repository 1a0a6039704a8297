/*
 * Making a session: its edge and each container's root at once, in worker threads; then each
 * container's network, init and sshd, and the login that proves them. Opening the barrier.
 *
 * A job works on what does not change while it runs: the assignment and the directories. It hears
 * of a stop by sess.cancel.
 */
#include "agent/link.h"
#include "agent/sess.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/strv.h"
#include "base/work.h"

#define LOGIN_USEC (60 * USEC_PER_SEC) /* from init's start to a login on this node */

struct job {
    struct sess *s;
    struct ct *c;               /* NULL: of the whole session */
    struct node_net net;        /* a copy: its lists of addresses may be replaced meanwhile */
    struct runtime_state state; /* after the start */
};

static struct job *job_new(struct sess *s, struct ct *c)
{
    struct job *j = xnew(struct job);

    j->s = s;
    j->c = c;
    j->net = s->agent->node_net;
    s->jobs++;
    return j;
}

static void job_end(struct job *j)
{
    struct sess *s = j->s;

    s->jobs--;
    free(j);
}

static bool cancelled(struct sess *s)
{
    return atomic_load(&s->cancel);
}

static void say(struct ct *c, const char *text)
{
    str_copy(c->report.text, sizeof(c->report.text), text);
    ct_report(c, c->report.state);
}

/* Every container that did not come up says why. */
void session_failed(struct sess *s, struct ct *c, const struct err *err)
{
    bool stopped = cancelled(s);

    atomic_store(&s->cancel, true);
    s->failed = true;
    for (uint32_t i = 0; i < s->a->container_count; i++)
        if ((!c || c == &s->cts[i]) && !s->cts[i].pid)
            ct_ended(&s->cts[i], stopped ? END_STOPPED : END_START_FAILED, 0, err_text(err));
    if (c && c->pid)
        ct_ended(c, stopped ? END_STOPPED : END_START_FAILED, 0, err_text(err));
}

/* --- second half: a container, once edge and root are there ------------------------------- */

static int run_container(void *arg, struct err *err)
{
    struct job *j = arg;
    struct sess *s = j->s;
    struct agent *ag = s->agent;
    const struct assigned_container *spec = j->c->spec;
    char netns[NETNS_PATH_MAX];
    int r;

    edge_container_netns(&ag->node_net, s->a->session, spec->name, netns);
    r = edge_add_container(&j->net, s->a, spec->rank, err);
    if (r == 0)
        r = crash_point("container.before_start", err);
    if (r == 0 && cancelled(s))
        r = err_set(err, -ECANCELED, "stopped while it started");
    if (r == 0)
        r = runtime_start(&ag->rt, s->a, spec, netns, &j->c->extra, err);
    if (r == 0)
        r = runtime_state(&ag->rt, s->a->session, spec->id, &j->state, err);
    if (r == 0)
        r = ready_login(&ag->rt.dirs, netns, spec->id, j->state.pid, s->a->peers[spec->rank].ip,
            clock_mono_usec() + LOGIN_USEC, &s->cancel, err);
    if (r == 0)
        r = crash_point("container.after_login", err);
    return r;
}

static void container_is_up(void *arg, int result, const struct err *err)
{
    struct job *j = arg;
    struct sess *s = j->s;
    struct ct *c = j->c;

    c->pid = j->state.running ? j->state.pid : 0;
    c->conmon_pid = j->state.conmon_pid;
    c->start_time = j->state.start_time;
    job_end(j);
    if (c->pid)
        watch_container(c);
    if (result < 0) {
        log_warning("session %s: %s: %s", s->a->session, c->spec->name, err_text(err));
        session_failed(s, c, err);
    } else if (c->report.state != CONTAINER_EXITED) {
        peers_login(c);
    }
    spec_write(s, NULL);
    sess_work(s);
}

static bool roots_made(const struct sess *s)
{
    for (uint32_t i = 0; i < s->a->container_count; i++)
        if (!s->cts[i].rootfs_made)
            return false;
    return true;
}

/* --- first half --------------------------------------------------------------------------- */

static void first_half_done(struct sess *s, struct ct *c, int result, const struct err *err)
{
    if (result < 0) {
        log_warning("session %s: %s%s%s", s->a->session, c ? c->spec->name : "",
            c ? ": " : "network: ", err_text(err));
        session_failed(s, c, err);
    } else if (s->edge_made && roots_made(s) && !s->failed && !cancelled(s)) {
        for (uint32_t i = 0; i < s->a->container_count; i++) {
            say(&s->cts[i],
                s->a->peer_count > 1 ? "starting, until every SSH login works" : "starting");
            s->cts[i].started = true;
            work_start(s->agent->loop, run_container, container_is_up, job_new(s, &s->cts[i]));
        }
    }
    sess_work(s);
}

static int make_root(void *arg, struct err *err)
{
    struct job *j = arg;
    struct agent *ag = j->s->agent;
    const struct assignment *a = j->s->a;
    int r;

    for (uint32_t i = 0; i < a->layer_count; i++) {
        r = fetch_blob(ag, &a->layers[i], &j->s->cancel, err);
        if (r == 0)
            r = blob_mount(&ag->rt.dirs, a->layers[i].digest, err);
        if (r < 0)
            return err_prefix(err, "image layer %u of %u", i + 1, a->layer_count);
    }
    return rootfs_make(&ag->rt.dirs, a, j->c->spec, j->c->extra.env, err);
}

static void root_is_made(void *arg, int result, const struct err *err)
{
    struct job *j = arg;
    struct sess *s = j->s;
    struct ct *c = j->c;

    job_end(j);
    c->rootfs_made = result == 0;
    first_half_done(s, c, result, err);
}

static int make_edge(void *arg, struct err *err)
{
    struct job *j = arg;

    return edge_make(&j->net, j->s->a, j->s->edge_index, err);
}

static void edge_is_made(void *arg, int result, const struct err *err)
{
    struct job *j = arg;
    struct sess *s = j->s;

    job_end(j);
    s->edge_made = result == 0;
    first_half_done(s, NULL, result, err);
}

int ct_find_devices(struct ct *c, struct err *err)
{
    struct agent *ag = c->sess->agent;

    return gpu_inject(ag->config.gpu, ag->rt.dirs.gpu_dev, ag->gpus, ag->gpu_count, c->spec->gpus,
        c->spec->gpu_count, &c->extra, err);
}

void start_session(struct sess *s)
{
    struct err err = ERR_INIT;

    for (uint32_t i = 0; i < s->a->container_count; i++)
        if (ct_find_devices(&s->cts[i], &err) < 0) {
            session_failed(s, &s->cts[i], &err);
            return;
        }
    for (uint32_t i = 0; i < s->a->container_count; i++) {
        ct_report(&s->cts[i], CONTAINER_PREPARING);
        say(&s->cts[i], "making its files");
    }
    work_start(s->agent->loop, make_edge, edge_is_made, job_new(s, NULL));
    for (uint32_t i = 0; i < s->a->container_count; i++)
        work_start(s->agent->loop, make_root, root_is_made, job_new(s, &s->cts[i]));
}

/* --- the barrier -------------------------------------------------------------------------- */

void start_barrier(struct sess *s)
{
    for (uint32_t i = 0; i < s->a->container_count; i++) {
        struct ct *c = &s->cts[i];
        struct err err = ERR_INIT;
        if (c->report.state != CONTAINER_READY)
            continue;
        if (rootfs_open_barrier(&s->agent->rt.dirs, c->spec->id, &err) < 0) {
            ct_ended(c, END_START_FAILED, 0, err_text(&err));
            return;
        }
        crash_point("agent.after_barrier", NULL);
        c->report.started_usec = clock_real_usec();
        ct_report(c, CONTAINER_RUNNING);
    }
    spec_write(s, NULL);
}
