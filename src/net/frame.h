/* WebSocket frames (RFC 6455 section 5) and UTF-8 as its text messages need it. Pure. */
#ifndef NET_FRAME_H
#define NET_FRAME_H

#include "base/base.h"

enum frame_op {
    FRAME_CONTINUE = 0,
    FRAME_TEXT = 1,
    FRAME_BINARY = 2,
    FRAME_CLOSE = 8,
    FRAME_PING = 9,
    FRAME_PONG = 10,
};

#define FRAME_HEAD_MAX 14
#define FRAME_CONTROL_MAX 125

struct frame {
    bool fin;
    enum frame_op op;
    bool masked;
    uint8_t mask[4];
    uint64_t len;
};

/* Bytes of the head; 0 when it is not complete; -EPROTO when no peer may send it. */
int frame_parse(const uint8_t *data, size_t len, struct frame *ret);
/* The head of a frame, with a mask or without (NULL); returns its bytes. */
size_t frame_format(
    enum frame_op op, bool fin, uint64_t len, const uint8_t *mask, uint8_t head[FRAME_HEAD_MAX]);
/* The payload of a close frame, at most FRAME_CONTROL_MAX bytes; returns its bytes. The text is cut
 * between characters; a code that no frame may carry gives an empty payload. */
size_t frame_format_close(unsigned code, const char *text, uint8_t *payload);
/* XOR len bytes that start at offset at of the payload: masks, and takes the mask away again. */
void frame_mask(uint8_t *data, size_t len, const uint8_t mask[4], uint64_t at);

bool frame_is_utf8(const void *data, size_t len);
/* May a close frame carry this code (section 7.4)? */
bool frame_close_code_is_valid(unsigned code);

#endif
