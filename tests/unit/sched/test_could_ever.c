/* What can never fit is refused with the shortfall. */
#include "sched/sched.h"
#include "support/cm.h"

#define GIB (UINT64_C(1) << 30)

static struct gpu gpus[8];
static struct node nodes[3];
static const struct node *const list[] = {&nodes[0], &nodes[1], &nodes[2]};

static int setup(void **state)
{
    for (uint32_t i = 0; i < 8; i++)
        gpus[i] = (struct gpu){.index = i, .model = "h100"};
    nodes[0] = (struct node){.name = "n1",
        .group = "default",
        .gpus = gpus,
        .state = NODE_LOST,
        .capacity = {.cpu_milli = 64000, .mem = 256 * GIB, .gpus = 8}};
    nodes[1] = nodes[0];
    STR_SET(nodes[1].name, "n2");
    nodes[2] = (struct node){
        .name = "n3", .group = "small", .capacity = {.cpu_milli = 4000, .mem = 8 * GIB}};
    return 0;
}

static struct session ask(
    uint32_t size, enum session_mode mode, uint32_t cpus, uint64_t gib, uint32_t count)
{
    return (struct session){.size = size,
        .mode = mode,
        .group = "default",
        .each = {.cpu_milli = cpus * 1000, .mem = gib * GIB, .gpus = count}};
}

static void refused(const struct session *s, uint32_t largest, const char *text)
{
    uint32_t got = 77;

    assert_fails(sched_could_ever(s, list, ARRAY_LEN(list), &got, &err), -E2BIG, text);
    assert_int_equal(got, largest);
}

static void what_fits_an_empty_cluster_is_taken(void **state)
{
    struct session s = ask(16, MODE_MULTI_NODE, 8, 32, 1);
    uint32_t largest;

    assert_works(sched_could_ever(&s, list, 3, &largest, &err));
    assert_int_equal(largest, 16);
    s = ask(1, MODE_MULTI_NODE, 1, 1, 0);
    assert_works(sched_could_ever(&s, list, 3, &largest, &err));
    assert_int_equal(largest, 128);
    s.each = (struct resources){.cpu_milli = 10, .mem = GIB / 64};
    assert_works(sched_could_ever(&s, list, 3, &largest, &err));
    assert_int_equal(largest, SESSION_SIZE_MAX);
}

static void one_node_is_too_small(void **state)
{
    struct session s = ask(4, MODE_SINGLE_NODE, 1, 1, 8);

    refused(&s, 1,
        "asks for 4 x 8 GPUs = 32 on one node; the largest node of group 'default' (n1) has 8");
    s = ask(3, MODE_SINGLE_NODE, 32, 1, 0);
    refused(&s, 2,
        "asks for 3 x 32 CPUs = 96 on one node; the largest node of group 'default' (n1) has 64");
    s = ask(3, MODE_SINGLE_NODE, 1, 100, 0);
    refused(&s, 2,
        "asks for 3 x 100 GiB of memory = 300 GiB on one node; the largest node of group 'default' "
        "(n1) has 256 GiB");
    s = ask(1, MODE_MULTI_NODE, 65, 1, 0);
    refused(&s, 0,
        "asks for 65 CPUs in one container; the largest node of group 'default' (n1) has 64");
}

static void all_nodes_together_are_too_small(void **state)
{
    struct session s = ask(3, MODE_MULTI_NODE, 1, 1, 8);

    refused(&s, 2, "asks for 3 x 8 GPUs = 24; the nodes of group 'default' have 16 together");
    s = ask(10, MODE_MULTI_NODE, 1, 1, 2);
    STR_SET(s.gpu_model, "h100");
    refused(&s, 8, "asks for 10 x 2 h100 GPUs = 20; the nodes of group 'default' have 16 together");
    STR_SET(s.gpu_model, "b200");
    refused(&s, 0, "asks for b200 GPUs; the nodes of group 'default' have these models: h100");
}

/* 3 GPUs: two containers a node, though 16 GPUs would make five. */
static void the_pieces_do_not_add_up(void **state)
{
    struct session s = ask(5, MODE_MULTI_NODE, 1, 1, 3);

    refused(&s, 4,
        "asks for 5 x (1 CPU, 1 GiB, 3 GPUs); the nodes of group 'default' have room for 4 when "
        "empty");
}

static void a_group_without_nodes_is_told(void **state)
{
    struct session s = ask(1, MODE_MULTI_NODE, 1, 1, 0);
    uint32_t largest = 77;

    STR_SET(s.group, "none");
    assert_fails(
        sched_could_ever(&s, list, 3, &largest, &err), -ENOENT, "group 'none' has no node");
    assert_int_equal(largest, 0);
}

static void a_node_of_its_group_only_counts(void **state)
{
    struct session s = ask(5, MODE_MULTI_NODE, 1, 1, 0);

    STR_SET(s.group, "small");
    refused(&s, 4, "asks for 5 x 1 CPUs = 5; the nodes of group 'small' have 4 together");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_fits_an_empty_cluster_is_taken, setup),
        cmocka_unit_test_setup(one_node_is_too_small, setup),
        cmocka_unit_test_setup(all_nodes_together_are_too_small, setup),
        cmocka_unit_test_setup(the_pieces_do_not_add_up, setup),
        cmocka_unit_test_setup(a_group_without_nodes_is_told, setup),
        cmocka_unit_test_setup(a_node_of_its_group_only_counts, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
