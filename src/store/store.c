/*
 * The loop's side of the store: stages changes, hands them over at the end of the loop's turn as
 * one batch, and calls back when they are durable. One batch is in flight at a time; what is staged
 * meanwhile becomes the next. Everything here is the loop thread's.
 *
 * Order kept: a commit's events (on_commit), then those who wait for it (store_after), then the
 * next commit's. Callbacks that are due stand in one queue, and whoever runs it takes them from its
 * front, so that a callback may call store_sync or store_close.
 *
 * What keeps the loop running: the idle handle while something is staged or due (it also stops the
 * loop from sleeping on it), the async handle while a batch is in flight. prepare and check, which
 * end a turn before and after the poll, never do.
 */
#include "store/store.h"

#include "base/clock.h"
#include "base/map.h"
#include "store/committer.h"

struct after {
    struct list link; /* in batch.after or store.due */
    uint64_t serial;
    void (*fn)(void *arg);
    void *arg;
};

struct store {
    struct backend *backend;
    struct committer committer;
    void (*fatal)(void *arg, const char *text);
    void *fatal_arg;
    void (*on_commit)(void *arg, uint64_t revision, const struct store_event *events, size_t count);
    void *on_commit_arg;
    bool in_on_commit, is_closed;

    struct batch *staged, *in_flight;
    uint64_t revision;   /* of the last durable commit */
    uint64_t seq;        /* of the last event staged */
    struct map counters; /* name -> uint64_t *, the last value given out */
    struct list due;     /* struct after */
    uint64_t serial;     /* of the last after */

    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    uv_async_t async;
    unsigned open_handles;
};

static void die(struct store *s, const char *text)
{
    s->fatal(s->fatal_arg, text);
    abort();
}

static void run_due(struct store *s)
{
    uint64_t last = s->serial; /* what a callback adds waits for the next turn */

    while (!list_is_empty(&s->due)) {
        struct after *a = LIST_ENTRY(s->due.next, struct after, link);
        void (*fn)(void *) = a->fn;
        void *arg = a->arg;

        if (a->serial > last)
            return;
        list_remove(&a->link);
        free(a);
        fn(arg);
    }
}

static void submit(struct store *s)
{
    if (s->in_flight || batch_is_empty(s->staged))
        return;
    s->in_flight = s->staged;
    s->staged = batch_new();
    batch_set_revision(s->in_flight, s->revision + 1);
    uv_ref((uv_handle_t *)&s->async);
    committer_submit(&s->committer, s->in_flight);
}

static void tell_events(struct store *s, const struct batch *b)
{
    if (!s->on_commit)
        return;
    s->in_on_commit = true;
    s->on_commit(s->on_commit_arg, b->revision, b->events, b->event_count);
    s->in_on_commit = false;
}

/* Take over the batch in flight if it is durable. */
static void collect(struct store *s, bool wait)
{
    struct err err = ERR_INIT;
    struct batch *b = NULL;

    if (committer_collect(&s->committer, wait, &b, &err) < 0)
        die(s, err_text(&err));
    if (!b)
        return;
    assert(b == s->in_flight);
    s->in_flight = NULL;
    s->revision = b->revision;
    uv_unref((uv_handle_t *)&s->async);
    /* Queued first: what on_commit adds with store_after comes behind them. */
    while (!list_is_empty(&b->after)) {
        struct list *link = b->after.next;
        list_remove(link);
        list_append(&s->due, link);
    }
    tell_events(s, b);
    batch_free(b);
}

static bool is_quiet(const struct store *s)
{
    return batch_is_empty(s->staged) && !s->in_flight && list_is_empty(&s->due);
}

/* Bring one round to its end without the loop; a callback may have closed the store after it. */
static void settle(struct store *s)
{
    assert(!s->in_on_commit);
    submit(s);
    if (s->in_flight)
        collect(s, true);
    run_due(s);
}

/* ---- turns of the loop ---- */

static void on_idle(UNUSED uv_idle_t *handle)
{
}

static void want_turn(struct store *s)
{
    uv_idle_start(&s->idle, on_idle);
}

static void end_turn(struct store *s)
{
    run_due(s);
    if (s->is_closed)
        return;
    submit(s);
    if (list_is_empty(&s->due))
        uv_idle_stop(&s->idle);
}

static void on_prepare(uv_prepare_t *handle)
{
    end_turn(CONTAINER_OF(handle, struct store, prepare));
}

static void on_check(uv_check_t *handle)
{
    end_turn(CONTAINER_OF(handle, struct store, check));
}

static void on_async(uv_async_t *handle)
{
    struct store *s = CONTAINER_OF(handle, struct store, async);

    collect(s, false);
    run_due(s);
}

/* ---- opening and closing ---- */

static void take_counter(void *arg, const char *name, uint64_t value)
{
    struct store *s = arg;

    map_set(&s->counters, name, xmemdup(&value, sizeof(value)));
}

/* The handles but async cannot fail. */
static int init_handles(struct store *s, uv_loop_t *loop, struct err *err)
{
    int r = uv_async_init(loop, &s->async, on_async);

    if (r < 0)
        return err_sys(err, r, "cannot watch the store's thread");
    uv_prepare_init(loop, &s->prepare);
    uv_check_init(loop, &s->check);
    uv_idle_init(loop, &s->idle);
    uv_prepare_start(&s->prepare, on_prepare);
    uv_check_start(&s->check, on_check);
    uv_unref((uv_handle_t *)&s->async);
    uv_unref((uv_handle_t *)&s->prepare);
    uv_unref((uv_handle_t *)&s->check);
    return 0;
}

static void free_parts(struct store *s)
{
    if (s->backend)
        s->backend->ops->close(s->backend);
    map_done(&s->counters, free);
    batch_free(s->staged);
}

static int open_parts(struct store *s, const struct store_opts *opts, struct err *err)
{
    int r;

    r = sqlite_open(opts->path, &s->backend, err);
    if (r >= 0)
        r = s->backend->ops->counters(s->backend, take_counter, s, err);
    if (r >= 0)
        r = committer_start(&s->committer, s->backend, &s->async, err);
    if (r < 0)
        return r;
    s->revision = s->backend->revision;
    s->seq = s->backend->seq;
    r = init_handles(s, opts->loop, err);
    if (r < 0)
        committer_stop(&s->committer, NULL);
    return r;
}

int store_open(const struct store_opts *opts, struct store **ret, struct err *err)
{
    struct store *s = xnew(struct store);
    int r;

    assert(opts->loop && opts->fatal);
    s->fatal = opts->fatal;
    s->fatal_arg = opts->arg;
    s->staged = batch_new();
    map_init(&s->counters);
    list_init(&s->due);
    r = open_parts(s, opts, err);
    if (r < 0) {
        free_parts(s);
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct store *s = handle->data;

    if (--s->open_handles == 0)
        free(s);
}

static void close_handles(struct store *s)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&s->prepare, (uv_handle_t *)&s->check,
        (uv_handle_t *)&s->idle, (uv_handle_t *)&s->async};

    s->open_handles = ARRAY_LEN(handles);
    for (size_t i = 0; i < ARRAY_LEN(handles); i++) {
        handles[i]->data = s;
        uv_close(handles[i], on_closed);
    }
}

void store_close(struct store *s)
{
    struct err err = ERR_INIT;

    if (!s)
        return;
    while (!is_quiet(s) && !s->is_closed)
        settle(s);
    if (s->is_closed)
        return;
    if (committer_stop(&s->committer, &err) < 0)
        die(s, err_text(&err));
    free_parts(s);
    s->is_closed = true;
    close_handles(s);
}

int store_sync(struct store *s, UNUSED struct err *err)
{
    uint64_t until = s->revision + (s->in_flight != NULL) + !batch_is_empty(s->staged);

    while (!s->is_closed && s->revision < until)
        settle(s);
    return 0;
}

/* ---- staging ---- */

void store_put(struct store *s, const struct store_doc *doc)
{
    batch_put(s->staged, doc);
    want_turn(s);
}

void store_del(struct store *s, const char *kind, const char *id)
{
    batch_del(s->staged, kind, id);
    want_turn(s);
}

void store_event(
    struct store *s, const char *type, const char *subject, const char *owner, const char *body)
{
    struct store_event event = {
        .seq = ++s->seq,
        .usec = clock_real_usec(),
        .type = type,
        .subject = subject,
        .owner = owner ? owner : "",
        .body = body,
    };

    batch_event(s->staged, &event);
    want_turn(s);
}

uint64_t store_next(struct store *s, const char *counter)
{
    uint64_t *value = map_get(&s->counters, counter);

    if (!value) {
        value = xnew(uint64_t);
        map_set(&s->counters, counter, value);
    }
    batch_counter(s->staged, counter, ++*value);
    want_turn(s);
    return *value;
}

void store_after(struct store *s, void (*fn)(void *arg), void *arg)
{
    struct after *a = xnew(struct after);

    a->serial = ++s->serial;
    a->fn = fn;
    a->arg = arg;
    if (!batch_is_empty(s->staged)) {
        list_append(&s->staged->after, &a->link);
    } else if (s->in_flight) {
        list_append(&s->in_flight->after, &a->link);
    } else {
        list_append(&s->due, &a->link);
        want_turn(s);
    }
}

void store_on_commit(struct store *s,
    void (*fn)(void *arg, uint64_t revision, const struct store_event *events, size_t count),
    void *arg)
{
    assert(!s->on_commit);
    s->on_commit = fn;
    s->on_commit_arg = arg;
}

uint64_t store_revision(const struct store *s)
{
    return s->revision;
}

/* ---- reading ---- */

int store_get(struct store *s, const char *kind, const char *id,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err)
{
    return s->backend->ops->get(s->backend, kind, id, fn, arg, err);
}

int store_list(struct store *s, const struct store_filter *filter,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err)
{
    assert(filter->kind);
    return s->backend->ops->list(s->backend, filter, fn, arg, err);
}

int store_page(struct store *s, const struct store_query *query,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct store_cursor *ret_next,
    struct err *err)
{
    assert(query->kind && query->limit && query->scan);
    return s->backend->ops->page(s->backend, query, fn, arg, ret_next, err);
}

int store_events(struct store *s, uint64_t after, uint32_t limit, const char *owner,
    int (*fn)(void *arg, const struct store_event *event), void *arg, struct err *err)
{
    return s->backend->ops->events(s->backend, after, limit, owner, fn, arg, err);
}
