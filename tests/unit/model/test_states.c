/* The state tables of sessions, containers and nodes: every pair of states, drawn as a matrix. */
#include "model/node.h"
#include "model/session.h"
#include "support/cm.h"

static void container_moves_are_those_of_the_table(void **state)
{
    /* rows: from, columns: to; waiting assigned preparing ready running exited removed */
    static const char *const may[CONTAINER_STATE_COUNT] = {
        "yy.....",
        ".yyy.yy",
        "..yy.yy",
        "...yyyy",
        "....yyy",
        ".....yy",
        "y.....y",
    };

    for (int from = 0; from < CONTAINER_STATE_COUNT; from++) {
        for (int to = 0; to < CONTAINER_STATE_COUNT; to++) {
            enum container_state s = (enum container_state)from;
            int r = container_state_move(&s, (enum container_state)to, NULL);

            assert_int_equal(r, may[from][to] == 'y' ? 0 : -EPROTO);
            assert_int_equal(s, r == 0 ? to : from);
        }
    }
}

static void session_moves_are_those_of_the_table(void **state)
{
    /* pending preparing starting running stopping ended */
    static const char *const may[SESSION_STATE_COUNT] = {
        ".y...y",
        "..y.yy",
        "...yy.",
        "....y.",
        "y....y",
        "......",
    };

    for (int from = 0; from < SESSION_STATE_COUNT; from++) {
        for (int to = 0; to < SESSION_STATE_COUNT; to++) {
            struct session s = {.state = (enum session_state)from, .state_usec = 5};
            int r = session_state_move(&s, (enum session_state)to, 9, NULL);

            assert_int_equal(r, may[from][to] == 'y' ? 0 : -EPROTO);
            assert_int_equal(s.state, r == 0 ? to : from);
            assert_int_equal(s.state_usec, r == 0 ? 9 : 5);
        }
    }
}

static void node_moves_are_those_of_the_table(void **state)
{
    static const char *const may[NODE_STATE_COUNT] = {"yy.", "yyy", "y.y"};

    for (int from = 0; from < NODE_STATE_COUNT; from++) {
        for (int to = 0; to < NODE_STATE_COUNT; to++) {
            enum node_state s = (enum node_state)from;
            int r = node_state_move(&s, (enum node_state)to, NULL);

            assert_int_equal(r, may[from][to] == 'y' ? 0 : -EPROTO);
            assert_int_equal(s, r == 0 ? to : from);
        }
    }
}

static void a_refused_move_says_from_where_to_where(void **state)
{
    struct session s = {.state = SESSION_ENDED};
    enum container_state c = CONTAINER_EXITED;
    enum node_state n = NODE_UP;

    assert_fails(session_state_move(&s, SESSION_RUNNING, 1, &err), -EPROTO,
        "a session cannot go from 'ended' to 'running'");
    assert_fails(container_state_move(&c, CONTAINER_READY, &err), -EPROTO,
        "a container cannot go from 'exited' to 'ready'");
    assert_fails(
        node_state_move(&n, NODE_LOST, &err), -EPROTO, "a node cannot go from 'up' to 'lost'");
}

static void every_word_is_read_back(void **state)
{
    enum session_result result = RESULT_NONE;
    enum container_state cs;
    enum session_mode mode;

    for (int i = 0; i < CONTAINER_STATE_COUNT; i++) {
        assert_int_equal(
            container_state_parse(container_state_name((enum container_state)i), &cs), 0);
        assert_int_equal(cs, i);
    }
    for (int i = 0; i < RESULT_COUNT; i++) {
        assert_int_equal(
            session_result_parse(session_result_name((enum session_result)i), &result), 0);
        assert_int_equal(result, i);
    }
    assert_int_equal(session_mode_parse("single-node", &mode), 0);
    assert_int_equal(mode, MODE_SINGLE_NODE);
    assert_int_equal(session_mode_parse("single_node", &mode), -EINVAL);
    assert_int_equal(session_mode_parse(NULL, &mode), -EINVAL);
    assert_string_equal(session_result_name(RESULT_NONE), "");
}

static void a_drained_or_absent_node_takes_no_work(void **state)
{
    struct node n = {.state = NODE_UP};

    assert_true(node_takes_work(&n));
    n.drained = true;
    assert_false(node_takes_work(&n));
    n.drained = false;
    n.state = NODE_UNREACHABLE;
    assert_false(node_takes_work(&n));
    n.state = NODE_LOST;
    assert_false(node_takes_work(&n));
}

static struct session *session_of_two(void)
{
    struct session *s = session_new();

    uuid_make(s->id);
    s->size = 2;
    session_make_containers(s);
    return s;
}

static void set_containers(struct session *s, enum container_state state, const char *node)
{
    for (uint32_t i = 0; i < s->size; i++) {
        s->containers[i].state = state;
        STR_SET(s->containers[i].node, node);
    }
}

static void a_pending_session_holds_nothing(void **state)
{
    _cleanup_(session_freep) struct session *s = session_of_two();
    struct err why = ERR_INIT;

    assert_works(session_check(s, &err));
    s->containers[1].state = CONTAINER_ASSIGNED;
    assert_int_equal(session_check(s, &why), -EINVAL);
    assert_non_null(strstr(why.text, "is pending, yet 'sub1' holds resources (assigned)"));
}

static void every_container_of_a_placed_session_has_a_node(void **state)
{
    _cleanup_(session_freep) struct session *s = session_of_two();
    struct err why = ERR_INIT;

    set_containers(s, CONTAINER_ASSIGNED, "n1");
    for (s->state = SESSION_PREPARING; s->state <= SESSION_STOPPING; s->state++)
        assert_works(session_check(s, &err));
    s->state = SESSION_RUNNING;
    s->containers[1].node[0] = '\0';
    assert_int_equal(session_check(s, &why), -EINVAL);
    assert_non_null(strstr(why.text, "is running, yet 'sub1' has no node"));
}

static void an_ended_session_has_nothing_left(void **state)
{
    _cleanup_(session_freep) struct session *s = session_of_two();
    struct err why = ERR_INIT;

    s->state = SESSION_ENDED;
    assert_works(session_check(s, &err));
    set_containers(s, CONTAINER_REMOVED, "n1");
    assert_works(session_check(s, &err));
    s->containers[0].state = CONTAINER_EXITED;
    assert_int_equal(session_check(s, &why), -EINVAL);
    assert_non_null(strstr(why.text, "has ended, yet 'main1' is exited"));
}

static void resources_are_held_from_assigned_to_exited(void **state)
{
    struct container c = {0};

    for (int i = 0; i < CONTAINER_STATE_COUNT; i++) {
        c.state = (enum container_state)i;
        assert_int_equal(container_holds(&c), i != CONTAINER_WAITING && i != CONTAINER_REMOVED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(container_moves_are_those_of_the_table),
        cmocka_unit_test(session_moves_are_those_of_the_table),
        cmocka_unit_test(node_moves_are_those_of_the_table),
        cmocka_unit_test(a_refused_move_says_from_where_to_where),
        cmocka_unit_test(every_word_is_read_back),
        cmocka_unit_test(a_drained_or_absent_node_takes_no_work),
        cmocka_unit_test(a_pending_session_holds_nothing),
        cmocka_unit_test(every_container_of_a_placed_session_has_a_node),
        cmocka_unit_test(an_ended_session_has_nothing_left),
        cmocka_unit_test(resources_are_held_from_assigned_to_exited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
