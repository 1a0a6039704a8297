/* Between descriptors and a WebSocket. */
#include "cli/ends.h"

#include <poll.h>

#include "cli/progress.h"

#define SEND_HIGH ((size_t)1 << 20)
#define OUT_HIGH ((size_t)1 << 20)
#define OUT_LOW ((size_t)256 << 10)
/* While we read nothing, the peer's pings stay unanswered: say something before it gives us up. */
#define ALIVE_MSEC 8000

struct chunk {
    struct list link;
    int fd;
    size_t len;
    unsigned char data[];
};

static void say_alive(uv_timer_t *t)
{
    struct ends *io = t->data;

    if (io->ws)
        ws_send_text(io->ws, "{}");
}

void ends_init(struct ends *io, uv_loop_t *loop, int in_fd, int channel)
{
    *io = (struct ends){.loop = loop, .in_fd = in_fd, .channel = channel};
    list_init(&io->out);
    uv_timer_init(loop, &io->alive);
    io->alive.data = io->read_job.data = io->write_job.data = io;
}

/* --- from in_fd --------------------------------------------------------------------------- */

static void read_run(uv_work_t *w)
{
    struct ends *io = w->data;
    struct pollfd p = {.fd = io->in_fd, .events = POLLIN};

    do {
        io->got = read(io->in_fd, io->in + 1, sizeof(io->in) - 1);
        if (io->got < 0 && errno == EAGAIN)
            (void)poll(&p, 1, -1);
    } while (io->got < 0 && (errno == EINTR || errno == EAGAIN));
}

static void read_done(uv_work_t *w, int status)
{
    struct ends *io = w->data;

    io->reading = false;
    if (!io->ws || status < 0)
        return;
    if (io->got <= 0) {
        io->at_end = true;
        io->eof(io);
        return;
    }
    if (io->channel >= 0)
        io->in[0] = (unsigned char)io->channel;
    size_t skip = io->channel >= 0 ? 0 : 1;
    if (ws_send(io->ws, io->in + skip, (size_t)io->got + 1 - skip, true) < SEND_HIGH)
        ends_read(io);
}

void ends_read(struct ends *io)
{
    if (io->reading || io->at_end || !io->ws || io->in_fd < 0)
        return;
    io->reading = true;
    if (uv_queue_work(io->loop, &io->read_job, read_run, read_done) < 0)
        abort();
}

/* --- to a descriptor ---------------------------------------------------------------------- */

static void write_run(uv_work_t *w)
{
    struct ends *io = w->data;
    struct chunk *c = LIST_ENTRY(io->out.next, struct chunk, link);

    /* The loop only appends behind it meanwhile; the first one's data stays where it is. */
    int r = write_all(c->fd, c->data, c->len);
    if (r < 0)
        io->failed = r;
}

static void write_next(struct ends *io);

static void write_done(uv_work_t *w, int status)
{
    struct ends *io = w->data;
    struct chunk *c = LIST_ENTRY(io->out.next, struct chunk, link);

    if (io->failed < 0)
        io->broken(io);
    io->writing = false;
    io->queued -= c->len;
    list_remove(&c->link);
    free(c);
    if (io->paused && io->queued < OUT_LOW && io->ws) {
        io->paused = false;
        uv_timer_stop(&io->alive);
        ws_pause(io->ws, false);
    }
    write_next(io);
}

static void write_next(struct ends *io)
{
    if (list_is_empty(&io->out)) {
        if (io->drained)
            io->drained(io);
        return;
    }
    io->writing = true;
    if (uv_queue_work(io->loop, &io->write_job, write_run, write_done) < 0)
        abort();
}

void ends_write(struct ends *io, int fd, const void *data, size_t len)
{
    struct chunk *c;

    if (len == 0)
        return;
    c = xcalloc(1, sizeof(*c) + len);
    c->fd = fd;
    c->len = len;
    memcpy(c->data, data, len);
    list_init(&c->link);
    list_append(&io->out, &c->link);
    io->queued += len;
    if (io->queued > OUT_HIGH && !io->paused && io->ws) {
        io->paused = true;
        ws_pause(io->ws, true);
        uv_timer_start(&io->alive, say_alive, ALIVE_MSEC, ALIVE_MSEC);
    }
    if (!io->writing)
        write_next(io);
}

bool ends_is_drained(const struct ends *io)
{
    return !io->writing && list_is_empty(&io->out);
}
