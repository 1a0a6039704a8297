/*
 * The send queue of a connection: bytes in memory, then perhaps a file. Sends at once what the
 * socket takes; the rest waits for conn.c to find the socket writable.
 */
#include <sys/sendfile.h>

#include "net/conn_internal.h"

/* Bytes of one TLS record, and of one turn. */
#define RECORD_MAX ((size_t)16 << 10)
#define TURN_MAX ((size_t)512 << 10)

uint64_t conn_queued(const struct conn *c)
{
    return c->broken ? 0 : c->out_len + c->file_len;
}

/* -1, with the reason noted. */
static int broke(struct conn *c, int r)
{
    struct err err = ERR_INIT;

    err_sys(&err, r, "the connection was lost");
    conn_note(c, &err);
    return -1;
}

/* Bytes taken; 0 when the socket takes none now; -1 when it is broken. */
static ssize_t write_plain(struct conn *c, const char *data, size_t len)
{
    ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? 0 : broke(c, -errno);
}

static ssize_t write_tls(struct conn *c, const char *data, size_t len)
{
    struct err err = ERR_INIT;
    /* A record that had to wait must be offered again with the same bytes: the queue begins with
     * them, and its first RECORD_MAX bytes are never fewer than they were. */
    ssize_t n = c->tls->ops->write(c->tls, data, MIN_OF(len, RECORD_MAX), &err);

    if (n >= 0)
        return n;
    if (n == -EAGAIN)
        return 0;
    conn_note(c, &err);
    return -1;
}

static ssize_t write_some(struct conn *c, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = c->tls ? write_tls(c, data + done, len - done)
                           : write_plain(c, data + done, len - done);

        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static void queue_add(struct conn *c, const char *data, size_t len)
{
    if (c->out_pos && c->out_pos + c->out_len + len > c->out_cap) {
        memmove(c->out, c->out + c->out_pos, c->out_len);
        c->out_pos = 0;
    }
    c->out = xgrow(c->out, &c->out_cap, c->out_pos + c->out_len + len, 1);
    memcpy(c->out + c->out_pos + c->out_len, data, len);
    c->out_len += len;
}

static void queue_drop(struct conn *c, size_t len)
{
    c->out_len -= len;
    c->out_pos = c->out_len ? c->out_pos + len : 0;
    if (!c->out_len && c->out_cap > NET_QUEUE_LOW) { /* idle connections keep no large buffer */
        free(TAKE_PTR(c->out));
        c->out_cap = 0;
    }
}

size_t conn_send(struct conn *c, const void *data, size_t len)
{
    ssize_t n = 0;

    if (c->broken || c->closing)
        return 0;
    if (!c->out_len && !c->file_len && c->phase == CONN_OPEN)
        n = write_some(c, data, len);
    if (n < 0) {
        conn_abort(c);
        return 0;
    }
    if ((size_t)n < len) {
        queue_add(c, (const char *)data + n, len - (size_t)n);
        conn_watch(c);
    }
    return c->out_len;
}

void conn_send_file(struct conn *c, int fd, uint64_t offset, uint64_t len)
{
    assert(c->file_fd < 0);
    if (c->broken || c->closing || !len) {
        close(fd);
        return;
    }
    c->file_fd = fd;
    c->file_offset = offset;
    c->file_len = len;
    conn_watch(c);
}

static ssize_t file_plain(struct conn *c, size_t len)
{
    off_t offset = (off_t)c->file_offset;
    ssize_t n = sendfile(c->fd, c->file_fd, &offset, len);

    if (n > 0)
        return n;
    if (n == 0)
        return broke(c, -ENODATA); /* the file is too short */
    return errno == EAGAIN || errno == EINTR ? 0 : broke(c, -errno);
}

static ssize_t file_tls(struct conn *c, size_t len)
{
    char piece[RECORD_MAX];
    ssize_t n = pread(c->file_fd, piece, MIN_OF(len, sizeof(piece)), (off_t)c->file_offset);

    return n > 0 ? write_tls(c, piece, (size_t)n) : broke(c, n < 0 ? -errno : -ENODATA);
}

/* False when the connection broke. */
static bool pump_file(struct conn *c)
{
    size_t left = TURN_MAX;

    while (c->file_len && left) {
        size_t want = (size_t)MIN_OF(c->file_len, (uint64_t)left);
        ssize_t n = c->tls ? file_tls(c, want) : file_plain(c, want);

        if (n < 0)
            return false;
        if (n == 0)
            break;
        c->file_offset += (uint64_t)n;
        c->file_len -= (uint64_t)n;
        left -= (size_t)n;
    }
    if (!c->file_len) {
        cleanup_close(&c->file_fd);
        c->file_fd = -1;
    }
    return true;
}

bool conn_pump(struct conn *c)
{
    ssize_t n;

    if (c->out_len) {
        n = write_some(c, c->out + c->out_pos, MIN_OF(c->out_len, TURN_MAX));
        if (n < 0)
            return false;
        queue_drop(c, (size_t)n);
    }
    return c->out_len || c->file_fd < 0 || pump_file(c);
}
