/*
 * Golden decisions: each file in decisions/ is a cluster and a queue; behind the line "---" stands
 * what one pass decides. MUSTER_GOLDEN_UPDATE=1 writes that part anew.
 */
#include "base/fs.h"
#include "sim/scenario.h"
#include "support/cm.h"
#include "support/golden.h"

#define MARK "---\n"

static void check(const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", GOLDEN_DIR, name);
    _cleanup_free_ char *text = NULL, *decisions = NULL, *whole = NULL;
    struct scenario sc;
    char *mark;

    assert_works(fs_read(path, 1 << 20, &text, NULL, &err));
    mark = strstr(text, "\n" MARK);
    if (mark)
        mark[1] = '\0';
    scenario_parse(&sc, text);
    decisions = scenario_decide(&sc);
    scenario_done(&sc);
    whole = xasprintf("%s" MARK "%s", text, decisions);
    assert_true(golden_equals(GOLDEN_DIR, name, whole));
}

#define DECISION(name) \
    static void name(void **state) \
    { \
        check(#name ".txt"); \
    }

DECISION(fold)
DECISION(spread)
DECISION(single_node)
DECISION(gpus)
DECISION(nodes_out)
DECISION(order)
DECISION(names)
DECISION(memory)
DECISION(models)
DECISION(switches)
DECISION(near)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold),
        cmocka_unit_test(spread),
        cmocka_unit_test(single_node),
        cmocka_unit_test(gpus),
        cmocka_unit_test(nodes_out),
        cmocka_unit_test(order),
        cmocka_unit_test(names),
        cmocka_unit_test(memory),
        cmocka_unit_test(models),
        cmocka_unit_test(switches),
        cmocka_unit_test(near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
