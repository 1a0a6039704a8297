/*
 * Reading a log as conmon writes it (k8s-file): "TIME STREAM TAG bytes\n", TAG F for a line that
 * ended with a newline and P for a part that did not. So the bytes can be told exactly, also binary
 * ones and a missing last newline. Pure.
 */
#ifndef AGENT_LOGFILE_H
#define AGENT_LOGFILE_H

#include "base/buf.h"

struct logline {
    uint8_t channel;  /* 1 stdout, 2 stderr */
    uint64_t usec;    /* real time */
    const char *data; /* borrowed from the input */
    size_t len;
    bool newline; /* a newline follows data */
};

/* Bytes of the input that the line takes; 0 when it is not complete; -EINVAL when it is no such
 * line (skip to the next newline). */
ssize_t logline_parse(const char *text, size_t len, struct logline *ret);

/*
 * Turn as many complete lines as there are in text into log frames (wire/logframe.h) at the end of
 * out, merging neighbours of one stream; base is the file offset of text. Returns the bytes used.
 * A malformed line is passed over.
 */
size_t logfile_to_frames(const char *text, size_t len, uint64_t base, struct buf *out);

#endif
