/* What a session waits for. */
#include "model/depend.h"
#include "support/cm.h"

static void words_are_slurms(void **state)
{
    static const char *const bad[] = {"", "after", "after:", "after:0", "after:x", "afterok:12:13",
        "aftercorr:1", "singleton:1", "afterok 12"};
    struct depend d;

    assert_works(depend_parse("afterok:12", &d, &err));
    assert_true(d.kind == DEPEND_OK && d.num == 12);
    assert_works(depend_parse("singleton", &d, &err));
    assert_true(d.kind == DEPEND_SINGLETON && d.num == 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(depend_parse(bad[i], &d, &err), -EINVAL);
        assert_non_null(strstr(err_text(&err), "a dependency is like after:12"));
    }
}

#define MEETS(kind, session, expected) \
    assert_int_equal(depend_state(&(struct depend){kind, 1}, session), expected)

static void each_kind_is_met_by_its_end(void **state)
{
    struct session waits = {.state = SESSION_PENDING};
    struct session runs = {.state = SESSION_RUNNING, .started_usec = 1};
    struct session well = {.state = SESSION_ENDED, .result = RESULT_SUCCEEDED, .started_usec = 1};
    struct session badly = {.state = SESSION_ENDED, .result = RESULT_TIMEOUT, .started_usec = 1};

    MEETS(DEPEND_AFTER, &waits, DEPEND_WAITS);
    MEETS(DEPEND_AFTER, &runs, DEPEND_MET);
    MEETS(DEPEND_AFTER, &badly, DEPEND_MET);
    MEETS(DEPEND_ANY, &runs, DEPEND_WAITS);
    MEETS(DEPEND_ANY, &badly, DEPEND_MET);
    MEETS(DEPEND_OK, &runs, DEPEND_WAITS);
    MEETS(DEPEND_OK, &well, DEPEND_MET);
    MEETS(DEPEND_OK, &badly, DEPEND_NEVER);
    MEETS(DEPEND_NOT_OK, &waits, DEPEND_WAITS);
    MEETS(DEPEND_NOT_OK, &well, DEPEND_NEVER);
    MEETS(DEPEND_NOT_OK, &badly, DEPEND_MET);
    MEETS(DEPEND_OK, NULL, DEPEND_NEVER); /* nobody knows of it any more */
    MEETS(DEPEND_ANY, NULL, DEPEND_MET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_slurms),
        cmocka_unit_test(each_kind_is_met_by_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
