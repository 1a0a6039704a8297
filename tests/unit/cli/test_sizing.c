/* The options of `muster up` that are kept from one to the next. */
#include "base/strv.h"
#include "cli/sizing.h"
#include "unit.h"

static char dir[UNIT_DIR_MAX];

static int in_folder(void **state)
{
    unit_dir_init(dir);
    return 0;
}

static int out_of_it(void **state)
{
    unit_dir_done(dir);
    return 0;
}

static void done(struct sizing *s)
{
    free(s->nodes);
    free(s->node_cpus);
    free(s->node_mem);
    free(s->gpu);
}

static void made_done(struct made *m)
{
    done(&m->sizing);
    strv_free(m->names);
    strv_free(m->former);
}

TEST(what_is_not_given_is_as_before)
{
    struct sizing s = {.node_cpus = xstrdup("8")};
    const struct sizing old = {.nodes = (char *)"2", .node_cpus = (char *)"4"};
    char *words;

    sizing_merge(&s, &old);
    words = sizing_words(&s);
    assert_string_equal(words, "--nodes 2 --node-cpus 8");
    assert_int_equal(sizing_nodes(&s), 2);
    free(words);
    done(&s);
}

TEST(nothing_given_has_no_words)
{
    const struct sizing s = {0};
    char *words = sizing_words(&s);

    assert_string_equal(words, "");
    assert_int_equal(sizing_nodes(&s), 0);
    free(words);
}

TEST(a_value_written_otherwise_is_the_same)
{
    struct cluster_node nodes[2] = {{.name = "n1", .netns = "m-n1"}, {.name = "n2"}};
    const struct cluster c = {.dir = (char *)"/d",
        .node_cpus = (char *)"2",
        .node_mem = (char *)"4G",
        .nodes = nodes,
        .count = 2};
    const struct sizing same = {.nodes = (char *)"2",
        .node_cpus = (char *)"2.0",
        .node_mem = (char *)"4096M",
        .gpu = (char *)"auto"};
    const struct sizing none = {0}, other = {.gpu = (char *)"none"};
    struct err err = ERR_INIT;

    assert_ok(sizing_check_same(&same, &c, &err), &err);
    assert_ok(sizing_check_same(&none, &c, &err), &err);
    assert_fails(sizing_check_same(&other, &c, &err), &err, -EEXIST,
        "the cluster in '/d' is up already, with --gpu auto");
}

TEST(a_value_where_there_was_none_differs)
{
    struct cluster_node node = {.name = "host"};
    const struct cluster c = {.dir = (char *)"/d", .nodes = &node, .count = 1};
    const struct sizing cpus = {.node_cpus = (char *)"2"}, nodes = {.nodes = (char *)"1"};
    struct err err = ERR_INIT;

    assert_fails(sizing_check_same(&cpus, &c, &err), &err, -EEXIST,
        "the cluster in '/d' is up already, without --node-cpus");
    assert_fails(sizing_check_same(&nodes, &c, &err), &err, -EEXIST,
        "the cluster in '/d' is up already, with --nodes 0");
}

TEST(the_record_knows_nodes_that_were_there_before)
{
    struct cluster_node two[] = {{.name = "n1"}, {.name = "n2"}}, one[] = {{.name = "host"}};
    struct cluster c = {.nodes = two, .count = 2};
    const struct sizing s = {.nodes = (char *)"2"}, t = {.nodes = (char *)"0"};
    struct made m = {0};
    struct err err = ERR_INIT;

    assert_ok(made_load(dir, &m, &err), &err);
    assert_null(m.names);
    made_plan(&m, &s, &c);
    assert_ok(made_save(dir, &m, &err), &err);
    made_done(&m);
    assert_ok(made_load(dir, &m, &err), &err);
    assert_string_equal(m.sizing.nodes, "2");
    assert_null(m.sizing.gpu);
    c.nodes = one;
    c.count = 1;
    made_plan(&m, &t, &c);
    assert_int_equal(strv_len(m.former), 2);
    assert_string_equal(m.former[1], "n2");
    c.nodes = two;
    c.count = 2;
    made_plan(&m, &s, &c);
    assert_int_equal(strv_len(m.former), 1);
    assert_string_equal(m.former[0], "host");
    made_done(&m);
}

TEST(pretend_gpus_have_a_model_and_a_count)
{
    static const char *const good[] = {"auto", "none", "fake:h100:1", "fake:h100:64"};
    static const char *const bad[] = {"", "fake", "fake:", "fake:h100", "fake:h100:", "fake::2",
        "fake:h100:0", "fake:h100:65", "fake:h100:2:3", "real:h100:2"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(sizing_check_gpu(good[i], NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(sizing_check_gpu(bad[i], NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_is_as_before),
        cmocka_unit_test(nothing_given_has_no_words),
        cmocka_unit_test(a_value_written_otherwise_is_the_same),
        cmocka_unit_test(a_value_where_there_was_none_differs),
        cmocka_unit_test_setup_teardown(
            the_record_knows_nodes_that_were_there_before, in_folder, out_of_it),
        cmocka_unit_test(pretend_gpus_have_a_model_and_a_count),
    };

    return RUN_TESTS(tests);
}
