/* Frames of log streams: pure packing. */
#include "wire/logframe.h"

#include <endian.h>

int logframe_append(struct buf *b, const struct logframe *f, const void *data)
{
    char head[LOGFRAME_HEADER] = {(char)f->channel};
    uint32_t len = htole32(f->len);
    uint64_t next = htole64(f->next), usec = htole64(f->usec);
    int r;

    assert(f->len <= LOGFRAME_DATA_MAX);
    memcpy(head + 4, &len, sizeof(len));
    memcpy(head + 8, &next, sizeof(next));
    memcpy(head + 16, &usec, sizeof(usec));
    r = buf_append(b, head, sizeof(head));
    return r < 0 || f->len == 0 ? r : buf_append(b, data, f->len);
}

int logframe_parse(const char *data, size_t len, struct logframe *ret)
{
    uint32_t n;
    uint64_t next, usec;

    if (len < LOGFRAME_HEADER)
        return -EAGAIN;
    memcpy(&n, data + 4, sizeof(n));
    memcpy(&next, data + 8, sizeof(next));
    memcpy(&usec, data + 16, sizeof(usec));
    ret->channel = (uint8_t)data[0];
    ret->len = le32toh(n);
    ret->next = le64toh(next);
    ret->usec = le64toh(usec);
    if (ret->channel > 2 || ret->len > LOGFRAME_DATA_MAX || (ret->channel == 0 && ret->len > 0))
        return -EINVAL;
    return LOGFRAME_HEADER;
}
