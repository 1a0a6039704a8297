#include "image/digest.h"
#include "unit.h"

#define OF_ABC "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OF_NOTHING "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TEST(the_digest_of_abc_is_the_standards)
{
    char text[DIGEST_TEXT_MAX];

    digest_of("abc", 3, text); /* FIPS 180-2, appendix B.1 */
    assert_string_equal(text, OF_ABC);
    digest_of("", 0, text);
    assert_string_equal(text, OF_NOTHING);
}

TEST(pieces_give_the_digest_of_the_whole)
{
    char text[DIGEST_TEXT_MAX];
    struct digest d;

    digest_init(&d);
    digest_add(&d, "a", 1);
    digest_add(&d, "bc", 2);
    assert_int_equal(d.bytes, 3);
    digest_end(&d, text);
    assert_string_equal(text, OF_ABC);
}

TEST(only_sha256_in_lower_case_is_a_digest)
{
    assert_true(digest_is_valid(OF_ABC));
    assert_false(digest_is_valid(NULL));
    assert_false(digest_is_valid(""));
    assert_false(digest_is_valid("sha256:"));
    assert_false(digest_is_valid(OF_ABC "0"));
    assert_false(
        digest_is_valid("sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
    assert_false(
        digest_is_valid("sha512:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    assert_false(digest_is_valid(
        "sha256:../../../../../../../../../../../../../../../../../../../etc/passwd"));
}

TEST(a_chain_id_is_the_digest_of_both_texts)
{
    char chain[DIGEST_TEXT_MAX], want[DIGEST_TEXT_MAX];

    digest_chain(NULL, OF_ABC, chain);
    assert_string_equal(chain, OF_ABC);
    digest_chain("", OF_ABC, chain);
    assert_string_equal(chain, OF_ABC);
    digest_chain(OF_ABC, OF_NOTHING, chain);
    digest_of(OF_ABC " " OF_NOTHING, 2 * DIGEST_TEXT_LEN + 1, want);
    assert_string_equal(chain, want);
}

TEST(a_file_is_hashed_from_its_begin)
{
    char dir[UNIT_DIR_MAX], path[UNIT_DIR_MAX + 8], text[DIGEST_TEXT_MAX];
    struct err err = ERR_INIT;
    uint64_t size = 0;
    int fd;

    unit_dir_init(dir);
    snprintf(path, sizeof(path), "%s/f", dir);
    unit_write(path, "abc");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 2, SEEK_SET), 2);
    assert_ok(digest_of_fd(fd, text, &size, &err), &err);
    assert_string_equal(text, OF_ABC);
    assert_int_equal(size, 3);
    close(fd);
    unit_dir_done(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_of_abc_is_the_standards),
        cmocka_unit_test(pieces_give_the_digest_of_the_whole),
        cmocka_unit_test(only_sha256_in_lower_case_is_a_digest),
        cmocka_unit_test(a_chain_id_is_the_digest_of_both_texts),
        cmocka_unit_test(a_file_is_hashed_from_its_begin),
    };

    return RUN_TESTS(tests);
}
