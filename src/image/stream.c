/*
 * Decompression is libarchive's, with exactly the one filter that the first bytes ask for (its own
 * guessing would also open a gzip in a gzip). Without compression the bytes are hashed once and
 * handed out as they were read.
 */
#include "image/stream.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/str.h"

#define CHUNK (256 * 1024)

static const struct {
    unsigned char magic[6];
    size_t len;
    int filter;
} packers[] = {
    {{0x1f, 0x8b}, 2, ARCHIVE_FILTER_GZIP},
    {{0x28, 0xb5, 0x2f, 0xfd}, 4, ARCHIVE_FILTER_ZSTD},
    {{0xfd, '7', 'z', 'X', 'Z', 0}, 6, ARCHIVE_FILTER_XZ},
    {{'B', 'Z', 'h'}, 3, ARCHIVE_FILTER_BZIP2},
};

static int read_at(const struct piece *p, uint64_t at, void *to, size_t n, size_t *ret)
{
    ssize_t got;

    n = MIN_OF(n, p->len - at);
    do
        got = pread(p->fd, to, n, (off_t)(p->off + at));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    *ret = (size_t)got;
    return 0;
}

static int sniff(const struct piece *p, int *ret_filter)
{
    unsigned char first[6] = {0};
    size_t n = 0;
    int r;

    r = read_at(p, 0, first, sizeof(first), &n);
    if (r < 0)
        return r;
    *ret_filter = ARCHIVE_FILTER_NONE;
    for (size_t i = 0; i < ARRAY_LEN(packers); i++)
        if (n >= packers[i].len && memcmp(first, packers[i].magic, packers[i].len) == 0)
            *ret_filter = packers[i].filter;
    return 0;
}

int stream_is_compressed(const struct piece *p, bool *ret, struct err *err)
{
    int filter, r;

    r = sniff(p, &filter);
    if (r < 0)
        return err_sys(err, r, "cannot read");
    *ret = filter != ARCHIVE_FILTER_NONE;
    return 0;
}

static int read_packed(struct stream *s, const void **ret, size_t *ret_len)
{
    size_t n = 0;
    int r;

    r = read_at(&s->from, s->at, s->chunk, CHUNK, &n);
    if (r < 0)
        return r;
    digest_add(&s->packed, s->chunk, n);
    s->at += n;
    *ret = s->chunk;
    *ret_len = n;
    return 0;
}

static la_ssize_t read_for_archive(struct archive *a, void *arg, const void **ret)
{
    struct stream *s = arg;
    size_t n = 0;
    int r;

    r = read_packed(s, ret, &n);
    if (r < 0) {
        archive_set_error(a, -r, "cannot read: %s", strerror(-r));
        return -1;
    }
    return (la_ssize_t)n;
}

static int archive_failed(struct stream *s, struct err *err)
{
    const char *text = archive_error_string(s->unpack);
    _cleanup_free_ char *shown = str_escape(text ? text : "", text ? strlen(text) : 0, 120);

    return err_set(err, -EINVAL, "cannot decompress: %s", shown);
}

static int open_archive(struct stream *s, int filter, struct err *err)
{
    struct archive_entry *entry;

    s->unpack = archive_read_new();
    if (!s->unpack)
        return err_set(err, -ENOMEM, "out of memory");
    if (archive_read_support_format_raw(s->unpack) != ARCHIVE_OK ||
        archive_read_support_format_empty(s->unpack) != ARCHIVE_OK ||
        archive_read_append_filter(s->unpack, filter) != ARCHIVE_OK ||
        archive_read_open(s->unpack, s, NULL, read_for_archive, NULL) != ARCHIVE_OK)
        return archive_failed(s, err);
    /* When the first bytes cannot be decompressed, the "empty" format takes them for none. */
    if (archive_errno(s->unpack) != 0)
        return archive_failed(s, err);
    switch (archive_read_next_header(s->unpack, &entry)) {
    case ARCHIVE_OK:
        return 0;
    case ARCHIVE_EOF:
        s->ended = true;
        return 0;
    default:
        return archive_failed(s, err);
    }
}

void stream_open_raw(struct stream *s, const struct piece *from)
{
    *s = (struct stream){.from = *from, .max = UINT64_MAX, .chunk = xcalloc(1, CHUNK)};
    digest_init(&s->packed);
}

int stream_open(struct stream *s, const struct piece *from, uint64_t max, struct err *err)
{
    int filter, r;

    r = sniff(from, &filter);
    if (r < 0)
        return err_sys(err, r, "cannot read");
    stream_open_raw(s, from);
    s->max = max;
    s->compressed = filter != ARCHIVE_FILTER_NONE;
    if (!s->compressed)
        return 0;
    digest_init(&s->plain);
    return open_archive(s, filter, err);
}

void stream_done(struct stream *s)
{
    if (s->unpack)
        archive_read_free(s->unpack);
    s->unpack = NULL;
    digest_done(&s->packed);
    digest_done(&s->plain);
    free(s->chunk);
    s->chunk = NULL;
}

uint64_t stream_bytes(const struct stream *s)
{
    return s->compressed ? s->plain.bytes : s->packed.bytes;
}

static int next_plain(struct stream *s, const void **ret, size_t *ret_len, struct err *err)
{
    la_int64_t off;
    int r;

    do
        r = archive_read_data_block(s->unpack, ret, ret_len, &off);
    while (r == ARCHIVE_OK && *ret_len == 0);
    if (r == ARCHIVE_EOF) {
        *ret_len = 0;
        return 0;
    }
    if (r != ARCHIVE_OK)
        return archive_failed(s, err);
    digest_add(&s->plain, *ret, *ret_len);
    return 0;
}

int stream_next(struct stream *s, const void **ret, size_t *ret_len, struct err *err)
{
    int r = 0;

    *ret_len = 0;
    if (s->ended)
        return 0;
    if (s->compressed)
        r = next_plain(s, ret, ret_len, err);
    else if ((r = read_packed(s, ret, ret_len)) < 0)
        r = err_sys(err, r, "cannot read");
    if (r < 0)
        return r;
    s->ended = *ret_len == 0;
    if (stream_bytes(s) > s->max)
        return err_set(err, -EFBIG, "unpacks to more than the limit of %llu bytes",
            (unsigned long long)s->max);
    return 0;
}

int stream_end(
    struct stream *s, char packed[DIGEST_TEXT_MAX], char plain[DIGEST_TEXT_MAX], struct err *err)
{
    char sum[DIGEST_TEXT_MAX];
    const void *p;
    size_t n = 0;
    int r;

    do {
        r = stream_next(s, &p, &n, err);
        if (r < 0)
            return r;
    } while (n > 0);
    /* Bytes behind the end of the compressed data belong to the packed digest. */
    do {
        r = read_packed(s, &p, &n);
        if (r < 0)
            return err_sys(err, r, "cannot read");
    } while (n > 0);
    digest_end(&s->packed, sum);
    if (packed)
        assert(str_copy(packed, DIGEST_TEXT_MAX, sum) == 0);
    if (s->compressed)
        digest_end(&s->plain, sum);
    if (plain)
        assert(str_copy(plain, DIGEST_TEXT_MAX, sum) == 0);
    return 0;
}
