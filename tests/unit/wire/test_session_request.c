/* The body of POST /v1/sessions: defaults, every form of a value, and what a mistake is answered.
 */
#include "base/strv.h"
#include "support/cm.h"
#include "wire/session.h"

#define SECOND UINT64_C(1000000)

static int request(const char *text, struct session *s, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL;
    int r = json_parse(text, strlen(text), 1 << 20, &body, err);

    return r < 0 ? r : session_request_from_json(body, s, err);
}

static struct session *take(const char *text)
{
    struct session *s = session_new();

    assert_works(request(text, s, &err));
    assert_works(session_request_check(s, false, &err));
    return s;
}

#define REFUSED(body, want) \
    do { \
        _cleanup_(session_freep) struct session *refused = session_new(); \
        assert_fails(request(body, refused, &err), -EINVAL, want); \
        assert_string_equal(refused->image, ""); \
        assert_int_equal(refused->size, 0); \
    } while (0)

static void an_image_is_all_that_must_be_said(void **state)
{
    _cleanup_(session_freep) struct session *s = take("{\"image\": \"base\"}");

    assert_string_equal(s->image, "base");
    assert_string_equal(s->name, "");
    assert_int_equal(s->kind, KIND_DEBUG);
    assert_int_equal(s->size, 1);
    assert_int_equal(s->mode, MODE_MULTI_NODE);
    assert_int_equal(s->each.cpu_milli, 1000);
    assert_int_equal(s->each.mem, UINT64_C(2) << 30);
    assert_int_equal(s->each.gpus, 0);
    assert_int_equal(s->shm, 64 << 20);
    assert_string_equal(s->group, "default");
    assert_null(s->command);
    assert_null(s->env);
    assert_int_equal(s->time_limit_usec, 0);
    assert_int_equal(s->grace_usec, 10 * SECOND);
    assert_int_equal(s->on, ON_MAIN);
    assert_int_equal(s->on_failure, FAIL_STRICT);
    REFUSED("{}", "'image' is missing: name the image to run");
    REFUSED("[]", "the body must be a JSON object");
}

static void a_command_makes_it_a_train_session(void **state)
{
    _cleanup_(session_freep) struct session *s = take(
        "{\"image\": \"base\", \"command\": [\"python\", \"x.py\"]}");
    _cleanup_(session_freep) struct session *debug = take(
        "{\"image\": \"base\", \"command\": [\"python\"], \"kind\": \"debug\"}");
    _cleanup_(session_freep) struct session *none = take("{\"image\": \"base\", \"command\": []}");

    assert_int_equal(s->kind, KIND_TRAIN);
    assert_int_equal(s->grace_usec, 30 * SECOND);
    assert_int_equal(strv_len(s->command), 2);
    assert_int_equal(debug->kind, KIND_DEBUG);
    assert_int_equal(debug->grace_usec, 10 * SECOND);
    assert_int_equal(none->kind, KIND_DEBUG);
    assert_null(none->command);
}

static void everything_can_be_said(void **state)
{
    _cleanup_(session_freep) struct session *s = take(
        "{\"name\": \"t\", \"kind\": \"train\", \"size\": 8, \"mode\": \"single-node\", \"cpus\": "
        "0.5,"
        " \"mem\": \"4G\", \"gpus\": 2, \"gpu_model\": \"H100\", \"shm\": 1048576, \"group\": "
        "\"big\","
        " \"image\": \"torch\", \"command\": [\"true\"], \"env\": {\"A\": \"1=2\", \"B\": \"\"},"
        " \"workdir\": \"/w\", \"mounts\": [{\"volume\": \"v\", \"path\": \"/v\"},"
        " {\"volume\": \"r\", \"path\": \"/r\", \"read_only\": true}], \"time_limit\": "
        "\"1-00:00:00\","
        " \"grace\": 2.5, \"on\": \"all\", \"on_failure\": \"tolerant\"}");

    assert_string_equal(s->name, "t");
    assert_int_equal(s->size, 8);
    assert_int_equal(s->mode, MODE_SINGLE_NODE);
    assert_int_equal(s->each.cpu_milli, 500);
    assert_int_equal(s->each.mem, UINT64_C(4) << 30);
    assert_int_equal(s->each.gpus, 2);
    assert_string_equal(s->gpu_model, "h100");
    assert_int_equal(s->shm, 1 << 20);
    assert_string_equal(s->env[0], "A=1=2");
    assert_string_equal(s->env[1], "B=");
    assert_string_equal(s->workdir, "/w");
    assert_int_equal(s->mount_count, 2);
    assert_false(s->mounts[0].read_only);
    assert_true(s->mounts[1].read_only);
    assert_int_equal(s->time_limit_usec, 86400 * SECOND);
    assert_int_equal(s->grace_usec, 2500000);
    assert_int_equal(s->on, ON_ALL);
    assert_int_equal(s->on_failure, FAIL_TOLERANT);
}

static void what_the_scheduler_is_asked_for_is_read(void **state)
{
    _cleanup_(session_freep) struct session *s = take(
        "{\"image\": \"base\", \"nice\": -5, \"hold\": true, \"begin\": "
        "\"2026-12-24T18:00:00+09:00\", \"finish_by\": "
        "\"2026-12-25T00:00:00Z\", \"gpus\": 1, \"gpu_model\": \"A100|H100\"}");

    assert_int_equal(s->nice, -5);
    assert_int_equal(s->hold, HOLD_USER);
    assert_int_equal(s->begin_usec, UINT64_C(1798102800) * SECOND);
    assert_int_equal(s->finish_usec, UINT64_C(1798156800) * SECOND);
    assert_string_equal(s->gpu_model, "a100|h100");
    REFUSED("{\"nice\": 1.5}", "'nice' must be a whole number from -100000 to 100000");
    REFUSED("{\"nice\": 100001}", "'nice' must be a whole number from -100000 to 100000");
    REFUSED("{\"hold\": 1}", "'hold' must be true or false");
    REFUSED("{\"begin\": \"tomorrow\"}",
        "'begin' must be a time like \"2026-12-24T18:00:00Z\" (RFC 3339)");
}

static void null_is_as_if_it_were_not_said(void **state)
{
    _cleanup_(session_freep) struct session *s = take(
        "{\"image\": \"base\", \"name\": null, \"size\": null, \"command\": null, \"shm\": null}");

    assert_int_equal(s->size, 1);
    assert_int_equal(s->shm, 64 << 20);
}

static void little_memory_means_little_shm(void **state)
{
    _cleanup_(session_freep) struct session *s = take("{\"image\": \"base\", \"mem\": \"32M\"}");

    assert_int_equal(s->shm, 32 << 20);
}

static void an_unknown_member_is_refused_with_a_suggestion(void **state)
{
    REFUSED("{\"imgae\": \"base\"}", "unknown member 'imgae'; did you mean 'image'?");
    REFUSED("{\"image\": \"b\", \"gpu\": 1}", "unknown member 'gpu'; did you mean 'gpus'?");
    REFUSED("{\"image\": \"b\", \"timelimit\": 1}",
        "unknown member 'timelimit'; did you mean 'time_limit'?");
    REFUSED("{\"image\": \"b\", \"priority\": 1}", "unknown member 'priority'");
    REFUSED("{\"image\": \"b\", \"mounts\": [{\"volume\": \"v\", \"path\": \"/v\", \"readonly\": "
            "true}]}",
        "mounts[0]: unknown member 'readonly'; did you mean 'read_only'?");
    REFUSED("{\"\\u001b[2J\": 1}", "unknown member '\\x1b[2J'");
}

static void bad_values_are_answered_with_what_to_write(void **state)
{
    REFUSED("{\"size\": 0}", "'size' must be a whole number from 1 to 1000");
    REFUSED("{\"size\": \"2\"}", "'size' must be a whole number from 1 to 1000");
    REFUSED("{\"size\": 1.5}", "'size' must be a whole number from 1 to 1000");
    REFUSED("{\"gpus\": -1}", "'gpus' must be a whole number from 0 to 64");
    REFUSED("{\"kind\": \"batch\"}", "'kind' must be \"debug\" or \"train\"");
    REFUSED("{\"kind\": 1}", "'kind' must be \"debug\" or \"train\"");
    REFUSED("{\"mode\": \"multi\"}", "'mode' must be \"single-node\" or \"multi-node\"");
    REFUSED("{\"on\": \"sub\"}", "'on' must be \"main\" or \"all\"");
    REFUSED("{\"on_failure\": \"x\"}", "'on_failure' must be \"strict\" or \"tolerant\"");
    REFUSED("{\"cpus\": 0}", "'cpus' must be a number from 0.01 to 4096, like 2, 0.5 or \"1500m\"");
    REFUSED(
        "{\"cpus\": 1e300}", "'cpus' must be a number from 0.01 to 4096, like 2, 0.5 or \"1500m\"");
    REFUSED("{\"cpus\": \"two\"}",
        "'cpus' must be a number from 0.01 to 4096, like 2, 0.5 or \"1500m\"");
    REFUSED("{\"mem\": 1.5}", "'mem' must be a number of bytes, or a string like \"4G\"");
    REFUSED("{\"mem\": -1}", "'mem' must be a number of bytes, or a string like \"4G\"");
    REFUSED("{\"grace\": -1}",
        "'grace' must be a number of seconds up to 10 years, or a string like \"8h\"");
    REFUSED("{\"time_limit\": 1e300}",
        "'time_limit' must be a number of seconds up to 10 years, or a string like \"8h\"");
    REFUSED("{\"image\": 5}", "'image' must be a string");
    REFUSED("{\"env\": [\"A=1\"]}", "'env' must be an object like {\"NAME\": \"value\"}");
    REFUSED("{\"env\": {\"A\": 1}}", "'env': the value of 'A' must be a string of at most 128 KiB");
    REFUSED("{\"env\": {\"A=B\": \"1\"}}", "'env' has a bad name 'A=B'");
    REFUSED("{\"command\": \"python x.py\"}",
        "'command' must be a list of words, like [\"python\", \"train.py\"] (a shell line is "
        "[\"sh\", \"-c\", \"...\"])");
    REFUSED("{\"command\": [1]}", "'command[0]' must be a string of at most 128 KiB");
    REFUSED("{\"mounts\": {}}", "'mounts' must be a list of at most 64 mounts");
    REFUSED("{\"mounts\": [\"v\"]}",
        "mounts[0]: must be an object like {\"volume\": ..., \"path\": ...}");
    REFUSED("{\"mounts\": [{\"volume\": \"v\"}]}", "mounts[0]: 'path' must be a string");
    REFUSED("{\"mounts\": [{\"volume\": \"v\", \"path\": \"/v\", \"read_only\": 1}]}",
        "mounts[0]: 'read_only' must be true or false");
}

static void sizes_and_durations_explain_their_forms(void **state)
{
    _cleanup_(session_freep) struct session *s = session_new();
    struct err why = ERR_INIT;

    assert_int_equal(request("{\"mem\": \"4 apples\"}", s, &why), -EINVAL);
    assert_int_equal(strncmp(why.text, "'mem': ", 7), 0);
    assert_int_equal(request("{\"time_limit\": \"soon\"}", s, &why), -EINVAL);
    assert_int_equal(strncmp(why.text, "'time_limit': ", 14), 0);
}

static void a_text_that_is_too_long_is_refused(void **state)
{
    _cleanup_free_ char *long_text = xcalloc(1, 300), *body = NULL;

    memset(long_text, 'x', 256);
    body = xasprintf("{\"image\": \"%s\"}", long_text);
    REFUSED(body, "'image' must be a string of at most 255 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_all_that_must_be_said),
        cmocka_unit_test(a_command_makes_it_a_train_session),
        cmocka_unit_test(everything_can_be_said),
        cmocka_unit_test(what_the_scheduler_is_asked_for_is_read),
        cmocka_unit_test(null_is_as_if_it_were_not_said),
        cmocka_unit_test(little_memory_means_little_shm),
        cmocka_unit_test(an_unknown_member_is_refused_with_a_suggestion),
        cmocka_unit_test(bad_values_are_answered_with_what_to_write),
        cmocka_unit_test(sizes_and_durations_explain_their_forms),
        cmocka_unit_test(a_text_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
