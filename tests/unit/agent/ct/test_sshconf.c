#include "agent/ct/sshconf.h"
#include "base/str.h"
#include "fixture.h"

static char *set_env_line(char *const *env, const char *name)
{
    struct err err = ERR_INIT;
    char *text = NULL, *line, *end;

    assert_ok(sshconf_server(env, name, &text, &err), &err);
    line = strstr(text, "\nSetEnv");
    assert_non_null(line);
    assert_null(strstr(line + 1, "\nSetEnv"));
    end = strchr(line + 1, '\n');
    assert_string_equal(end, "\n");
    line = xstrndup(line + 1, (size_t)(end - line - 1));
    free(text);
    return line;
}

TEST(the_environment_is_one_line_with_a_prompt)
{
    char *line = set_env_line(fixture_env, "sub1");

    assert_string_equal(line, "SetEnv \"PS1=work@sub1$ \" \"A=1\" \"B=two words\"");
    free(line);
}

TEST(quotes_and_backslashes_are_escaped)
{
    char *env[] = {
        (char *)"Q=a\"b", (char *)"S=\\x\\", (char *)"H=# 'c'", (char *)"PS1=mine> ", NULL};
    char *line = set_env_line(env, "main1");

    assert_string_equal(line, "SetEnv \"Q=a\\\"b\" \"S=\\\\x\\\\\" \"H=# 'c'\" \"PS1=mine> \"");
    free(line);
}

TEST(a_variable_with_a_line_break_is_left_out)
{
    char *env[] = {(char *)"BAD=a\nPermitRootLogin yes", (char *)"CR=a\rb", (char *)"OK=1", NULL};
    char *line = set_env_line(env, "main1");

    assert_string_equal(line, "SetEnv \"PS1=work@main1$ \" \"OK=1\"");
    free(line);
}

TEST(an_environment_larger_than_sshd_takes_is_refused)
{
    char *big = xcalloc(1, 140001), *env[] = {big, NULL}, *text = NULL;
    struct err err;

    memset(big, 'x', 140000);
    big[1] = '=';
    assert_fails(sshconf_server(env, "main1", &text, &err), &err, -E2BIG,
        "the environment is larger than the 131072 bytes that sshd takes");
    assert_null(text);
    free(big);
}

TEST(known_hosts_has_every_name_and_address)
{
    char *text = sshconf_known_hosts(&fixture);

    assert_string_equal(text,
        "main1,10.128.0.2 ssh-ed25519 AAAAC3Nz\n"
        "sub1,10.128.0.3 ssh-ed25519 AAAAC3Nz\n");
    free(text);
}

TEST(the_clients_rules_hold_for_the_sessions_hosts_only)
{
    char *text = sshconf_client(&fixture);

    assert_true(str_starts(text, "Host main1 10.128.0.2 sub1 10.128.0.3\n    User work\n"));
    assert_non_null(strstr(text, "\n    StrictHostKeyChecking yes\n"));
    assert_null(strstr(text, "Host *"));
    free(text);
}

TEST(a_thousand_hosts_make_short_lines)
{
    struct assigned_peer *peers = xnew_array(struct assigned_peer, 1000);
    struct assignment a = {.peers = peers, .peer_count = 1000};
    size_t hosts = 0;
    char *text;

    for (uint32_t i = 0; i < 1000; i++) {
        container_name_make(i, peers[i].name);
        peers[i].ip = 0x0a800002 + i;
    }
    text = sshconf_client(&a);
    for (char *line = text; *line; line = strchr(line, '\n') + 1) {
        assert_true(strcspn(line, "\n") < 1000);
        hosts += str_starts(line, "Host ");
    }
    assert_in_range(hosts, 15, 40);
    assert_non_null(strstr(text, " sub999 10.128.3.233\n    User work\n"));
    free(text);
    free(peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_one_line_with_a_prompt),
        cmocka_unit_test(quotes_and_backslashes_are_escaped),
        cmocka_unit_test(a_variable_with_a_line_break_is_left_out),
        cmocka_unit_test(an_environment_larger_than_sshd_takes_is_refused),
        cmocka_unit_test(known_hosts_has_every_name_and_address),
        cmocka_unit_test(the_clients_rules_hold_for_the_sessions_hosts_only),
        cmocka_unit_test(a_thousand_hosts_make_short_lines),
    };

    return RUN_TESTS(tests);
}
