/* Bytes between a descriptor and a stream's WebSocket, with back pressure both ways. */
#include "agent/stream.h"

#define WRITE_HIGH (1024 * 1024)

struct write {
    uv_write_t req;
    struct pump *p;
    size_t len;
    char data[];
};

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct pump *p = h->data;
    size_t head = p->channel >= 0;

    buf->base = (char *)xcalloc(1, suggested + 1) + head;
    buf->len = suggested;
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct pump *p = s->data;
    size_t head = p->channel >= 0;
    char *base = buf->base ? buf->base - head : NULL;

    if (n > 0 && base && p->st->ws) {
        if (head)
            base[0] = (char)p->channel;
        if (ws_send(p->st->ws, base, (size_t)n + head, true) > STREAM_QUEUE_HIGH)
            pump_read(p, false);
    }
    free(base);
    if (n < 0) {
        pump_read(p, false);
        p->eof = true;
        p->ended(p);
    }
}

int pump_open(struct pump *p, struct stream *st, int fd, int channel)
{
    int r;

    p->st = st;
    p->channel = channel;
    p->pipe.data = p;
    uv_pipe_init(st->agent->loop, &p->pipe, 0);
    p->open = true;
    r = uv_pipe_open(&p->pipe, fd);
    if (r < 0)
        close(fd);
    return r;
}

void pump_read(struct pump *p, bool on)
{
    if (!p->open || p->eof || on == p->reading)
        return;
    p->reading = on;
    if (on)
        uv_read_start((uv_stream_t *)&p->pipe, on_alloc, on_read);
    else
        uv_read_stop((uv_stream_t *)&p->pipe);
}

static void on_written(uv_write_t *req, int status)
{
    struct write *w = (struct write *)req;
    struct pump *p = w->p;

    p->queued -= w->len;
    if (p->open && p->queued < WRITE_HIGH / 4 && p->st->ws)
        ws_pause(p->st->ws, false);
    if (p->open && p->shut && p->queued == 0)
        pump_close(p);
    free(w);
}

void pump_write(struct pump *p, const char *data, size_t len)
{
    struct write *w;
    uv_buf_t buf;

    if (!p->open || p->shut || len == 0)
        return;
    w = xcalloc(1, sizeof(*w) + len);
    w->p = p;
    w->len = len;
    memcpy(w->data, data, len);
    buf = uv_buf_init(w->data, (unsigned)len);
    p->queued += len;
    if (uv_write(&w->req, (uv_stream_t *)&p->pipe, &buf, 1, on_written) < 0) {
        p->queued -= len;
        free(w);
        return;
    }
    if (p->queued > WRITE_HIGH && p->st->ws)
        ws_pause(p->st->ws, true);
}

void pump_shut(struct pump *p)
{
    if (!p->open || p->shut)
        return;
    p->shut = true;
    if (p->queued == 0)
        pump_close(p);
}

static void on_closed(uv_handle_t *h)
{
    struct pump *p = h->data;

    p->closed(p);
}

void pump_close(struct pump *p)
{
    if (!p->open)
        return;
    p->open = false;
    uv_close((uv_handle_t *)&p->pipe, on_closed);
}
