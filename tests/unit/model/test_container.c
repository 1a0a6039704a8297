/* Names, roles and ends of containers. */
#include "model/session.h"
#include "support/cm.h"

static void names_and_numbers_follow_the_rank(void **state)
{
    struct container c = {0};

    container_name_make(0, c.name);
    assert_string_equal(c.name, "main1");
    assert_true(container_is_main(&c));
    assert_int_equal(container_role_idx(&c), 1);
    for (c.rank = 1; c.rank < SESSION_SIZE_MAX; c.rank++) {
        char want[16];

        container_name_make(c.rank, c.name);
        snprintf(want, sizeof(want), "sub%u", c.rank);
        assert_string_equal(c.name, want);
        assert_false(container_is_main(&c));
        assert_int_equal(container_role_idx(&c), c.rank);
    }
}

static void containers_come_in_numeric_order(void **state)
{
    _cleanup_(session_freep) struct session *s = session_new();

    STR_SET(s->id, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111");
    s->size = 12;
    session_make_containers(s);
    assert_string_equal(s->containers[0].id, s->id);
    assert_string_equal(s->containers[2].name, "sub2");
    assert_string_equal(s->containers[9].name, "sub9");
    assert_string_equal(s->containers[10].name, "sub10");
    assert_string_equal(s->containers[11].name, "sub11");
    for (uint32_t i = 0; i < 12; i++) {
        assert_int_equal(s->containers[i].rank, i);
        assert_true(uuid_is_valid(s->containers[i].id));
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(s->containers[k].id, s->containers[i].id);
    }
    assert_ptr_equal(session_container(s, "sub10"), &s->containers[10]);
    assert_null(session_container(s, "sub12"));
    assert_null(session_container(s, "main2"));
}

static void check_end(enum container_end end, int code, const char *text, const char *want)
{
    struct container c = {.end = end, .exit_code = code, .node = "n7"};
    char got[256];

    STR_SET(c.text, text);
    assert_string_equal(container_end_describe(&c, got, sizeof(got)), want);
}

static void an_end_is_told_in_words(void **state)
{
    check_end(END_EXIT, 3, "", "exited with 3");
    check_end(END_SIGNAL, 9, "", "killed by signal 9 (SIGKILL)");
    check_end(END_SIGNAL, 15, "", "killed by signal 15 (SIGTERM)");
    check_end(END_SIGNAL, 200, "", "killed by signal 200");
    check_end(END_OOM, 0, "", "ran out of its memory");
    check_end(END_OOM, 0, "ran out of its 64 MiB of memory", "ran out of its 64 MiB of memory");
    check_end(END_START_FAILED, 0, "", "could not be started");
    check_end(
        END_START_FAILED, 0, "'/bin/x': not found", "could not be started: '/bin/x': not found");
    check_end(END_MONITOR_LOST, 0, "", "lost its monitor, so that its exit code is not known");
    check_end(END_STOPPED, 0, "", "was stopped");
    check_end(END_NODE_LOST, 0, "", "went down with its node 'n7'");
    check_end(END_NODE_LOST, 0, "the node was rebooted",
        "went down with its node 'n7': the node was rebooted");
    check_end(END_NONE, 0, "", "has not ended");
}

static void a_description_is_cut_to_its_buffer(void **state)
{
    struct container c = {.end = END_EXIT, .exit_code = 123};
    char small[8];

    assert_string_equal(container_end_describe(&c, small, sizeof(small)), "exited ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_follow_the_rank),
        cmocka_unit_test(containers_come_in_numeric_order),
        cmocka_unit_test(an_end_is_told_in_words),
        cmocka_unit_test(a_description_is_cut_to_its_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
