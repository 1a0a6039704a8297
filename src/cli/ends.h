/*
 * Descriptors of this process as one end of a WebSocket, byte for byte and with back pressure both
 * ways. Reading and writing block in worker threads, so any kind of descriptor will do (a file, a
 * pipe, a terminal) and none is made non-blocking behind its other users' back.
 *
 * A thread may still be blocked in a read when all is done: leave with _exit(2).
 */
#ifndef CLI_ENDS_H
#define CLI_ENDS_H

#include "base/list.h"
#include "net/ws.h"

struct ends {
    uv_loop_t *loop;
    struct ws *ws;                    /* NULL once closed */
    int channel;                      /* byte in front of what is sent; -1: none */
    void (*eof)(struct ends *io);     /* in_fd is at its end */
    void (*drained)(struct ends *io); /* all that came is written; may be NULL */
    void (*broken)(struct ends *io);  /* writing has failed (failed says why); does not return */
    void *arg;

    int in_fd;
    uv_work_t read_job;
    bool reading, at_end;
    ssize_t got;
    unsigned char in[1 + 65536];

    uv_work_t write_job;
    bool writing;
    struct list out; /* of chunks */
    size_t queued;
    int failed; /* writing: negative errno */
    bool paused;
    uv_timer_t alive;
};

void ends_init(struct ends *io, uv_loop_t *loop, int in_fd, int channel);
/* Start or go on reading in_fd; call when the WebSocket has opened and when it has drained. */
void ends_read(struct ends *io);
/* Queue data for fd; pauses the WebSocket when too much waits. */
void ends_write(struct ends *io, int fd, const void *data, size_t len);
bool ends_is_drained(const struct ends *io);

#endif
