#include "base/str.h"
#include "net/ws_key.h"
#include "unit.h"

TEST(the_key_of_rfc_6455_is_accepted_as_written_there)
{
    char accept[WS_ACCEPT_LEN + 1];

    ws_key_accept("dGhlIHNhbXBsZSBub25jZQ==", accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(every_key_is_another)
{
    char one[WS_KEY_LEN + 1], two[WS_KEY_LEN + 1];

    ws_key_make(one);
    ws_key_make(two);
    assert_int_equal(strlen(one), WS_KEY_LEN);
    assert_true(str_ends(one, "=="));
    assert_string_not_equal(one, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_of_rfc_6455_is_accepted_as_written_there),
        cmocka_unit_test(every_key_is_another),
    };

    return RUN_TESTS(tests);
}
