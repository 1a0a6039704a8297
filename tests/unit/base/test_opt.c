#include "base/clock.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/strv.h"
#include "unit.h"

struct config {
    bool help, verbose, tls;
    char *config_path, *listen;
    char **peers;
    uint64_t depth, cache, grace;
};

static int check_listen(const char *value, struct err *err)
{
    return strchr(value, ':') ? 0 : err_set(err, -EINVAL, "'%s' has no port", value);
}

#define AT(member) offsetof(struct config, member)

/* clang-format off */
static const struct opt table[] = {
    {"help", OPT_BOOL, AT(help), .help = "show this", .short_name = 'h', .line_only = true},
    {"config", OPT_STR, AT(config_path), .arg = "PATH", .help = "the file to read",
        .short_name = 'c', .line_only = true},
    {"listen", OPT_STR, AT(listen), "0.0.0.0:7400", "HOST:PORT", "where to listen",
        .short_name = 'l', .check = check_listen},
    {"peers", OPT_STRV, AT(peers), "a,b", "HOST", "the other managers"},
    {"verbose", OPT_BOOL, AT(verbose), .help = "say more", .short_name = 'v'},
    {"api.tls", OPT_BOOL, AT(tls), "yes", .help = "speak TLS"},
    {"scheduler.backfill_depth", OPT_U64, AT(depth), "16", "N", "sessions looked at"},
    {"image.cache.max", OPT_SIZE, AT(cache), "10G", "BYTES", "kept images"},
    {"grace", OPT_DURATION, AT(grace), NULL, "TIME", "time to end"},
    OPT_END,
};
/* clang-format on */

static char dir[UNIT_DIR_MAX];
static struct config config;

static int enter_dir(void **state UNUSED)
{
    unit_dir_init(dir);
    return chdir(dir);
}

static int leave_dir(void **state UNUSED)
{
    int r = chdir("/");

    unit_dir_done(dir);
    return r;
}

static int fresh(void **state UNUSED)
{
    opt_free(table, &config);
    opt_defaults(table, &config);
    return 0;
}

static int drop(void **state UNUSED)
{
    opt_free(table, &config);
    return 0;
}

static int load(const char *text, struct err *err)
{
    unit_write("m.yaml", text);
    return opt_load(table, &config, "m.yaml", err);
}

#define LINE(...) ((char *[]){(char *)"musterd", __VA_ARGS__, NULL})
#define PARSE(rest, err, ...) \
    opt_parse(table, &config, (int)strv_len(LINE(__VA_ARGS__)), LINE(__VA_ARGS__), rest, err)
#define READ(path, rest, err, ...) \
    opt_read(table, &config, AT(config_path), path, (int)strv_len(LINE(__VA_ARGS__)), \
        LINE(__VA_ARGS__), rest, err)

static void assert_peers(const char *want)
{
    _cleanup_free_ char *joined = strv_join(config.peers, ",");

    assert_string_equal(joined, want);
}

TEST(defaults_come_from_the_table)
{
    assert_string_equal(config.listen, "0.0.0.0:7400");
    assert_peers("a,b");
    assert_false(config.verbose);
    assert_true(config.tls);
    assert_int_equal(config.depth, 16);
    assert_int_equal(config.cache, UINT64_C(10) << 30);
    assert_int_equal(config.grace, 0);
    assert_null(config.config_path);
}

TEST(freeing_zeroes_the_members)
{
    static const struct config zero;

    opt_free(table, &config);
    assert_memory_equal(&config, &zero, sizeof(zero));
}

TEST(a_file_nests_by_the_dots_of_the_names)
{
    struct err err = ERR_INIT;

    assert_ok(load("# Muster\n"
                   "listen: '[::]:80'\n"
                   "peers: [x, y, z]\n"
                   "verbose: on\n"
                   "api:\n"
                   "  tls: false\n"
                   "scheduler:\n"
                   "  backfill_depth: 99\n"
                   "image:\n"
                   "  cache:\n"
                   "    max: 1.5T\n"
                   "grace: 1h30m\n",
                  &err),
        &err);
    assert_string_equal(config.listen, "[::]:80");
    assert_peers("x,y,z");
    assert_true(config.verbose);
    assert_false(config.tls);
    assert_int_equal(config.depth, 99);
    assert_int_equal(config.cache, UINT64_C(3) << 39);
    assert_int_equal(config.grace, 5400 * USEC_PER_SEC);
}

TEST(a_dotted_name_in_the_file_is_the_same_option)
{
    struct err err = ERR_INIT;

    assert_ok(load("image.cache.max: 7\nimage:\n", &err), &err);
    assert_int_equal(config.cache, 7);
    assert_ok(load("image:\n  cache.max: 8\n", &err), &err);
    assert_int_equal(config.cache, 8);
}

TEST(an_empty_file_changes_nothing)
{
    static const char *const empty[] = {"", "# nothing\n", "---\n", "{}", "---\n...\n"};

    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        struct err err = ERR_INIT;

        assert_ok(load(empty[i], &err), &err);
        assert_int_equal(config.depth, 16);
    }
}

TEST(a_list_in_the_file_may_be_one_value_or_none)
{
    struct err err = ERR_INIT;

    assert_ok(load("peers: only", &err), &err);
    assert_peers("only");
    assert_ok(load("peers: []", &err), &err);
    assert_peers("");
}

TEST(an_empty_string_must_be_quoted)
{
    struct err err = ERR_INIT;

    assert_fails(load("\ngrace:\n", &err), &err, -EINVAL, "m.yaml:2: 'grace': has no value");
    assert_fails(load("listen: ~\n", &err), &err, -EINVAL, "m.yaml:1: 'listen': has no value");
    assert_ok(load("peers: ['', \"~\"]", &err), &err);
    assert_peers(",~");
}

TEST(a_mistake_in_the_file_is_told_with_its_line)
{
    static const struct {
        const char *file, *text;
    } rows[] = {
        {"\nlisen: a:1\n", "m.yaml:2: unknown option 'lisen'; did you mean 'listen'?"},
        {"xyzzy: 1\n", "m.yaml:1: unknown option 'xyzzy'"},
        {"scheduler:\n  backfil_depth: 1\n",
            "m.yaml:2: unknown option 'scheduler.backfil_depth'; did you mean "
            "'scheduler.backfill_depth'?"},
        {"\"a\\nb\": 1\n", "m.yaml:1: unknown option 'a\\x0ab'"},
        {"config: x\n", "m.yaml:1: 'config' goes on the command line only"},
        {"listen: a:1\nlisten: a:2\n", "m.yaml:2: 'listen' stands here twice"},
        {"image:\n  cache:\n    max: 1\nimage.cache.max: 2\n",
            "m.yaml:4: 'image.cache.max' stands here twice"},
        {"api:\n  tls: yes\napi: {}\n", "m.yaml:3: 'api' stands here twice"},
        {"listen: nowhere\n", "m.yaml:1: 'listen': 'nowhere' has no port"},
        {"listen: [a:1]\n", "m.yaml:1: 'listen': must be text or a number"},
        {"listen: {a: 1}\n", "m.yaml:1: 'listen': must be text or a number"},
        {"peers:\n  - a\n  - [b]\n",
            "m.yaml:3: 'peers': must be text or a number, or a list of them"},
        {"verbose: maybe\n", "m.yaml:1: 'verbose': 'maybe' must be yes or no"},
        {"scheduler:\n  backfill_depth: -1\n",
            "m.yaml:2: 'scheduler.backfill_depth': '-1' is not a whole number"},
        {"scheduler: 7\n", "m.yaml:1: 'scheduler' must have options below it"},
        {"- a\n", "m.yaml:1: a configuration file is a list of 'name: value'"},
        {"[a]: 1\n", "m.yaml:1: the name of an option must be text"},
        {"grace: 1h\n---\ngrace: 2h\n", "m.yaml:2: a second document"},
        {"listen: \"a:1\\0b\"\n", "m.yaml:1: 'listen': must be text or a number"},
        {"grace: 1h\n  x: [\n", "m.yaml:2: mapping values are not allowed in this context"},
    };
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_fails(load(rows[i].file, &err), &err, -EINVAL, rows[i].text);
}

TEST(a_document_that_contains_itself_is_refused)
{
    struct err err;

    assert_fails(load("image: &a\n  cache: *a\n", &err), &err, -EINVAL,
        "m.yaml:2: unknown option 'image.cache.cache'; did you mean 'image.cache.max'?");
}

TEST(a_missing_or_large_file_is_an_error)
{
    _cleanup_free_ char *large = xcalloc(1, 1024 * 1024 + 2);
    struct err err;

    assert_fails(opt_load(table, &config, "none", &err), &err, -ENOENT,
        "cannot open 'none': No such file or directory");
    memset(large, '#', 1024 * 1024 + 1);
    assert_fails(load(large, &err), &err, -EFBIG, "'m.yaml' is larger than 1048576 bytes");
}

TEST(an_error_is_found_although_nobody_wants_its_text)
{
    int rest;

    assert_int_equal(load("lisen: 1\n", NULL), -EINVAL);
    assert_int_equal(load("grace: x\n", NULL), -EINVAL);
    assert_int_equal(PARSE(&rest, NULL, "--grace=x"), -EINVAL);
}

TEST(the_line_is_read_up_to_the_first_other_word)
{
    struct err err = ERR_INIT;
    int rest = 77;

    assert_ok(
        PARSE(&rest, &err, "--grace", "5m", "--listen=a:1", "-v", "run", "--grace", "9m"), &err);
    assert_int_equal(rest, 5);
    assert_int_equal(config.grace, 300 * USEC_PER_SEC);
    assert_string_equal(config.listen, "a:1");
    assert_true(config.verbose);
    assert_ok(PARSE(&rest, &err, "-v", "--", "--grace"), &err);
    assert_int_equal(rest, 3);
    assert_ok(PARSE(&rest, &err, "-"), &err);
    assert_int_equal(rest, 1);
    assert_ok(PARSE(&rest, &err, "-v"), &err);
    assert_int_equal(rest, 2);
}

TEST(dots_and_underscores_are_dashes_on_the_line)
{
    struct err err = ERR_INIT;
    int rest;

    assert_ok(PARSE(&rest, &err, "--scheduler-backfill-depth=3", "--image-cache-max", "1k"), &err);
    assert_int_equal(config.depth, 3);
    assert_int_equal(config.cache, 1024);
}

TEST(a_switch_can_be_turned_off)
{
    struct err err = ERR_INIT;
    int rest;

    assert_ok(PARSE(&rest, &err, "--no-api-tls", "--verbose"), &err);
    assert_false(config.tls);
    assert_true(config.verbose);
    assert_ok(PARSE(&rest, &err, "--api-tls=yes", "--verbose=no"), &err);
    assert_true(config.tls);
    assert_false(config.verbose);
}

TEST(short_options_take_values_and_stand_together)
{
    struct err err = ERR_INIT;
    int rest;

    assert_ok(PARSE(&rest, &err, "-vl", "a:1", "-hla:2"), &err);
    assert_true(config.verbose);
    assert_true(config.help);
    assert_string_equal(config.listen, "a:2");
    assert_int_equal(rest, 4);
}

TEST(a_list_on_the_line_replaces_the_one_of_the_file)
{
    struct err err = ERR_INIT;
    int rest;

    assert_ok(load("peers: [x, y]", &err), &err);
    assert_ok(PARSE(&rest, &err, "--peers", "1", "--peers=2"), &err);
    assert_peers("1,2");
}

TEST(a_mistake_on_the_line_is_told)
{
    struct err err;
    int rest = 77;

    assert_fails(PARSE(&rest, &err, "--lisen=a:1"), &err, -EINVAL,
        "unknown option '--lisen'; did you mean '--listen'?");
    assert_fails(PARSE(&rest, &err, "--scheduler-backfil-depth", "1"), &err, -EINVAL,
        "unknown option '--scheduler-backfil-depth'; did you mean '--scheduler-backfill-depth'?");
    assert_fails(PARSE(&rest, &err, "--no-listen"), &err, -EINVAL,
        "unknown option '--no-listen'; did you mean '--listen'?");
    assert_fails(PARSE(&rest, &err, "-x"), &err, -EINVAL, "unknown option '-x'");
    assert_fails(
        PARSE(&rest, &err, "--listen"), &err, -EINVAL, "--listen needs a value: HOST:PORT");
    assert_fails(PARSE(&rest, &err, "-l"), &err, -EINVAL, "-l needs a value: HOST:PORT");
    assert_fails(
        PARSE(&rest, &err, "--no-verbose=yes"), &err, -EINVAL, "--no-verbose takes no value");
    assert_fails(PARSE(&rest, &err, "--listen=x"), &err, -EINVAL, "--listen: 'x' has no port");
    assert_fails(
        PARSE(&rest, &err, "--verbose=x"), &err, -EINVAL, "--verbose: 'x' must be yes or no");
    assert_fails(PARSE(&rest, &err, "--scheduler-backfill-depth=18446744073709551616"), &err,
        -ERANGE, "--scheduler-backfill-depth: '18446744073709551616' is too large");
    assert_int_equal(rest, 77);
}

TEST(the_line_wins_over_the_file_and_the_file_over_the_default)
{
    struct err err = ERR_INIT;
    int rest = 0;

    unit_write("other.yaml", "grace: 1m\nlisten: file:1\npeers: [f]\n");
    assert_ok(READ("none", &rest, &err, "--config", "other.yaml", "-l", "line:1", "go"), &err);
    assert_int_equal(rest, 5);
    assert_string_equal(config.listen, "line:1");
    assert_int_equal(config.grace, 60 * USEC_PER_SEC);
    assert_peers("f");
    assert_int_equal(config.depth, 16);
    assert_string_equal(config.config_path, "other.yaml");
}

TEST(the_usual_file_may_be_missing_but_a_named_one_not)
{
    struct err err = ERR_INIT;
    int rest = 0;

    assert_ok(READ("none", &rest, &err, "-v"), &err);
    assert_true(config.verbose);
    assert_ok(READ(NULL, &rest, &err, "-v"), &err);
    unit_write("usual.yaml", "grace: 2m\n");
    assert_ok(READ("usual.yaml", &rest, &err, "-v"), &err);
    assert_int_equal(config.grace, 120 * USEC_PER_SEC);
    assert_fails(READ("usual.yaml", &rest, &err, "-c", "none"), &err, -ENOENT,
        "cannot open 'none': No such file or directory");
}

TEST(help_works_with_a_broken_file)
{
    struct err err = ERR_INIT;
    int rest = 0;

    unit_write("broken.yaml", "lisen: 1\n");
    assert_int_equal(READ("broken.yaml", &rest, NULL, "-v"), -EINVAL);
    assert_ok(READ("broken.yaml", &rest, &err, "--help"), &err);
    assert_true(config.help);
}

TEST(help_is_one_aligned_line_an_option)
{
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    opt_print_help(table, out);
    fclose(out);
    assert_string_equal(text,
        "  -h, --help                         show this\n"
        "  -c, --config PATH                  the file to read\n"
        "  -l, --listen HOST:PORT             where to listen (default: 0.0.0.0:7400)\n"
        "      --peers HOST                   the other managers (default: a,b)\n"
        "  -v, --verbose                      say more\n"
        "      --api-tls                      speak TLS (default: yes)\n"
        "      --scheduler-backfill-depth N   sessions looked at (default: 16)\n"
        "      --image-cache-max BYTES        kept images (default: 10G)\n"
        "      --grace TIME                   time to end\n");
}

#define OPT_TEST(name) cmocka_unit_test_setup_teardown(name, fresh, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPT_TEST(defaults_come_from_the_table),
        OPT_TEST(freeing_zeroes_the_members),
        OPT_TEST(a_file_nests_by_the_dots_of_the_names),
        OPT_TEST(a_dotted_name_in_the_file_is_the_same_option),
        OPT_TEST(an_empty_file_changes_nothing),
        OPT_TEST(a_list_in_the_file_may_be_one_value_or_none),
        OPT_TEST(an_empty_string_must_be_quoted),
        OPT_TEST(a_mistake_in_the_file_is_told_with_its_line),
        OPT_TEST(a_document_that_contains_itself_is_refused),
        OPT_TEST(a_missing_or_large_file_is_an_error),
        OPT_TEST(an_error_is_found_although_nobody_wants_its_text),
        OPT_TEST(the_line_is_read_up_to_the_first_other_word),
        OPT_TEST(dots_and_underscores_are_dashes_on_the_line),
        OPT_TEST(a_switch_can_be_turned_off),
        OPT_TEST(short_options_take_values_and_stand_together),
        OPT_TEST(a_list_on_the_line_replaces_the_one_of_the_file),
        OPT_TEST(a_mistake_on_the_line_is_told),
        OPT_TEST(the_line_wins_over_the_file_and_the_file_over_the_default),
        OPT_TEST(the_usual_file_may_be_missing_but_a_named_one_not),
        OPT_TEST(help_works_with_a_broken_file),
        OPT_TEST(help_is_one_aligned_line_an_option),
    };

    return cmocka_run_group_tests(tests, enter_dir, leave_dir);
}
