/* Switches and nodes as Slurm's topology.conf has them. */
#include "base/strv.h"
#include "model/topology.h"
#include "support/cm.h"

static int collect(const char *name, void *arg, struct err *err)
{
    strv_push(arg, name);
    return 0;
}

#define EXPANDS(text, expected) expands(text, expected, __LINE__)

static void expands(const char *text, const char *expected, int line)
{
    _cleanup_(strv_freep) char **names = NULL;
    _cleanup_free_ char *joined = NULL;
    struct err err = ERR_INIT;

    if (hostlist_each(text, 20, collect, &names, &err) < 0)
        strv_pushf(&names, "(%s)", err_text(&err));
    joined = strv_join(names, " ");
    if (strcmp(joined, expected) != 0)
        fail_msg("line %d: '%s' gives '%s'", line, text, joined);
}

static void hostlists_are_expanded(void **state)
{
    EXPANDS("n1", "n1");
    EXPANDS("n[1-3,7]", "n1 n2 n3 n7");
    EXPANDS("n[08-11]", "n08 n09 n10 n11");
    EXPANDS("a,b[1-2]x,c", "a b1x b2x c");
    EXPANDS("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2");
    EXPANDS("n[5]", "n5");
    EXPANDS("n[1-", "(a '[' is not closed)");
    EXPANDS("n[]", "(numbers in brackets are like [1-3,7])");
    EXPANDS("n[1,]", "n1 (numbers in brackets are like [1-3,7])");
    EXPANDS("n[a]", "(numbers in brackets are like [1-3,7])");
    EXPANDS("n[1-3;5]", "(numbers in brackets are like [1-3,7])");
    EXPANDS("n[3-1]", "(the range 3-1 goes backwards)");
    EXPANDS("n[1-4000000000]", "(numbers in brackets are like [1-3,7])");
    EXPANDS("n[1-21]", "(too many names)");
    EXPANDS("[1-2][1-2][1-2][1-2]", "(more than 3 brackets in a name)");
}

static void many_names_in_few_letters_are_refused(void **state)
{
    _cleanup_(strv_freep) char **names = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(hostlist_each("n[0-9]x[0-9]", 20, collect, &names, &err), -E2BIG);
    assert_int_equal(strv_len(names), 20);
}

static void nodes_have_leaves_and_leaves_have_spines(void **state)
{
    struct topology t;
    struct err err = ERR_INIT;

    assert_int_equal(topology_parse("# racks\n"
                                    "SwitchName=leaf1 Nodes=n[1-4] LinkSpeed=100\n"
                                    "switchname=leaf2\tnodes=n5,n6\r\n"
                                    "\n"
                                    "SwitchName=spine1 Switches=leaf[1-2]  # all\n",
                         &t, &err),
        0);
    assert_string_equal(topology_leaf(&t, "n4"), "leaf1");
    assert_string_equal(topology_leaf(&t, "n6"), "leaf2");
    assert_string_equal(topology_leaf(&t, "n7"), "");
    assert_string_equal(topology_spine(&t, "leaf2"), "spine1");
    assert_string_equal(topology_spine(&t, ""), "");
    topology_done(&t);
}

#define REFUSED(text, expected) refused(text, expected, __LINE__)

static void refused(const char *text, const char *expected, int line)
{
    struct topology t;
    struct err err = ERR_INIT;

    if (topology_parse(text, &t, &err) >= 0)
        fail_msg("line %d: taken", line);
    if (strcmp(err_text(&err), expected) != 0)
        fail_msg("line %d: '%s'", line, err_text(&err));
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    REFUSED("\nNodes=n1", "line 2: must begin with SwitchName=NAME");
    REFUSED("SwitchName=s", "line 1: switch 's' has neither Nodes= nor Switches=");
    REFUSED("SwitchName=s Nodes=n1\nSwitchName=t Nodes=n[1-2]",
        "line 2: node 'n1' is below both 's' and 't'");
    REFUSED("SwitchName=s Nodes=n[1", "line 1: a '[' is not closed");
    REFUSED("SwitchName=s Nodes=n[1-999999]", "line 1: too many names");
    REFUSED("SwitchName=s/x Nodes=n1",
        "line 1: a switch 's/x' may have only letters, digits, '-', '_' and '.'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostlists_are_expanded),
        cmocka_unit_test(many_names_in_few_letters_are_refused),
        cmocka_unit_test(nodes_have_leaves_and_leaves_have_spines),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
