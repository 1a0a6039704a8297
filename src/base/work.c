/*
 * Blocking work off the loop, over uv_queue_work. A piece of work is one heap record that belongs
 * to libuv until done() was called.
 */
#include "base/work.h"

struct work {
    uv_work_t req;
    work_run_fn run;
    work_done_fn done;
    void *arg;
    int result;
    struct err err;
};

static void in_thread(uv_work_t *req)
{
    struct work *w = req->data;

    w->result = w->run(w->arg, &w->err);
}

static void on_loop(uv_work_t *req, int status)
{
    struct work *w = req->data;

    assert(status == 0); /* only uv_cancel, which nobody calls, makes it another */
    w->done(w->arg, w->result, &w->err);
    free(w);
}

void work_start(uv_loop_t *loop, work_run_fn run, work_done_fn done, void *arg)
{
    struct work *w = xnew(struct work);
    int r;

    w->req.data = w;
    w->run = run;
    w->done = done;
    w->arg = arg;
    r = uv_queue_work(loop, &w->req, in_thread, on_loop);
    assert(r == 0);
}
