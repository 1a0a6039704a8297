#include "agent/ct/etc.h"
#include "fixture.h"

TEST(the_plan_is_records_that_end_with_nul)
{
    static const char want[] = "user=1000:1000\0"
                               "cwd=/srv\0"
                               "stop-signal=10\0"
                               "sshd=/opt/muster/sbin/sshd\0"
                               "sshd-config=/etc/muster/ssh/sshd_config\0"
                               "env=A=1\0"
                               "env=B=two words\0"
                               "arg=/bin/sh\0"
                               "arg=-c\0"
                               "arg=exit 3";
    struct err err = ERR_INIT;
    char *plan = NULL;
    size_t len = 0;

    assert_ok(etc_plan(&fixture, &fixture_container, fixture_env, &plan, &len, &err), &err);
    assert_int_equal(len, sizeof(want));
    assert_memory_equal(plan, want, sizeof(want));
    free(plan);
}

TEST(an_idle_container_has_no_command_and_the_default_folder)
{
    struct assigned_container c = {.name = "main1"};
    struct assignment a = {.stop_signal = 0};
    static const char want[] = "user=1000:1000\0cwd=/home/work\0stop-signal=15\0"
                               "sshd=/opt/muster/sbin/sshd\0"
                               "sshd-config=/etc/muster/ssh/sshd_config";
    struct err err = ERR_INIT;
    char *plan = NULL;
    size_t len = 0;

    assert_ok(etc_plan(&a, &c, NULL, &plan, &len, &err), &err);
    assert_int_equal(len, sizeof(want));
    assert_memory_equal(plan, want, sizeof(want));
    free(plan);
}

TEST(a_plan_that_is_too_large_is_refused)
{
    char *big = xcalloc(1, 300000), *env[3];
    struct err err;
    char *plan = NULL;
    size_t len = 0;

    memset(big, 'x', 299999);
    env[0] = env[1] = big;
    env[2] = NULL;
    assert_fails(etc_plan(&fixture, &fixture_container, env, &plan, &len, &err), &err, -E2BIG,
        "command and environment are larger than 393216 bytes");
    assert_null(plan);
    free(big);
}

static void read_record(const char *text, struct init_record *rec)
{
    char dir[UNIT_DIR_MAX], path[512];
    struct rootfs_dirs d = {0};
    struct err err = ERR_INIT;

    unit_dir_init(dir);
    snprintf(d.run, sizeof(d.run), "%s", dir);
    snprintf(path, sizeof(path), "%s/ct/" CONTAINER_ID "/etc", dir);
    assert_ok(fs_mkdir_p(path, 0700, &err), &err);
    snprintf(path, sizeof(path), "%s/ct/" CONTAINER_ID "/etc/record", dir);
    unit_write(path, text);
    assert_ok(rootfs_read_record(&d, CONTAINER_ID, rec, &err), &err);
    unit_dir_done(dir);
}

TEST(a_record_is_read_to_its_last_line)
{
    struct init_record rec;

    read_record("started 7 12345\nexited 3\n", &rec);
    assert_true(rec.started && rec.exited && !rec.signalled && !rec.start_failed);
    assert_int_equal(rec.code, 3);
    read_record("started 7 12345\nsignalled 15\n", &rec);
    assert_true(rec.started && rec.signalled);
    assert_int_equal(rec.code, 15);
    read_record("start-failed ENOENT no such \001 file\n", &rec);
    assert_true(rec.start_failed && !rec.started);
    assert_string_equal(rec.text, "ENOENT no such \\x01 file");
}

TEST(a_record_written_by_somebody_hostile_says_nothing)
{
    struct init_record rec;

    read_record("", &rec);
    assert_false(rec.started || rec.exited || rec.signalled || rec.start_failed);
    read_record("exited 99999999999\nexited -3\nexited x\nsignalled\nstarted", &rec);
    assert_false(rec.started || rec.exited || rec.signalled || rec.start_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_records_that_end_with_nul),
        cmocka_unit_test(an_idle_container_has_no_command_and_the_default_folder),
        cmocka_unit_test(a_plan_that_is_too_large_is_refused),
        cmocka_unit_test(a_record_is_read_to_its_last_line),
        cmocka_unit_test(a_record_written_by_somebody_hostile_says_nothing),
    };

    return RUN_TESTS(tests);
}
