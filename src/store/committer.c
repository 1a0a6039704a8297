/*
 * The commit thread and the only lock of the store. Knows nothing of callbacks; the thread touches
 * the backend's writing half and the batch that it was given, and after it has given that back,
 * only the backend.
 */
#include "store/committer.h"

#include "base/crash.h"

static struct batch *wait_for_batch(struct committer *c)
{
    struct batch *b;

    uv_mutex_lock(&c->lock);
    while (!c->queued && !c->stop)
        uv_cond_wait(&c->changed, &c->lock);
    b = TAKE_PTR(c->queued);
    uv_mutex_unlock(&c->lock);
    return b;
}

static void post(struct committer *c, struct batch *committed, const struct err *failure)
{
    uv_mutex_lock(&c->lock);
    if (committed)
        c->committed = committed;
    if (failure)
        c->failure = *failure;
    uv_cond_broadcast(&c->changed);
    uv_mutex_unlock(&c->lock);
    uv_async_send(c->wake);
}

static int commit(struct committer *c, const struct batch *b, struct err *err)
{
    int r;

    r = crash_point("store.before_commit", err);
    if (r >= 0)
        r = c->backend->ops->commit(c->backend, b, err);
    if (r >= 0)
        r = crash_point("store.after_commit", err);
    return r;
}

static void run_thread(void *arg)
{
    struct committer *c = arg;
    struct err err = ERR_INIT;
    struct batch *b;
    int r = 0;

    while (r >= 0 && (b = wait_for_batch(c))) {
        r = commit(c, b, &err);
        if (r < 0)
            break;
        post(c, b, NULL);
        r = c->backend->ops->tidy(c->backend, &err);
    }
    if (r < 0)
        post(c, NULL, &err);
}

int committer_start(struct committer *c, struct backend *backend, uv_async_t *wake, struct err *err)
{
    int r;

    *c = (struct committer){.backend = backend, .wake = wake};
    r = uv_mutex_init(&c->lock);
    if (r < 0)
        return err_sys(err, r, "cannot make the store's lock");
    r = uv_cond_init(&c->changed);
    if (r >= 0) {
        r = uv_thread_create(&c->thread, run_thread, c);
        if (r >= 0)
            return 0;
        uv_cond_destroy(&c->changed);
    }
    uv_mutex_destroy(&c->lock);
    return err_sys(err, r, "cannot start the store's thread");
}

void committer_submit(struct committer *c, struct batch *b)
{
    uv_mutex_lock(&c->lock);
    assert(!c->queued && !c->committed);
    c->queued = b;
    uv_cond_broadcast(&c->changed);
    uv_mutex_unlock(&c->lock);
}

int committer_collect(struct committer *c, bool wait, struct batch **ret, struct err *err)
{
    int r;

    uv_mutex_lock(&c->lock);
    while (wait && !c->committed && !c->failure.code)
        uv_cond_wait(&c->changed, &c->lock);
    r = c->failure.code;
    if (r < 0)
        err_set(err, r, "%s", c->failure.text);
    else
        *ret = TAKE_PTR(c->committed);
    uv_mutex_unlock(&c->lock);
    return r;
}

int committer_stop(struct committer *c, struct err *err)
{
    uv_mutex_lock(&c->lock);
    c->stop = true;
    uv_cond_broadcast(&c->changed);
    uv_mutex_unlock(&c->lock);
    uv_thread_join(&c->thread);
    uv_cond_destroy(&c->changed);
    uv_mutex_destroy(&c->lock);
    if (c->failure.code < 0)
        return err_set(err, c->failure.code, "%s", c->failure.text);
    return 0;
}
