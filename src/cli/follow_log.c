/*
 * A container's log as frames (docs/openapi.yaml, getLogs), to two descriptors. A stream that ends
 * without the frame of the end was cut, and is asked for again from where it was.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/follow.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "wire/logframe.h"

struct log {
    const struct log_opts *opts;
    bool utc;
    struct patience patience;
    struct buf have; /* not yet a whole frame */
    uint64_t offset; /* behind the last frame that was written out */
    bool ended;
    bool line_open[3]; /* by channel: the last byte was no newline */
    int written;       /* why writing failed: negative errno */
};

static int write_stamped(struct log *l, const struct logframe *f, int fd, const char *data)
{
    _cleanup_free_ char *time = text_usec(f->usec, l->utc);
    struct buf out = BUF_INIT(SIZE_MAX);
    int r;

    for (uint32_t at = 0; at < f->len;) {
        const char *nl = memchr(data + at, '\n', f->len - at);
        uint32_t n = nl ? (uint32_t)(nl - data) + 1 - at : f->len - at;
        if (!l->line_open[f->channel])
            buf_printf(&out, "%s ", time);
        buf_append(&out, data + at, n);
        l->line_open[f->channel] = !nl;
        at += n;
    }
    r = write_all(fd, out.data ? out.data : "", out.len);
    buf_done(&out);
    return r;
}

static int write_frame(struct log *l, const struct logframe *f, const char *data)
{
    int fd = f->channel == 1 ? l->opts->out_fd : l->opts->err_fd;

    if (f->channel > 2)
        return 0; /* of a later version */
    if (fd == STDERR_FILENO || isatty(fd))
        progress_clear();
    return l->opts->timestamps ? write_stamped(l, f, fd, data) : write_all(fd, data, f->len);
}

/* One frame, if it is there whole: 1; 0: more is needed. */
static int take_frame(struct log *l, size_t *at)
{
    struct logframe f;
    int head = logframe_parse(l->have.data + *at, l->have.len - *at, &f);

    if (head == -EAGAIN)
        return 0;
    if (head < 0 || f.len > LOGFRAME_DATA_MAX)
        return -EBADMSG;
    if (l->have.len - *at - (size_t)head < f.len)
        return 0;
    if (f.channel == 0) {
        l->ended = true;
    } else {
        l->written = write_frame(l, &f, l->have.data + *at + head);
        if (l->written < 0)
            return l->written;
        l->offset = f.next;
    }
    *at += (size_t)head + f.len;
    return 1;
}

static int on_data(const char *data, size_t len, void *arg)
{
    struct log *l = arg;
    size_t at = 0;
    int r = buf_append(&l->have, data, len);

    if (r < 0)
        return r;
    patience_over(&l->patience);
    while (!l->ended && (r = take_frame(l, &at)) > 0)
        ;
    buf_consume(&l->have, at);
    return r < 0 ? r : 0;
}

static int once(struct cli *cli, struct log *l, struct err *err)
{
    _cleanup_free_ char *suffix = xasprintf("/logs?format=frames&container=%s&offset=%llu%s",
        l->opts->container, (unsigned long long)l->offset, l->opts->follow ? "&follow=1" : "");
    _cleanup_free_ char *path = api_session_path(l->opts->session, suffix);
    struct http_call call = {.method = "GET", .path = path, .on_data = on_data, .arg = l};
    int r;

    buf_done(&l->have);
    l->have = BUF_INIT(2 * LOGFRAME_DATA_MAX);
    r = api_stream(cli, call, err);
    if (l->written < 0)
        return err_sys(err, l->written, "cannot write the log");
    if (r == -EBADMSG)
        return err_set(err, -EBADMSG, "the manager sent a malformed log");
    return r;
}

int follow_log(struct cli *cli, const struct log_opts *opts, struct err *err)
{
    struct log l = {.opts = opts, .utc = cli->utc};
    int r = 0;

    for (;;) {
        cli->status = 0;
        r = once(cli, &l, err);
        if (l.ended || l.written < 0 || r == -EBADMSG)
            break;
        if (r == -EREMOTEIO && cli->status != 503)
            break;
        if (!opts->follow && r < 0 && l.patience.tries > 0)
            break;
        patience_wait(&l.patience, r < 0 ? err_text(err) : "the log stream was cut");
    }
    buf_done(&l.have);
    return l.ended ? 0 : r;
}
