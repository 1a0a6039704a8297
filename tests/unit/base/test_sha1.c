#include "base/sha1.h"
#include "unit.h"

static void assert_sha1(const char *text, size_t times, const char *hex)
{
    size_t len = strlen(text);
    _cleanup_free_ char *all = xcalloc(times, len + 1);
    uint8_t digest[SHA1_BYTES];
    char got[2 * SHA1_BYTES + 1];

    for (size_t i = 0; i < times; i++)
        memcpy(all + i * len, text, len);
    sha1(all, times * len, digest);
    for (size_t i = 0; i < SHA1_BYTES; i++)
        snprintf(got + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(got, hex);
}

TEST(the_vectors_of_rfc_3174_come_out)
{
    assert_sha1("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    assert_sha1("a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    assert_sha1("0123456701234567012345670123456701234567012345670123456701234567", 10,
        "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

TEST(every_length_of_padding_comes_out)
{
    assert_sha1("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_sha1("a", 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    assert_sha1("a", 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    assert_sha1("a", 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
    assert_sha1("a", 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    assert_sha1("a", 119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
    assert_sha1("a", 120, "f34c1488385346a55709ba056ddd08280dd4c6d6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_3174_come_out),
        cmocka_unit_test(every_length_of_padding_comes_out),
    };

    return RUN_TESTS(tests);
}
