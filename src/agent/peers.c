/*
 * The logins across the network: main1 of a session on several nodes is ready when somebody has
 * logged in from it to each container on another node. Each of those comes up in its own time, so
 * a try is a short job, and between tries only a timer waits: a session that waits for a slow node
 * holds no worker thread that another session needs.
 */
#include "agent/sess.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/work.h"

#define PAUSE_FIRST_MSEC 5
#define PAUSE_MAX_MSEC 200
#define GIVE_UP_USEC (30 * 60 * USEC_PER_SEC) /* the manager's deadline is the shorter one */

struct peer_login {
    struct sess *s;
    struct ct *c;
    const struct assigned_peer *peer;
    char netns[NETNS_PATH_MAX];
    uint64_t give_up_usec;
    uint64_t pause_msec;
    uv_timer_t timer;
    int result;
    struct err err;
};

static void timer_closed(uv_handle_t *h)
{
    struct peer_login *p = h->data;
    struct sess *s = p->s;
    struct ct *c = p->c;

    s->jobs--;
    s->logins_left--;
    if (p->result < 0 && c->report.state < CONTAINER_READY) {
        log_warning("session %s: %s: %s", s->a->session, c->spec->name, err_text(&p->err));
        session_failed(s, c, &p->err);
    } else if (s->logins_left == 0 && c->report.state < CONTAINER_READY && !s->failed) {
        c->report.text[0] = '\0';
        ct_report(c, CONTAINER_READY);
        spec_write(s, NULL);
    }
    free(p);
    sess_work(s);
}

static int try_run(void *arg, struct err *err)
{
    struct peer_login *p = arg;

    return ready_try(&p->s->agent->rt.dirs, p->netns, p->c->spec->id, p->peer->ip, err);
}

static void try_done(void *arg, int result, const struct err *err);

static void try_again(uv_timer_t *t)
{
    struct peer_login *p = t->data;

    if (atomic_load(&p->s->cancel)) {
        p->result = err_set(&p->err, -ECANCELED, "stopped while it waited for %s", p->peer->name);
        uv_close((uv_handle_t *)t, timer_closed);
        return;
    }
    work_start(p->s->agent->loop, try_run, try_done, p);
}

static void try_done(void *arg, int result, const struct err *err)
{
    struct peer_login *p = arg;

    if (result < 0 && clock_mono_usec() < p->give_up_usec) {
        uv_timer_start(&p->timer, try_again, p->pause_msec, 0);
        p->pause_msec = MIN_OF(p->pause_msec * 2, PAUSE_MAX_MSEC);
        return;
    }
    if (result < 0)
        p->result = err_set(&p->err, result, "SSH login to %s on %s: %s", p->peer->name,
            p->peer->node, err_text(err));
    uv_close((uv_handle_t *)&p->timer, timer_closed);
}

static void login_to(struct ct *c, const struct assigned_peer *peer)
{
    struct sess *s = c->sess;
    struct peer_login *p = xnew(struct peer_login);

    p->s = s;
    p->c = c;
    p->peer = peer;
    p->give_up_usec = clock_mono_usec() + GIVE_UP_USEC;
    p->pause_msec = PAUSE_FIRST_MSEC;
    edge_container_netns(&s->agent->node_net, s->a->session, c->spec->name, p->netns);
    uv_timer_init(s->agent->loop, &p->timer);
    p->timer.data = p;
    s->jobs++;
    s->logins_left++;
    work_start(s->agent->loop, try_run, try_done, p);
}

void peers_login(struct ct *c)
{
    struct sess *s = c->sess;
    const struct assigned_peer *self = &s->a->peers[c->spec->rank];

    for (uint32_t i = 0; c->spec->rank == 0 && i < s->a->peer_count; i++)
        if (!str_eq(s->a->peers[i].node, self->node))
            login_to(c, &s->a->peers[i]);
    if (c->spec->rank == 0 && s->logins_left > 0) {
        snprintf(c->report.text, sizeof(c->report.text),
            "up; waits for an SSH login to each container on other nodes");
        ct_report(c, c->report.state);
        return;
    }
    c->report.text[0] = '\0';
    ct_report(c, CONTAINER_READY);
}
