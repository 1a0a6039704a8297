/* Why a job waits: no room, or room that somebody before it needs. */
#include "sched/pass.h"
#include "support/cm.h"

#define SECOND UINT64_C(1000000)

static struct book book;

static int setup(UNUSED void **state)
{
    book_init(&book);
    for (uint32_t i = 0; i < 4; i++) {
        char name[8];
        struct book_node n = {
            .name = name, .gpus = 8, .healthy = UINT64_MAX, .leaf = (uint16_t)(1 + i / 2)};

        snprintf(name, sizeof(name), "n%u", i + 1);
        book_node_put(&book, &n);
    }
    return 0;
}

static int teardown(UNUSED void **state)
{
    book_done(&book);
    return 0;
}

/* So many containers of 8 GPUs; the one with the least num is first. */
static uint32_t add(uint64_t num, uint32_t size, uint16_t switches, uint64_t limit)
{
    struct shape s = {.gpu_milli = 8 * SHAPE_WHOLE, .size = size, .switches = switches};

    return book_job_add(&book,
        &(struct book_job){.num = num,
            .shape = book_shape(&book, &s),
            .nice = (int32_t)num * 100000,
            .limit = limit});
}

static void run_on(uint32_t node)
{
    struct book_share share = {.node = node, .milli = SHAPE_WHOLE, .gpus = 0xff};
    uint32_t job = add(100 + node, 1, 0, 100 * SECOND);

    book_job_start(&book, job, &share, 0);
}

static enum verdict verdict_of(uint32_t job)
{
    struct pass_result result;
    enum verdict verdict = VERDICT_START;

    pass_run(&book, &pass_default, SECOND, &result);
    for (uint32_t i = 0; i < result.count; i++)
        if (result.list[i].job == job)
            verdict = (enum verdict)result.list[i].verdict;
    pass_result_done(&result);
    return verdict;
}

static void room_on_too_many_switches_is_no_room_and_nobody_is_blamed(UNUSED void **state)
{
    uint32_t job;

    run_on(0);
    run_on(2);
    add(1, 4, 0, 1000 * SECOND); /* reserves all, from the end of those on */
    job = add(2, 2, 1, 10 * SECOND);
    assert_int_equal(verdict_of(job), VERDICT_RESOURCES);
}

static void room_on_few_switches_that_is_reserved_is_somebodys(UNUSED void **state)
{
    uint32_t job;

    run_on(0);
    add(1, 4, 0, 1000 * SECOND);
    job = add(2, 2, 1, 1000 * SECOND);
    assert_int_equal(verdict_of(job), VERDICT_PRIORITY);
}

static void room_until_a_reservation_begins_is_taken_by_who_is_over_by_then(UNUSED void **state)
{
    uint32_t job;

    run_on(0);
    add(1, 4, 0, 1000 * SECOND);
    job = add(2, 2, 1, 10 * SECOND);
    assert_int_equal(verdict_of(job), VERDICT_START);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            room_on_too_many_switches_is_no_room_and_nobody_is_blamed, setup, teardown),
        cmocka_unit_test_setup_teardown(
            room_on_few_switches_that_is_reserved_is_somebodys, setup, teardown),
        cmocka_unit_test_setup_teardown(
            room_until_a_reservation_begins_is_taken_by_who_is_over_by_then, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
