/*
 * A container's log as a stream: frames from an offset on, then, when followed, what is added,
 * until the container has ended and all was sent. The file is conmon's; this only reads.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/logfile.h"
#include "agent/sess.h"
#include "agent/stream.h"
#include "base/clock.h"
#include "wire/logframe.h"

#define CHUNK (512 * 1024)
#define POLL_MSEC 20

struct logs {
    int fd;
    uint64_t at;
    uv_timer_t timer;
    bool timer_open, ended;
    unsigned quiet; /* looks since the container's end without a complete line */
};

static bool container_is_over(struct stream *st)
{
    struct ct *c = sess_container(st->agent, st->order.container);

    return !c || c->report.state == CONTAINER_EXITED;
}

static void send_end(struct stream *st)
{
    struct logs *l = st->data;
    struct buf b = BUF_INIT(64);
    struct logframe f = {.next = l->at};

    l->ended = true;
    logframe_append(&b, &f, NULL);
    ws_send(st->ws, b.data, b.len, true);
    buf_done(&b);
}

/* Send what is there; false when there was nothing. */
static bool send_some(struct stream *st)
{
    struct logs *l = st->data;
    _cleanup_free_ char *text = xcalloc(1, CHUNK);
    struct buf out = BUF_INIT(4 * CHUNK);
    ssize_t n = pread(l->fd, text, CHUNK, (off_t)l->at);
    size_t used = 0, skip = 0;

    if (n <= 0)
        return false;
    /* What was given up to keep the log short is a hole at the front: zero bytes. */
    while (skip < (size_t)n && text[skip] == '\0')
        skip++;
    if (skip < (size_t)n)
        used = logfile_to_frames(text + skip, (size_t)n - skip, l->at + skip, &out);
    l->at += used ? skip + used : skip;
    if (out.len > 0)
        ws_send(st->ws, out.data, out.len, true);
    buf_done(&out);
    return skip > 0 || used > 0;
}

static void pump_logs(struct stream *st)
{
    struct logs *l = st->data;

    if (!st->ws || l->ended)
        return;
    while (ws_queued(st->ws) < STREAM_QUEUE_HIGH) {
        bool over = container_is_over(st); /* before the look at the file */
        if (send_some(st))
            continue;
        if (over || !st->order.follow)
            send_end(st);
        return;
    }
}

static void on_timer(uv_timer_t *t)
{
    pump_logs(t->data);
}

static int logs_start(struct stream *st, struct err *err)
{
    struct logs *l = xnew(struct logs);
    _cleanup_free_ char *path = xasprintf(
        "%s/log/%s", st->agent->rt.dirs.state, st->order.container);
    off_t data;

    st->data = l;
    l->at = st->order.offset;
    l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (l->fd < 0 && (errno != ENOENT || !sess_container(st->agent, st->order.container)))
        return err_set(err, -ENOENT, "the log of the container is not kept any more");
    if (l->fd < 0) { /* it has not come so far as to write one */
        l->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    /* Over what was given up, at one stroke. */
    data = lseek(l->fd, (off_t)l->at, SEEK_DATA);
    if (data > (off_t)l->at)
        l->at = (uint64_t)data;
    uv_timer_init(st->agent->loop, &l->timer);
    l->timer.data = st;
    l->timer_open = true;
    if (st->order.follow)
        uv_timer_start(&l->timer, on_timer, POLL_MSEC, POLL_MSEC);
    pump_logs(st);
    return 0;
}

static void timer_closed(uv_handle_t *h)
{
    struct stream *st = h->data;
    struct logs *l = st->data;

    if (l->fd >= 0)
        close(l->fd);
    free(l);
    stream_done(st);
}

static void logs_closed(struct stream *st)
{
    struct logs *l = st->data;

    if (l && l->timer_open) {
        l->timer_open = false;
        uv_close((uv_handle_t *)&l->timer, timer_closed);
        return;
    }
    if (l && l->fd >= 0)
        close(l->fd);
    free(l);
    stream_done(st);
}

const struct stream_kind_ops log_ops = {
    .start = logs_start,
    .drained = pump_logs,
    .closed = logs_closed,
};
