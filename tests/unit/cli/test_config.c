/* Where the manager is and who asks. */
#include "cli/cli.h"
#include "unit.h"

static char home[UNIT_DIR_MAX];

static int in_new_home(void **state)
{
    unit_dir_init(home);
    setenv("HOME", home, 1);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("MUSTER_URL");
    unsetenv("MUSTER_TOKEN");
    unsetenv("MUSTER_CA");
    unsetenv("SUDO_UID");
    return 0;
}

static int out_of_it(void **state)
{
    unit_dir_done(home);
    return 0;
}

static void forget(struct cli *cli)
{
    free(cli->url);
    free(cli->url_from);
    free(cli->token);
    free(cli->ca);
    *cli = (struct cli){0};
}

TEST(without_anything_it_is_the_manager_of_this_machine)
{
    struct cli cli = {0};
    struct err err = ERR_INIT;

    assert_ok(config_read(&cli, &err), &err);
    assert_string_equal(cli.url, "http://127.0.0.1:7480");
    assert_null(cli.token);
    forget(&cli);
}

TEST(what_was_written_is_read_again)
{
    struct cli cli = {0};
    struct err err = ERR_INIT;
    char *path = config_path();
    struct stat st;

    assert_ok(config_write("https://m.example.org", "tok: \"x\"", "/etc/ca.pem", &err), &err);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(config_read(&cli, &err), &err);
    assert_string_equal(cli.url, "https://m.example.org");
    assert_string_equal(cli.token, "tok: \"x\"");
    assert_string_equal(cli.ca, "/etc/ca.pem");
    forget(&cli);
    free(path);
}

TEST(the_environment_wins_over_the_file)
{
    struct cli cli = {0};
    struct err err = ERR_INIT;

    assert_ok(config_write("http://file:1", "file", NULL, &err), &err);
    setenv("MUSTER_URL", "http://env:1", 1);
    assert_ok(config_read(&cli, &err), &err);
    assert_string_equal(cli.url, "http://env:1");
    assert_string_equal(cli.token, "file");
    forget(&cli);
}

TEST(a_file_that_others_can_read_is_refused)
{
    struct cli cli = {0};
    struct err err = ERR_INIT;
    char *path = config_path(), *want;

    assert_ok(config_write("http://file:1", "file", NULL, &err), &err);
    assert_int_equal(chmod(path, 0644), 0);
    want = xasprintf(
        "'%s' holds a token and others have rights on it (mode 644); run: chmod 600 %s", path,
        path);
    assert_fails(config_read(&cli, &err), &err, -EPERM, want);
    free(want);
    free(path);
}

TEST(a_mistake_in_the_file_is_told_with_its_line)
{
    struct cli cli = {0};
    struct err err = ERR_INIT;
    char *path = config_path(), *want;

    assert_ok(config_write("http://file:1", "file", NULL, &err), &err);
    assert_ok(fs_write(path, "url: x\ntokn: y\n", 15, 0600, &err), &err);
    want = xasprintf("%s:2: unknown option 'tokn'; did you mean 'token'?", path);
    assert_fails(config_read(&cli, &err), &err, -EINVAL, want);
    free(want);
    free(path);
}

int main(void)
{
#define IN_HOME(t) cmocka_unit_test_setup_teardown(t, in_new_home, out_of_it)
    const struct CMUnitTest tests[] = {
        IN_HOME(without_anything_it_is_the_manager_of_this_machine),
        IN_HOME(what_was_written_is_read_again),
        IN_HOME(the_environment_wins_over_the_file),
        IN_HOME(a_file_that_others_can_read_is_refused),
        IN_HOME(a_mistake_in_the_file_is_told_with_its_line),
    };

    return RUN_TESTS(tests);
}
