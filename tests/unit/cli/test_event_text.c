/* Events as people read them. */
#include "cli/event_text.h"
#include "unit.h"

static void reads(const char *event, const char *want)
{
    json_t *e = json_loads(event, 0, NULL);
    char *text;

    assert_non_null(e);
    text = event_text(e);
    assert_string_equal(text, want);
    free(text);
    json_decref(e);
}

TEST(a_session_is_named_as_people_name_it)
{
    reads("{\"type\":\"session.running\",\"subject\":\"9b1f\",\"owner\":\"alice\",\"body\":{"
          "\"num\":12,"
          "\"name\":\"tune\",\"state\":\"running\",\"result\":null,\"code\":\"running\","
          "\"message\":\"all "
          "containers run\",\"attempt\":1}}",
        "session 12 (tune) of alice: running: all containers run");
    reads(
        "{\"type\":\"session.ended\",\"subject\":\"9b1f\",\"owner\":\"alice\",\"body\":{\"num\":12,"
        "\"name\":\"tune\",\"state\":\"ended\",\"result\":\"failed\",\"message\":\"\",\"attempt\":"
        "2}}",
        "session 12 (tune) of alice: ended (failed)");
}

TEST(another_attempt_is_said)
{
    reads("{\"type\":\"session.preparing\",\"owner\":\"a\",\"body\":{\"num\":1,\"name\":\"x\","
          "\"state\":\"preparing\",\"attempt\":2}}",
        "session 1 (x) of a: preparing, attempt 2");
}

TEST(other_nouns_have_their_names_and_owners)
{
    reads("{\"type\":\"node.drained\",\"subject\":\"n1\",\"owner\":\"\",\"body\":{}}",
        "node n1: takes no new sessions");
    reads("{\"type\":\"node.unreachable\",\"subject\":\"n1\",\"owner\":\"\",\"body\":{}}",
        "node n1: unreachable");
    reads("{\"type\":\"volume.created\",\"subject\":\"data\",\"owner\":\"alice\",\"body\":{}}",
        "volume data of alice: created");
    reads("{\"type\":\"user.changed\",\"subject\":\"alice\",\"owner\":\"alice\",\"body\":{}}",
        "user alice: changed");
}

TEST(control_characters_of_others_do_not_reach_the_terminal)
{
    reads("{\"type\":\"session.ended\",\"owner\":\"a\",\"body\":{\"num\":1,\"name\":\"x\","
          "\"state\":\"ended\",\"message\":\"\\u001b[2J\"}}",
        "session 1 (x) of a: ended: \\x1b[2J");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_named_as_people_name_it),
        cmocka_unit_test(another_attempt_is_said),
        cmocka_unit_test(other_nouns_have_their_names_and_owners),
        cmocka_unit_test(control_characters_of_others_do_not_reach_the_terminal),
    };

    return RUN_TESTS(tests);
}
