/*
 * A stream: a WebSocket that the agent dialled because the manager asked, joined to something in a
 * container. One file a kind: exec.c, logs.c, tcp.c; stream.c dials and tells them apart.
 */
#ifndef AGENT_STREAM_H
#define AGENT_STREAM_H

#include "agent/link.h"

#define STREAM_QUEUE_HIGH (1024 * 1024)

struct stream;

/* What a kind does. All but start may be NULL. */
struct stream_kind_ops {
    int (*start)(struct stream *st, struct err *err); /* the WebSocket is open */
    void (*message)(struct stream *st, const char *data, size_t len, bool binary);
    void (*drained)(struct stream *st);
    void (*closed)(struct stream *st); /* the WebSocket is gone; end by stream_done */
};

struct stream {
    struct agent *agent;
    struct ws *ws; /* NULL: gone */
    const struct stream_kind_ops *ops;
    struct link_stream order;
    void *data; /* of the kind */
};

extern const struct stream_kind_ops exec_ops, log_ops, tcp_ops;

/* Say an error ({"error": ..}) and close. */
void stream_error(struct stream *st, const char *code, const char *text);
/* The kind holds nothing any more and the WebSocket is gone: free. */
void stream_done(struct stream *st);

/* A pump from a descriptor to the WebSocket as binary messages, and back (uv_pipe inside). */
struct pump {
    struct stream *st;
    uv_pipe_t pipe;
    bool open, reading, eof, shut;
    int channel;                    /* >= 0: put in front of each message; -1: bare */
    void (*ended)(struct pump *p);  /* end of file or error on the descriptor */
    void (*closed)(struct pump *p); /* after pump_close */
    size_t queued;                  /* bytes written and not yet taken */
};

/* fd is owned by the pump. */
int pump_open(struct pump *p, struct stream *st, int fd, int channel);
void pump_read(struct pump *p, bool on);
void pump_write(struct pump *p, const char *data, size_t len);
/* Close the writing side once all is written (for a socket shutdown, for a pipe close). */
void pump_shut(struct pump *p);
void pump_close(struct pump *p);

#endif
