#include <signal.h>

#include "image/image.h"
#include "unit.h"

#define D "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define LAYER "{\"digest\":\"" D "\",\"size\":8192,\"diff_id\":\"" D "\"}"
#define LINE \
    "{\"type\":\"image\",\"id\":\"" D "\",\"name\":\"a:1\",\"layers\":[" LAYER \
    "],\"config\":{\"env\":[\"A=1\"],\"entrypoint\":[\"/e\"],\"cmd\":[\"c\",\"d\"]," \
    "\"workdir\":\"/w\",\"user\":\"u\",\"stop_signal\":\"SIGINT\"},\"size\":8192}"

static struct image *parse(void)
{
    struct image_line line;
    struct err err = ERR_INIT;

    assert_ok(image_line_parse(LINE, strlen(LINE), &line, &err), &err);
    assert_int_equal(line.type, IMAGE_LINE_IMAGE);
    return line.image;
}

TEST(the_workers_image_line_is_read)
{
    _cleanup_(image_freep) struct image *i = parse();

    assert_string_equal(i->id, D);
    assert_string_equal(i->name, "a:1");
    assert_int_equal(i->layer_count, 1);
    assert_string_equal(i->layers[0].digest, D);
    assert_int_equal(i->layers[0].size, 8192);
    assert_string_equal(i->env[0], "A=1");
    assert_string_equal(i->workdir, "/w");
    assert_string_equal(i->user, "u");
    assert_int_equal(i->stop_signal, SIGINT);
    assert_int_equal(i->size, 8192);
}

TEST(the_stored_form_comes_back_unchanged)
{
    _cleanup_(image_freep) struct image *i = parse(), *back = NULL;
    _cleanup_(json_decrefp) json_t *j = NULL, *again = NULL;
    struct err err = ERR_INIT;

    i->created_usec = 1;
    i->last_used_usec = UINT64_C(1) << 60;
    j = image_to_json(i);
    assert_ok(image_from_json(j, &back, &err), &err);
    again = image_to_json(back);
    assert_true(json_equal(j, again));
}

TEST(the_public_form_has_times_that_people_read)
{
    _cleanup_(image_freep) struct image *i = parse();
    _cleanup_(json_decrefp) json_t *j = NULL;

    i->created_usec = UINT64_C(1600000000000000);
    j = image_public_json(i);
    assert_string_equal(json_str_or(j, "created_at", ""), "2020-09-13T12:26:40.000000Z");
    assert_true(json_is_null(json_object_get(j, "last_used_at")));
    assert_int_equal(json_u64_or(j, "layers", 0), 1);
}

static void refuses(const char *text, const char *want)
{
    struct image_line line;
    struct err err = ERR_INIT;

    assert_true(image_line_parse(text, strlen(text), &line, &err) < 0);
    assert_string_equal(err.text, want);
}

TEST(lines_that_are_broken_are_refused)
{
    refuses("{}", "'type' is missing");
    refuses("{\"type\":\"x\"}", "a line of unknown type");
    refuses("{\"type\":\"image\",\"id\":\"x\"}",
        "image: 'id' must be sha256: and 64 hexadecimal digits");
    refuses("{\"type\":\"image\",\"id\":\"" D "\",\"layers\":[]}",
        "image: 'layers' must have 1 to 256 items");
    refuses("{\"type\":\"image\",\"id\":\"" D "\",\"layers\":[{\"digest\":\"../x\"}]}",
        "image: layer 1: 'digest' must be sha256: and 64 hexadecimal digits");
    refuses("{\"type\":\"image\",\"id\":\"" D "\",\"layers\":[" LAYER
            "],\"config\":{\"env\":[1]},\"size\":1}",
        "image: 'env' must be a list of strings");
}

TEST(progress_and_errors_are_read)
{
    static const char progress[] =
        "{\"type\":\"progress\",\"step\":\"unpack\",\"layer\":2,\"layers\":3,\"bytes\":99}";
    static const char error[] = "{\"type\":\"error\",\"text\":\"layer 2: no\"}";
    struct image_line line;
    struct err err = ERR_INIT;

    assert_ok(image_line_parse(progress, strlen(progress), &line, &err), &err);
    assert_int_equal(line.type, IMAGE_LINE_PROGRESS);
    assert_string_equal(line.step, "unpack");
    assert_int_equal(line.layer, 2);
    assert_int_equal(line.layers, 3);
    assert_int_equal(line.bytes, 99);
    assert_ok(image_line_parse(error, strlen(error), &line, &err), &err);
    assert_int_equal(line.type, IMAGE_LINE_ERROR);
    assert_string_equal(line.text, "layer 2: no");
}

static void command_is(const struct image *i, char *const *asked, bool train, const char *want)
{
    _cleanup_(strv_freep) char **words = NULL;
    _cleanup_free_ char *joined = NULL;
    struct err err = ERR_INIT;

    assert_ok(image_command(i, asked, train, &words, &err), &err);
    joined = words ? strv_join(words, "|") : xstrdup("(idle)");
    assert_string_equal(joined, want);
}

TEST(the_command_is_entrypoint_and_what_was_asked_or_cmd)
{
    _cleanup_(image_freep) struct image *i = parse();
    char *asked[] = {"x", "y z", NULL};

    command_is(i, asked, false, "/e|x|y z");
    command_is(i, asked, true, "/e|x|y z");
    command_is(i, NULL, true, "/e|c|d");
    command_is(i, NULL, false, "(idle)");
    assert_true(image_has_command(i));
}

TEST(an_image_without_a_command_cannot_train_without_one)
{
    _cleanup_(image_freep) struct image *i = image_new();
    char *asked[] = {"x", NULL}, **words = NULL;
    struct err err;

    STR_SET(i->name, "bare:1");
    assert_false(image_has_command(i));
    command_is(i, asked, true, "x");
    command_is(i, NULL, false, "(idle)");
    assert_fails(image_command(i, NULL, true, &words, &err), &err, -EINVAL,
        "image 'bare:1' has no command of its own; give one");
    assert_null(words);
}

static void signal_is(const char *text, uint32_t want)
{
    struct err err = ERR_INIT;
    uint32_t sig = 0;

    assert_ok(image_signal_parse(text, &sig, &err), &err);
    assert_int_equal(sig, want);
}

TEST(signals_are_names_or_numbers)
{
    char text[IMAGE_SIGNAL_TEXT_MAX];
    uint32_t sig;

    signal_is("SIGTERM", 15);
    signal_is("TERM", 15);
    signal_is("9", 9);
    signal_is("", 15);
    signal_is("SIGRTMIN+3", (uint32_t)SIGRTMIN + 3);
    assert_int_equal(image_signal_parse("0", &sig, NULL), -EINVAL);
    assert_int_equal(image_signal_parse("99", &sig, NULL), -EINVAL);
    assert_int_equal(image_signal_parse("SIGNO", &sig, NULL), -EINVAL);
    assert_string_equal(image_signal_format(15, text), "SIGTERM");
    image_signal_format((uint32_t)SIGRTMIN + 3, text);
    signal_is(text, (uint32_t)SIGRTMIN + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_workers_image_line_is_read),
        cmocka_unit_test(the_stored_form_comes_back_unchanged),
        cmocka_unit_test(the_public_form_has_times_that_people_read),
        cmocka_unit_test(lines_that_are_broken_are_refused),
        cmocka_unit_test(progress_and_errors_are_read),
        cmocka_unit_test(the_command_is_entrypoint_and_what_was_asked_or_cmd),
        cmocka_unit_test(an_image_without_a_command_cannot_train_without_one),
        cmocka_unit_test(signals_are_names_or_numbers),
    };

    return RUN_TESTS(tests);
}
