/* Whatever is in a log file: frames come out well-formed, in order, and no byte is invented. */
#include "agent/logfile.h"
#include "wire/logframe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = BUF_INIT(16 * 1024 * 1024);
    size_t used = logfile_to_frames((const char *)data, size, 0, &out), bytes = 0;
    uint64_t next = 0;

    assert(used <= size);
    for (size_t at = 0; at < out.len;) {
        struct logframe f;
        int head = logframe_parse(out.data + at, out.len - at, &f);
        assert(head == LOGFRAME_HEADER && f.channel != 0 && f.len > 0);
        assert(f.next > next && f.next <= used);
        next = f.next;
        bytes += f.len;
        at += (size_t)head + f.len;
    }
    assert(bytes <= used);
    buf_done(&out);
    return 0;
}
