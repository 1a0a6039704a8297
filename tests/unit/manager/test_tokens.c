/* Tokens look as promised, differ, and hash as sha256sum(1) does. */
#include "base/str.h"
#include "manager/tokens.h"
#include "unit.h"

#define BASE64URL "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

TEST(a_token_is_a_prefix_and_43_characters_that_need_no_escaping)
{
    char text[TOKEN_TEXT_MAX];

    token_make(TOKEN_PREFIX, text);
    assert_true(str_starts(text, "mst_"));
    assert_int_equal(strlen(text), 47);
    assert_int_equal(strspn(text + 4, BASE64URL), 43);
}

TEST(no_two_tokens_are_equal)
{
    char texts[100][TOKEN_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        token_make(TOKEN_PREFIX, texts[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
    }
}

/* FIPS 180-4's example of one block. */
TEST(the_hash_is_sha256_in_hex)
{
    char hex[TOKEN_HASH_MAX];

    token_hash("abc", hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    token_hash("", hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_a_prefix_and_43_characters_that_need_no_escaping),
        cmocka_unit_test(no_two_tokens_are_equal),
        cmocka_unit_test(the_hash_is_sha256_in_hex),
    };

    return RUN_TESTS(tests);
}
