/*
 * Event streams and long polls. A stream first reads what it missed from the store, then gets each
 * commit's events as they come; one that reads too slowly is cut off and comes back with
 * Last-Event-ID. A wait answers when its session is where the asker wants it, or after 30 s.
 */
#include "manager/events.h"

#include "base/buf.h"
#include "base/clock.h"
#include "manager/api.h"
#include "manager/state.h"
#include "wire/session.h"

#define REPLAY_PAGE 1000
#define WAIT_USEC (30 * USEC_PER_SEC)
#define KEEPALIVE_USEC (15 * USEC_PER_SEC)

struct watcher {
    struct list node;
    struct manager *m;
    struct request *rq;
    char owner[NAME_MAX_LEN + 1]; /* "" sees all */
    uint64_t last_revision;
    uint64_t seen_revision, seen_seq; /* the last event that it had before: inside a revision */
    uint64_t spoke_usec;
};

struct waiter {
    struct list node;
    struct call *c;
    char session[UUID_TEXT_LEN + 1];
    enum session_state at_least;
    uint64_t deadline_usec;
};

/* --- streams ------------------------------------------------------------------------------ */

static void watcher_gone(struct request *rq, void *arg)
{
    struct watcher *w = arg;

    list_remove(&w->node);
    free(w);
}

static void write_event(struct watcher *w, const struct store_event *e)
{
    char time[CLOCK_TEXT_MAX];
    struct buf b = BUF_INIT(1024 * 1024);
    _cleanup_(json_decrefp) json_t *subject = json_string(e->subject);
    _cleanup_(json_decrefp) json_t *owner = json_string(e->owner);
    _cleanup_free_ char *subject_text = json_dumps(subject, JSON_ENCODE_ANY);
    _cleanup_free_ char *owner_text = json_dumps(owner, JSON_ENCODE_ANY);

    buf_printf(&b,
        "id: %llu.%llu\nevent: %s\ndata: {\"type\":\"%s\",\"subject\":%s,\"owner\":%s,"
        "\"time\":\"%s\",\"revision\":%llu,\"body\":%s}\n\n",
        (unsigned long long)e->revision, (unsigned long long)e->seq, e->type, e->type,
        subject_text ? subject_text : "null", owner_text ? owner_text : "null",
        clock_format(e->usec, time), (unsigned long long)e->revision, e->body);
    request_write(w->rq, b.data, b.len);
    w->spoke_usec = clock_mono_usec();
    buf_done(&b);
}

static bool may_hear(const struct watcher *w, const struct store_event *e)
{
    return !w->owner[0] || !e->owner[0] || str_eq(w->owner, e->owner);
}

struct replay {
    struct watcher *w;
    uint64_t last;
    unsigned count;
};

static int replay_event(void *arg, const struct store_event *e)
{
    struct replay *r = arg;

    bool seen = e->revision == r->w->seen_revision && e->seq <= r->w->seen_seq;

    if (may_hear(r->w, e) && !seen)
        write_event(r->w, e);
    r->last = e->revision;
    r->count++;
    return 0;
}

/* Everything after *revision; *revision is then the last one written. Events of one revision are
 * never split over two pages, since a page ends where the next revision begins. */
static int replay(struct watcher *w, uint64_t after, struct err *err)
{
    struct replay r = {.w = w, .last = after};
    int code;

    do {
        r.count = 0;
        code = store_events(w->m->store, r.last, REPLAY_PAGE, NULL, replay_event, &r, err);
    } while (code == 0 && r.count > 0);
    w->last_revision = MAX_OF(r.last, after);
    return code;
}

/*
 * Where to begin, from "after=" or Last-Event-ID: "REVISION" (all of it was seen) or "REVISION.N"
 * (its events up to N were); none: from now. *ret: after which whole revision.
 */
static int wanted_revision(struct call *c, struct watcher *w, uint64_t *ret)
{
    const char *text = request_query(c->rq, "after");
    char number[24];
    size_t n;

    *ret = store_revision(c->m->store);
    if (!text)
        text = request_header(c->rq, "last-event-id");
    if (!text)
        return 0;
    n = strcspn(text, ".");
    if (n >= sizeof(number))
        return -EINVAL;
    memcpy(number, text, n);
    number[n] = '\0';
    if (str_to_u64(number, INT64_MAX, ret) < 0)
        return -EINVAL;
    if (!text[n] || *ret == 0)
        return 0;
    w->seen_revision = (*ret)--;
    return str_to_u64(text + n + 1, INT64_MAX, &w->seen_seq);
}

/* A client that is cut off before its first event comes back to where it was. */
static void write_position(struct watcher *w)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "id: %llu\n\n", (unsigned long long)w->last_revision);

    request_write(w->rq, text, (size_t)n);
}

void api_event_list(struct call *c)
{
    struct watcher *w;
    struct err err = ERR_INIT;
    const char *follow = request_query(c->rq, "follow");
    bool follows = !follow || !str_eq(follow, "0");
    uint64_t after;
    int r;

    w = xnew(struct watcher);
    if (wanted_revision(c, w, &after) < 0) {
        free(w);
        reply_error(c, 400, "bad_query", "'after' must be a revision, a whole number");
        return;
    }
    w->m = c->m;
    if (!call_is_admin(c))
        STR_SET(w->owner, c->user->name);
    w->rq = call_take_request(c);
    list_init(&w->node);
    request_on_gone(w->rq, watcher_gone, w);
    request_reply_start(w->rq, 200, "text/event-stream", NULL, NULL);
    r = replay(w, after, &err);
    if (r < 0) {
        struct buf b = BUF_INIT(4096);
        buf_printf(&b,
            "event: error\ndata: {\"code\":\"%s\",\"message\":\"events after revision %llu "
            "are no longer kept; read the lists, then follow from now\"}\n\n",
            r == -ESTALE ? "events_gone" : "internal", (unsigned long long)after);
        request_write(w->rq, b.data, b.len);
        buf_done(&b);
    }
    if (r < 0 || !follows) {
        struct request *rq = w->rq;
        request_on_gone(rq, NULL, NULL);
        free(w);
        request_end(rq);
        return;
    }
    write_position(w);
    list_append(&w->m->watchers, &w->node);
}

/* --- waits -------------------------------------------------------------------------------- */

static void waiter_answer(struct waiter *w)
{
    struct session *s, *loaded = NULL;
    struct err err = ERR_INIT;

    list_remove(&w->node);
    if (!w->c->rq) {
        call_free(w->c);
    } else if (session_find(w->c->m, w->c->user, w->session, &s, &loaded, &err) < 0) {
        reply_err(w->c, &err);
    } else {
        reply_json(w->c, 200, session_to_json_public(s));
        session_free(loaded);
    }
    free(w);
}

/* A start that failed and will be tried again stops, too, but goes back to pending. */
static bool waiter_is_done(struct manager *m, const struct waiter *w)
{
    const struct session *s = map_get(&m->sessions, w->session);

    if (s && s->state == SESSION_STOPPING && s->result == RESULT_NONE)
        return false;
    return !s || s->state >= w->at_least;
}

void api_session_wait(struct call *c)
{
    const char *what = request_query(c->rq, "for");
    struct session *s, *loaded = NULL;
    struct err err = ERR_INIT;
    struct waiter *w;

    if (what && !str_eq(what, "running") && !str_eq(what, "ended") && !str_eq(what, "stopping")) {
        reply_error(c, 400, "bad_query", "'for' must be running, stopping or ended");
        return;
    }
    if (session_find(c->m, c->user, c->params[0], &s, &loaded, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    w = xnew(struct waiter);
    w->c = c;
    STR_SET(w->session, s->id);
    w->at_least = !what || str_eq(what, "ended") ? SESSION_ENDED
        : str_eq(what, "running")                ? SESSION_RUNNING
                                                 : SESSION_STOPPING;
    w->deadline_usec = clock_mono_usec() + WAIT_USEC;
    list_append(&c->m->waiters, &w->node);
    session_free(loaded);
    if (loaded || waiter_is_done(c->m, w))
        waiter_answer(w);
}

/* --- what drives them --------------------------------------------------------------------- */

static void tell_watcher(
    struct watcher *w, uint64_t revision, const struct store_event *events, size_t count)
{
    if (revision <= w->last_revision)
        return; /* the replay had it */
    w->last_revision = revision;
    for (size_t i = 0; i < count; i++)
        if (may_hear(w, &events[i]))
            write_event(w, &events[i]);
}

void events_committed(void *arg, uint64_t revision, const struct store_event *events, size_t count)
{
    struct manager *m = arg;

    list_for_each_safe (it, &m->watchers)
        tell_watcher(LIST_ENTRY(it, struct watcher, node), revision, events, count);
    list_for_each_safe (it, &m->waiters) {
        struct waiter *w = LIST_ENTRY(it, struct waiter, node);
        if (waiter_is_done(m, w))
            waiter_answer(w);
    }
}

void events_tick(struct manager *m, uint64_t now_usec)
{
    list_for_each_safe (it, &m->waiters) {
        struct waiter *w = LIST_ENTRY(it, struct waiter, node);
        if (now_usec >= w->deadline_usec || !w->c->rq)
            waiter_answer(w);
    }
    list_for_each_safe (it, &m->watchers) {
        struct watcher *w = LIST_ENTRY(it, struct watcher, node);
        if (now_usec < w->spoke_usec + KEEPALIVE_USEC)
            continue;
        w->spoke_usec = now_usec;
        request_write(w->rq, ":\n\n", 3);
    }
}
