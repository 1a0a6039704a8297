/* What a session is expected to take, from its like. */
#include "sched/estimate.h"
#include "support/cm.h"

#define MINUTE UINT64_C(60000000)

static struct session of_kim(char **command)
{
    struct session s = {
        .kind = KIND_TRAIN, .size = 1, .each = {.cpu_milli = 4000, .gpus = 2}, .command = command};

    STR_SET(s.owner, "kim");
    STR_SET(s.group, "default");
    STR_SET(s.image, "base");
    return s;
}

static void ran(struct estimator *e, const struct session *like, uint64_t minutes)
{
    struct session s = *like;

    s.result = RESULT_SUCCEEDED;
    s.started_usec = 1000 * MINUTE;
    s.ended_usec = s.started_usec + minutes * MINUTE;
    estimator_learn(e, &s);
}

static void the_same_command_twice_says_how_long_it_takes(void **state)
{
    char *train[] = {"python", "train.py", NULL}, *test[] = {"python", "test.py", NULL};
    struct session s = of_kim(train), other = of_kim(test);
    struct estimator e;

    estimator_init(&e);
    ran(&e, &s, 10);
    assert_int_equal(estimator_guess(&e, &s), 0);
    ran(&e, &s, 30);
    ran(&e, &s, 20);
    assert_int_equal(estimator_guess(&e, &s), 20 * MINUTE);
    assert_int_equal(estimator_guess(&e, &other), 0);
    ran(&e, &s, 20);
    assert_int_equal(estimator_guess(&e, &other), 20 * MINUTE); /* four of those resources */
    s.time_limit_usec = 5 * MINUTE;
    assert_int_equal(estimator_guess(&e, &s), 5 * MINUTE);
    STR_SET(s.owner, "lee");
    assert_int_equal(estimator_guess(&e, &s), 0);
    estimator_done(&e);
}

static void only_the_last_ones_count(void **state)
{
    struct session s = of_kim(NULL);
    struct estimator e;

    estimator_init(&e);
    for (int i = 0; i < 20; i++)
        ran(&e, &s, 100);
    for (int i = 0; i < ESTIMATE_KEPT; i++)
        ran(&e, &s, 7);
    assert_int_equal(estimator_guess(&e, &s), 7 * MINUTE);
    estimator_done(&e);
}

static void what_was_stopped_says_nothing(void **state)
{
    struct session s = of_kim(NULL);
    struct estimator e;

    estimator_init(&e);
    s.started_usec = 1;
    s.ended_usec = 2;
    for (int i = 0; i < 5; i++) {
        s.result = i % 2 ? RESULT_CANCELLED : RESULT_LOST;
        estimator_learn(&e, &s);
    }
    s.result = RESULT_FAILED;
    s.started_usec = 0; /* it never ran */
    estimator_learn(&e, &s);
    assert_int_equal(map_count(&e.kinds), 0);
    estimator_done(&e);
}

static void how_good_they_were_is_counted(void **state)
{
    struct session s = of_kim(NULL);
    struct estimator e;

    estimator_init(&e);
    s.estimate_usec = 10 * MINUTE;
    s.time_limit_usec = 60 * MINUTE;
    ran(&e, &s, 6);
    ran(&e, &s, 19);
    ran(&e, &s, 30);
    s.estimate_usec = 0;
    ran(&e, &s, 30);
    assert_int_equal(e.quality.count, 3);
    assert_int_equal(e.quality.within_2x, 2);
    assert_int_equal(e.quality.below, 1);
    assert_int_equal(e.quality.above, 2);
    assert_int_equal(e.quality.limit_count, 4);
    assert_int_equal(e.quality.limit_within_2x, 2);
    estimator_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_command_twice_says_how_long_it_takes),
        cmocka_unit_test(only_the_last_ones_count),
        cmocka_unit_test(what_was_stopped_says_nothing),
        cmocka_unit_test(how_good_they_were_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
