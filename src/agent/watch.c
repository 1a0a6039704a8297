/*
 * Notices by pidfd when a container's init or its conmon ends. When init is gone conmon writes the
 * exit file within moments; when conmon is gone and init is not, nobody will ever know how the
 * container ended: its session ends with that reason.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "agent/sess.h"
#include "base/log.h"

#define EXIT_TRIES 200
#define EXIT_WAIT_MSEC 10

struct exit_wait {
    uv_timer_t timer;
    struct agent *agent;
    char container[UUID_TEXT_LEN + 1];
    unsigned tries;
};

/* Refers to its container by id: either may go first. */
struct pidwatch {
    uv_poll_t poll;
    int fd;
    struct agent *agent;
    char container[UUID_TEXT_LEN + 1];
};

static void timer_closed(uv_handle_t *h)
{
    free(h->data);
}

/* --- how it ended ------------------------------------------------------------------------- */

static void ended_by_record(
    struct ct *c, const struct init_record *rec, const struct runtime_state *st)
{
    char text[96], size[SIZE_TEXT_MAX];

    if (st->oom && !c->stop_sent) {
        snprintf(text, sizeof(text), "ran out of its %s of memory",
            size_format(c->sess->a->each.mem, size));
        ct_ended(c, END_OOM, 0, text);
    } else if (rec->start_failed)
        ct_ended(c, END_START_FAILED, st->exit_code, rec->text);
    else if (rec->signalled)
        ct_ended(c, END_SIGNAL, rec->code, "");
    else if (rec->exited)
        ct_ended(c, END_EXIT, rec->code, "");
    else if (st->exit_known && st->exit_code > 128)
        ct_ended(c, END_SIGNAL, st->exit_code - 128, "");
    else if (st->exit_known)
        ct_ended(c, END_EXIT, st->exit_code, "");
    else
        ct_ended(c, END_MONITOR_LOST, 0, "its monitor (conmon) died and left no exit status");
}

static void container_ended(struct ct *c, const struct runtime_state *st)
{
    struct init_record rec = {0};
    struct err err = ERR_INIT;

    if (rootfs_read_record(&c->sess->agent->rt.dirs, c->spec->id, &rec, &err) < 0)
        log_debug("session %s: %s: no exit record: %s", c->sess->a->session, c->spec->name,
            err_text(&err));
    if (c->report.end != END_NONE) /* it was decided before the kill */
        ct_ended(c, c->report.end, 0, c->report.text);
    else if (c->killed || (c->stop_sent && !rec.exited && !rec.signalled))
        ct_ended(c, END_STOPPED, 0, "");
    else
        ended_by_record(c, &rec, st);
}

/* Init has gone: wait for conmon's word, at most two seconds. */
static void exit_look(uv_timer_t *t)
{
    struct exit_wait *w = t->data;
    struct ct *c = sess_container(w->agent, w->container);
    struct runtime_state st = {0};
    struct err err = ERR_INIT;

    if (c && c->report.state != CONTAINER_EXITED) {
        int r = runtime_state(&w->agent->rt, c->sess->a->session, c->spec->id, &st, &err);
        if (r == 0 && !st.exit_known && st.conmon_pid && ++w->tries < EXIT_TRIES)
            return;
        container_ended(c, &st);
    }
    uv_close((uv_handle_t *)t, timer_closed);
}

static void look_for_exit(struct ct *c)
{
    struct exit_wait *w = xnew(struct exit_wait);

    w->agent = c->sess->agent;
    STR_SET(w->container, c->spec->id);
    uv_timer_init(w->agent->loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, exit_look, 0, EXIT_WAIT_MSEC);
}

static void conmon_is_gone(struct ct *c)
{
    struct agent *ag = c->sess->agent;
    struct runtime_state st = {0};

    if (c->report.state == CONTAINER_EXITED || c->killed)
        return;
    if (runtime_state(&ag->rt, c->sess->a->session, c->spec->id, &st, NULL) < 0 || !st.running)
        return; /* init's end is being looked at */
    log_warning("session %s: the monitor of %s died; its output is lost from here on, ending it",
        c->sess->a->session, c->spec->name);
    c->report.end = END_MONITOR_LOST;
    str_copy(c->report.text, sizeof(c->report.text), "its monitor (conmon) was killed");
    c->killed = true;
    runtime_kill(&ag->rt, c->spec->id, SIGKILL, NULL);
}

static void init_gone(uv_poll_t *p, int status, int events)
{
    struct pidwatch *w = p->data;
    struct ct *c = sess_container(w->agent, w->container);

    uv_poll_stop(p);
    if (c)
        look_for_exit(c);
}

static void conmon_gone(uv_poll_t *p, int status, int events)
{
    struct pidwatch *w = p->data;
    struct ct *c = sess_container(w->agent, w->container);

    uv_poll_stop(p);
    if (c)
        conmon_is_gone(c);
}

/* --- watching ----------------------------------------------------------------------------- */

static void watch_closed(uv_handle_t *h)
{
    struct pidwatch *w = h->data;

    close(w->fd);
    free(w);
}

static struct pidwatch *watch_pid(struct ct *c, pid_t pid, uv_poll_cb fn)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pidwatch *w;

    if (fd < 0)
        return NULL;
    w = xnew(struct pidwatch);
    w->fd = fd;
    w->agent = c->sess->agent;
    STR_SET(w->container, c->spec->id);
    if (uv_poll_init(w->agent->loop, &w->poll, fd) < 0)
        abort();
    w->poll.data = w;
    uv_poll_start(&w->poll, UV_READABLE, fn);
    return w;
}

void watch_container(struct ct *c)
{
    uint64_t start;

    unwatch_container(c);
    if (proc_start_time(c->pid, &start) == 0 && start == c->start_time)
        c->init_watch = watch_pid(c, c->pid, init_gone);
    if (!c->init_watch) {
        look_for_exit(c);
        return;
    }
    if (c->conmon_pid)
        c->conmon_watch = watch_pid(c, c->conmon_pid, conmon_gone);
    if (!c->conmon_watch)
        conmon_is_gone(c);
}

static void unwatch(struct pidwatch **w)
{
    if (!*w)
        return;
    uv_poll_stop(&(*w)->poll);
    uv_close((uv_handle_t *)&(*w)->poll, watch_closed);
    *w = NULL;
}

void unwatch_container(struct ct *c)
{
    unwatch(&c->init_watch);
    unwatch(&c->conmon_watch);
}
