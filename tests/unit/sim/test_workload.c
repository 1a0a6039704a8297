/* Reading of workloads and nodes: what is taken, and what is refused with its line. */
#include "base/fs.h"
#include "sim/workload.h"
#include "support/cm.h"

static char dir[] = "/tmp/muster-test-XXXXXX";

static int setup(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    return fs_remove_tree(dir, NULL);
}

static char *file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);

    assert_int_equal(fs_write(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static const struct workload_options plain = {0};

static void csv_columns_come_in_any_order(void **state)
{
    _cleanup_free_ char *path = file("w.csv",
        "duration,submit,user,gpus,size,mem,gpu_model,limit\n"
        "60,10,bob,2,4,8G,a100|h100,90\n"
        "# a comment\n"
        "1.5,0,\"alice, too\",0.5,1,,,\n");
    struct workload w;
    struct book b;

    book_init(&b);
    assert_works(workload_read(&b, path, &plain, &w, &err));
    assert_int_equal(w.count, 2);
    assert_int_equal(w.jobs[0].submit, 0); /* by submission */
    assert_int_equal(w.jobs[0].duration, 1500000);
    assert_int_equal(w.jobs[0].job.limit, BOOK_FOREVER);
    assert_string_equal(book_text(&b, w.jobs[0].job.owner), "alice, too");
    assert_int_equal(b.shapes[w.jobs[0].job.shape].gpu_milli, 500);
    assert_int_equal(w.jobs[1].submit, 10000000);
    assert_int_equal(w.jobs[1].job.limit, 90000000);
    assert_int_equal(w.jobs[1].job.num, 2);
    assert_int_equal(b.shapes[w.jobs[1].job.shape].size, 4);
    assert_int_equal(b.shapes[w.jobs[1].job.shape].gpu_milli, 2000);
    assert_true(b.shapes[w.jobs[1].job.shape].mem == UINT64_C(8) << 30);
    assert_int_equal(b.shapes[w.jobs[1].job.shape].models, 3);
    workload_done(&w);
    book_done(&b);
}

static void a_line_that_is_none_is_named(void **state)
{
    _cleanup_free_ char *path = file("bad.csv", "submit,duration,gpus\n0,1,1\n5,x,1\n");
    _cleanup_free_ char *text = xasprintf(
        "workload '%s': line 3: 'duration' is 'x', not a number", path);
    struct workload w;
    struct book b;

    book_init(&b);
    assert_fails(workload_read(&b, path, &plain, &w, &err), -EINVAL, text);
    workload_done(&w);
    book_done(&b);
}

static void nice_may_be_below_zero(void **state)
{
    _cleanup_free_ char *path = file(
        "nice.csv", "submit,duration,nice\n0,60,-500\n1,60,20\n2,60,\n");
    _cleanup_free_ char *bad = file("bad-nice.csv", "submit,duration,nice\n0,60,low\n");
    _cleanup_free_ char *text = xasprintf(
        "workload '%s': line 2: 'nice' is 'low', not a whole number", bad);
    struct workload w;
    struct book b;

    book_init(&b);
    assert_works(workload_read(&b, path, &plain, &w, &err));
    assert_int_equal(w.count, 3);
    assert_int_equal(w.jobs[0].job.nice, -500);
    assert_int_equal(w.jobs[1].job.nice, 20);
    assert_int_equal(w.jobs[2].job.nice, 0);
    workload_done(&w);
    assert_fails(workload_read(&b, bad, &plain, &w, &err), -EINVAL, text);
    workload_done(&w);
    book_done(&b);
}

static void swf_is_read_and_jobs_that_never_ran_are_left_out(void **state)
{
    _cleanup_free_ char *path = file("w.swf",
        "; Version: 2.2\n"
        "1 100 5 3600 4 -1 -1 4 7200 -1 1 17 1 -1 1 -1 -1 -1\n"
        "2 200 -1 -1 4 -1 -1 4 7200 -1 0 17 1 -1 1 -1 -1 -1\n");
    struct workload_options gpus = {.swf_gpus = true};
    struct workload w;
    struct book b;

    book_init(&b);
    assert_works(workload_read(&b, path, &gpus, &w, &err));
    assert_int_equal(w.count, 1);
    assert_int_equal(w.skipped, 1);
    assert_int_equal(w.jobs[0].duration, UINT64_C(3600000000));
    assert_int_equal(w.jobs[0].job.limit, UINT64_C(7200000000));
    assert_int_equal(b.shapes[w.jobs[0].job.shape].gpu_milli, 4000);
    assert_string_equal(book_text(&b, w.jobs[0].job.owner), "user17");
    workload_done(&w);
    book_done(&b);
}

static void sacct_is_read_without_its_steps(void **state)
{
    _cleanup_free_ char *path = file("month.txt",
        "JobID|User|Submit|Start|End|Timelimit|ReqTRES\n"
        "7|ann|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T12:05:00|1-00:00:00|"
        "billing=16,cpu=16,gres/gpu=8,gres/gpu:h100=8,mem=64G,node=2\n"
        "7.batch||2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T12:05:00||\n"
        "8|ann|2026-03-01T10:00:00|Unknown|Unknown|UNLIMITED|cpu=1,node=1\n");
    struct workload w;
    struct book b;
    const struct shape *s;

    book_init(&b);
    assert_works(workload_read(&b, path, &plain, &w, &err));
    assert_int_equal(w.count, 1);
    assert_int_equal(w.skipped, 1);
    assert_int_equal(w.jobs[0].duration, UINT64_C(7200000000));
    assert_int_equal(w.jobs[0].job.limit, UINT64_C(86400000000));
    s = &b.shapes[w.jobs[0].job.shape];
    assert_int_equal(s->size, 2);
    assert_int_equal(s->gpu_milli, 4000);
    assert_int_equal(s->cpu_milli, 8000);
    assert_true(s->mem == UINT64_C(32) << 30);
    workload_done(&w);
    book_done(&b);
}

static void more_gpus_than_a_node_has_become_a_gang(void **state)
{
    _cleanup_free_ char *path = file("g.csv", "submit,duration,gpus\n0,1,8\n1,1,20\n");
    struct workload_options o = {.gpus_per_node = 8};
    struct workload w;
    struct book b;

    book_init(&b);
    assert_works(workload_read(&b, path, &o, &w, &err));
    assert_int_equal(b.shapes[w.jobs[0].job.shape].size, 1);
    assert_int_equal(b.shapes[w.jobs[1].job.shape].size, 3);
    assert_int_equal(b.shapes[w.jobs[1].job.shape].gpu_milli, 8000);
    workload_done(&w);
    book_done(&b);
}

static void an_empty_workload_is_refused(void **state)
{
    _cleanup_free_ char *path = file("empty.csv", "submit,duration\n");
    _cleanup_free_ char *text = xasprintf("workload '%s' has no job that has run", path);
    struct workload w;
    struct book b;

    book_init(&b);
    assert_fails(workload_read(&b, path, &plain, &w, &err), -ENODATA, text);
    assert_int_equal(workload_read(&b, "/nonexistent", &plain, &w, NULL), -ENOENT);
    book_done(&b);
}

static void nodes_come_from_a_file_or_are_equal(void **state)
{
    _cleanup_free_ char *path = file("n.csv",
        "name,cpus,mem,gpus,gpu_model,leaf,group\nb,64,256G,8,h100,l2,big\na,32,128G,0,,l1,\n");
    struct book b;

    book_init(&b);
    assert_works(workload_nodes(&b, path, &err));
    assert_int_equal(b.node_count, 2);
    assert_string_equal(b.nodes[0].name, "a"); /* by name */
    assert_int_equal(b.nodes[1].gpus, 8);
    assert_int_not_equal(b.nodes[0].leaf, b.nodes[1].leaf);
    assert_string_equal(book_text(&b, b.nodes[0].group), "default");
    assert_string_equal(book_text(&b, b.nodes[1].group), "big");
    assert_works(workload_nodes(&b, "3x cpus=8,gpus=2,gpu_model=a100", &err));
    assert_int_equal(b.node_count, 5);
    assert_fails(workload_nodes(&b, "3x cpus", &err), -EINVAL, "'cpus' is not NAME=VALUE");
    assert_fails(workload_nodes(&b, "1x gpus=65", &err), -ERANGE,
        "node 'n000001': cpus or gpus are out of range");
    book_done(&b);
}

static void a_line_of_the_node_list_that_is_none_is_named(void **state)
{
    _cleanup_free_ char *path = file("bad.csv", "name,cpus\na,8\nb,x\n");
    _cleanup_free_ char *name = xasprintf("%070000d", 0), *text = xasprintf("name\n%s\n", name);
    _cleanup_free_ char *wide = file("wide.csv", text);
    _cleanup_free_ char *no_number = xasprintf("'%s' line 3: 'cpus' is 'x', not a number", path);
    _cleanup_free_ char *too_long = xasprintf("'%s' line 2: the line is too long", wide);
    struct book b;

    book_init(&b);
    assert_fails(workload_nodes(&b, path, &err), -EINVAL, no_number);
    assert_fails(workload_nodes(&b, wide, &err), -E2BIG, too_long);
    assert_int_equal(b.node_count, 1);
    book_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_columns_come_in_any_order),
        cmocka_unit_test(a_line_that_is_none_is_named),
        cmocka_unit_test(nice_may_be_below_zero),
        cmocka_unit_test(swf_is_read_and_jobs_that_never_ran_are_left_out),
        cmocka_unit_test(sacct_is_read_without_its_steps),
        cmocka_unit_test(more_gpus_than_a_node_has_become_a_gang),
        cmocka_unit_test(an_empty_workload_is_refused),
        cmocka_unit_test(nodes_come_from_a_file_or_are_equal),
        cmocka_unit_test(a_line_of_the_node_list_that_is_none_is_named),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
