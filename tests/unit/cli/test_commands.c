/* The table of commands, and reading a command's line by it. */
#include "base/str.h"
#include "cli/commands.h"
#include "unit.h"

struct opts {
    struct cli_common common;
    bool now;
    char *name;
    char **env;
};

/* clang-format off */
static const struct opt table[] = {
    { "now", OPT_BOOL, offsetof(struct opts, now), NULL, NULL, "now", 0, true },
    { "name", OPT_STR, offsetof(struct opts, name), NULL, "NAME", "name", 'n', true },
    { "env", OPT_STRV, offsetof(struct opts, env), NULL, "K=V", "env", 'e', true },
    CLI_COMMON_OPTIONS(struct opts)
};
static const struct command mixed =
    { "stop", NULL, "[OPTION]... SESSION...", 1, 2, 0, "", "Stop", NULL, table };
static const struct command leading =
    { "run", NULL, "[OPTION]... IMAGE COMMAND...", 1, -1, COMMAND_WORDS | COMMAND_STARTS, "", "Run", NULL, table };
/* clang-format on */

static int parse(const struct command *c, struct opts *o, int argc, char **argv, int *ret_rest)
{
    struct cli cli = {.command = c};

    *o = (struct opts){0};
    return cli_parse(&cli, argc, argv, o, ret_rest);
}

#define ARGV(...) \
    (char *[]) \
    { \
        (char *)"x", __VA_ARGS__, NULL \
    }

TEST(options_may_stand_behind_the_words)
{
    char **argv = ARGV((char *)"a", (char *)"--now", (char *)"-n", (char *)"q", (char *)"b",
        (char *)"-ek=v", (char *)"--env", (char *)"l=w");
    struct opts o;
    int rest;

    assert_int_equal(parse(&mixed, &o, 9, argv, &rest), CLI_GO_ON);
    assert_true(o.now);
    assert_string_equal(o.name, "q");
    assert_string_equal(o.env[0], "k=v");
    assert_string_equal(o.env[1], "l=w");
    assert_int_equal(rest, 7);
    assert_string_equal(argv[7], "a");
    assert_string_equal(argv[8], "b");
    opt_free(table, &o);
}

TEST(what_stands_behind_two_dashes_is_a_word)
{
    char **argv = ARGV((char *)"--now", (char *)"--", (char *)"--name");
    struct opts o;
    int rest;

    assert_int_equal(parse(&mixed, &o, 4, argv, &rest), CLI_GO_ON);
    assert_true(o.now);
    assert_string_equal(argv[rest], "--name");
    assert_int_equal(rest, 3);
    opt_free(table, &o);
}

TEST(options_behind_the_image_belong_to_the_command)
{
    char **argv = ARGV((char *)"-n", (char *)"q", (char *)"base", (char *)"ls", (char *)"--now");
    struct opts o;
    int rest;

    assert_int_equal(parse(&leading, &o, 6, argv, &rest), CLI_GO_ON);
    assert_false(o.now);
    assert_int_equal(rest, 3);
    assert_string_equal(argv[5], "--now");
    opt_free(table, &o);
}

TEST(an_option_in_the_place_of_the_command_is_a_slip_unless_behind_two_dashes)
{
    struct opts o;
    int rest;

    assert_int_equal(
        parse(&leading, &o, 3, ARGV((char *)"base", (char *)"--now"), &rest), EXIT_USAGE);
    assert_int_equal(
        parse(&leading, &o, 4, ARGV((char *)"base", (char *)"--", (char *)"--now"), &rest),
        CLI_GO_ON);
    assert_int_equal(rest, 1);
}

TEST(too_few_and_too_many_words_are_wrong_usage)
{
    struct opts o;
    int rest;

    assert_int_equal(parse(&mixed, &o, 1, ARGV(NULL), &rest), EXIT_USAGE);
    assert_int_equal(
        parse(&mixed, &o, 4, ARGV((char *)"a", (char *)"b", (char *)"c"), &rest), EXIT_USAGE);
    assert_int_equal(parse(&mixed, &o, 2, ARGV((char *)"--nwo"), &rest), EXIT_USAGE);
}

TEST(the_longest_name_is_the_command)
{
    char *node_ls[] = {(char *)"node", (char *)"ls"}, *ls[] = {(char *)"ls", (char *)"ls"};
    int words;

    assert_string_equal(cli_find(2, node_ls, &words)->name, "node ls");
    assert_int_equal(words, 2);
    assert_string_equal(cli_find(2, ls, &words)->name, "ls");
    assert_int_equal(words, 1);
    assert_null(cli_find(1, node_ls, &words));
    assert_true(cli_is_noun("node"));
    assert_false(cli_is_noun("ls"));
}

static bool has_group(const char *group)
{
    for (const char *const *g = cli_groups; *g; g++)
        if (str_eq(*g, group))
            return true;
    return false;
}

TEST(every_command_has_its_place_help_and_options)
{
    for (const struct command *c = cli_commands; c->name; c++) {
        size_t n = 0;
        assert_non_null(c->fn);
        assert_true(has_group(c->group));
        assert_true(c->help[0] && !str_ends(c->help, "."));
        assert_true(c->max < 0 || c->min <= c->max);
        for (const struct opt *o = c->options; o->name; o++, n++) {
            assert_true(o->help && !str_ends(o->help, "."));
            for (const struct opt *p = c->options; p != o; p++) {
                assert_string_not_equal(p->name, o->name);
                assert_true(!o->short_name || p->short_name != o->short_name);
            }
        }
        assert_true(n >= 1); /* --help */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_stand_behind_the_words),
        cmocka_unit_test(what_stands_behind_two_dashes_is_a_word),
        cmocka_unit_test(options_behind_the_image_belong_to_the_command),
        cmocka_unit_test(an_option_in_the_place_of_the_command_is_a_slip_unless_behind_two_dashes),
        cmocka_unit_test(too_few_and_too_many_words_are_wrong_usage),
        cmocka_unit_test(the_longest_name_is_the_command),
        cmocka_unit_test(every_command_has_its_place_help_and_options),
    };

    return RUN_TESTS(tests);
}
