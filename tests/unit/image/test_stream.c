#include <sys/mman.h>

#include "image/stream.h"
#include "unit.h"

/* gzip.compress(b"hello\n"), twice in a row: two members. */
static const unsigned char hello_gz[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0xcb, 0x48, 0xcd,
    0xc9, 0xc9, 0xe7, 2, 0, 0x20, 0x30, 0x3a, 0x36, 6, 0, 0, 0};

static struct piece piece_of(const void *p, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_int_equal(write(fd, "front", 5), 5);
    assert_int_equal(write(fd, p, n), n);
    assert_int_equal(write(fd, "behind", 6), 6);
    return (struct piece){.fd = fd, .off = 5, .len = n};
}

static int read_all(struct piece *p, uint64_t max, char packed[DIGEST_TEXT_MAX],
    char plain[DIGEST_TEXT_MAX], uint64_t *bytes, struct err *err)
{
    _cleanup_(stream_done) struct stream s = {0};
    int r = stream_open(&s, p, max, err);

    if (r == 0)
        r = stream_end(&s, packed, plain, err);
    *bytes = stream_bytes(&s);
    piece_done(p);
    return r;
}

static void gives(const void *data, size_t len, const char *want)
{
    char packed[DIGEST_TEXT_MAX], plain[DIGEST_TEXT_MAX], sum[DIGEST_TEXT_MAX];
    struct piece p = piece_of(data, len);
    struct err err = ERR_INIT;
    uint64_t bytes;

    assert_ok(read_all(&p, 1000, packed, plain, &bytes, &err), &err);
    digest_of(data, len, sum);
    assert_string_equal(packed, sum);
    digest_of(want, strlen(want), sum);
    assert_string_equal(plain, sum);
}

TEST(both_sides_are_hashed)
{
    gives("hello\n", 6, "hello\n");
    gives(hello_gz, sizeof(hello_gz), "hello\n");
    gives("", 0, "");
}

TEST(members_behind_each_other_are_one_stream)
{
    unsigned char two[2 * sizeof(hello_gz)];

    memcpy(two, hello_gz, sizeof(hello_gz));
    memcpy(two + sizeof(hello_gz), hello_gz, sizeof(hello_gz));
    gives(two, sizeof(two), "hello\nhello\n");
}

TEST(a_gzip_in_a_gzip_is_opened_once)
{
    /* gzip.compress(gzip.compress(b"hello\n")) */
    static const unsigned char twice[] = {
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x01, 26, 0, 0xe5, 0xff};
    unsigned char data[sizeof(twice) + sizeof(hello_gz)];
    struct piece p;
    struct stream s;
    struct err err = ERR_INIT;
    const void *out;
    size_t n;

    memcpy(data, twice, sizeof(twice)); /* one stored block; the trailer is missing */
    memcpy(data + sizeof(twice), hello_gz, sizeof(hello_gz));
    p = piece_of(data, sizeof(data));
    assert_ok(stream_open(&s, &p, 1000, &err), &err);
    if (stream_next(&s, &out, &n, &err) == 0 && n > 0)
        assert_memory_equal(out, hello_gz, MIN_OF(n, sizeof(hello_gz)));
    stream_done(&s);
    piece_done(&p);
}

TEST(more_than_the_maximum_is_refused)
{
    char packed[DIGEST_TEXT_MAX], plain[DIGEST_TEXT_MAX];
    struct piece p = piece_of(hello_gz, sizeof(hello_gz));
    struct err err;
    uint64_t bytes;

    assert_fails(read_all(&p, 5, packed, plain, &bytes, &err), &err, -EFBIG,
        "unpacks to more than the limit of 5 bytes");
}

TEST(damage_is_told)
{
    char packed[DIGEST_TEXT_MAX], plain[DIGEST_TEXT_MAX];
    struct piece p = piece_of(hello_gz, sizeof(hello_gz) - 10);
    struct err err = ERR_INIT;
    uint64_t bytes;

    assert_int_equal(read_all(&p, 1000, packed, plain, &bytes, &err), -EINVAL);
    assert_true(strncmp(err.text, "cannot decompress: ", 19) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_are_hashed),
        cmocka_unit_test(members_behind_each_other_are_one_stream),
        cmocka_unit_test(a_gzip_in_a_gzip_is_opened_once),
        cmocka_unit_test(more_than_the_maximum_is_refused),
        cmocka_unit_test(damage_is_told),
    };

    return RUN_TESTS(tests);
}
