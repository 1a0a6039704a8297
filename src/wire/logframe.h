/*
 * A piece of a container's log on the wire (docs/openapi.yaml, getLogs): 24 bytes of header, little
 * endian, then len bytes.
 */
#ifndef WIRE_LOGFRAME_H
#define WIRE_LOGFRAME_H

#include "base/buf.h"

#define LOGFRAME_HEADER 24
#define LOGFRAME_DATA_MAX (1024 * 1024)

struct logframe {
    uint8_t channel; /* 1 stdout, 2 stderr, 0: the end */
    uint32_t len;
    uint64_t next; /* offset to go on at, behind this frame */
    uint64_t usec; /* real time at which it was written */
};

int logframe_append(struct buf *b, const struct logframe *f, const void *data);
/* Size of the header, -EAGAIN when fewer bytes are there, -EINVAL when malformed. */
int logframe_parse(const char *data, size_t len, struct logframe *ret);

#endif
