/*
 * The body of POST /v1/sessions: one row a member. Forms are checked here, with texts that say what
 * to write instead; sense is model's session_request_check.
 */
#include <math.h>

#include "base/clock.h"
#include "base/strv.h"
#include "model/depend.h"
#include "model/node.h"
#include "wire/session.h"
#include "wire/suggest.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define CPUS_MIN 0.01
#define CPUS_MAX 4096.0
#define ENTRY_BYTES_MAX (128 * 1024) /* of a word or variable; execve(2) takes no longer one */

/* Members whose default hangs on others: "not said" until the end. */
#define KIND_UNSAID KIND_COUNT
#define USEC_UNSAID UINT64_MAX
#define SHM_UNSAID UINT64_MAX

typedef int (*read_fn)(const char *key, const json_t *v, struct session *s, struct err *err);

/* Text of bounded length into an array. */
static int read_text(const char *key, const json_t *v, char *dst, size_t size, struct err *err)
{
    const char *s = json_string_value(v);

    if (!s)
        return err_set(err, -EINVAL, "'%s' must be a string", key);
    if (strlen(s) != json_string_length(v) || str_copy(dst, size, s) < 0)
        return err_set(err, -EINVAL, "'%s' must be a string of at most %zu bytes", key, size - 1);
    return 0;
}

static int read_count(
    const char *key, const json_t *v, uint32_t min, uint32_t max, uint32_t *ret, struct err *err)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < min || n > max)
        return err_set(err, -EINVAL, "'%s' must be a whole number from %u to %u", key, min, max);
    *ret = (uint32_t)n;
    return 0;
}

static int read_bytes(const char *key, const json_t *v, uint64_t *ret, struct err *err)
{
    json_int_t n = json_integer_value(v);
    struct err why = ERR_INIT;

    if (json_is_integer(v) && n >= 0) {
        *ret = (uint64_t)n;
        return 0;
    }
    if (!json_is_string(v))
        return err_set(
            err, -EINVAL, "'%s' must be a number of bytes, or a string like \"4G\"", key);
    if (size_parse(json_string_value(v), ret, &why) < 0)
        return err_set(err, -EINVAL, "'%s': %s", key, err_text(&why));
    return 0;
}

static int read_time(const char *key, const json_t *v, uint64_t *ret, struct err *err)
{
    const double most = 10.0 * 365 * 86400;
    double seconds = json_number_value(v);
    struct err why = ERR_INIT;

    if (json_is_number(v) && seconds >= 0 && seconds <= most) {
        *ret = (uint64_t)llround(seconds * (double)USEC_PER_SEC);
        return 0;
    }
    if (!json_is_string(v))
        return err_set(err, -EINVAL,
            "'%s' must be a number of seconds up to 10 years, or a string like \"8h\"", key);
    if (duration_parse(json_string_value(v), ret, &why) < 0)
        return err_set(err, -EINVAL, "'%s': %s", key, err_text(&why));
    return 0;
}

static int bad_word(const char *key, const char *one, const char *other, struct err *err)
{
    return err_set(err, -EINVAL, "'%s' must be \"%s\" or \"%s\"", key, one, other);
}

static int read_name(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_text(key, v, s->name, sizeof(s->name), err);
}

static int read_kind(const char *key, const json_t *v, struct session *s, struct err *err)
{
    if (session_kind_parse(json_string_value(v), &s->kind) < 0)
        return bad_word(key, "debug", "train", err);
    return 0;
}

static int read_size(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_count(key, v, 1, SESSION_SIZE_MAX, &s->size, err);
}

static int read_mode(const char *key, const json_t *v, struct session *s, struct err *err)
{
    if (session_mode_parse(json_string_value(v), &s->mode) < 0)
        return bad_word(key, "single-node", "multi-node", err);
    return 0;
}

static int read_cpus(const char *key, const json_t *v, struct session *s, struct err *err)
{
    double n = json_number_value(v);

    if (json_is_number(v) && n >= CPUS_MIN && n <= CPUS_MAX) {
        s->each.cpu_milli = (uint32_t)lround(n * 1000);
        return 0;
    }
    if (json_is_string(v) && cpus_parse(json_string_value(v), &s->each.cpu_milli, NULL) == 0)
        return 0;
    return err_set(
        err, -EINVAL, "'%s' must be a number from 0.01 to 4096, like 2, 0.5 or \"1500m\"", key);
}

static int read_mem(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_bytes(key, v, &s->each.mem, err);
}

static int read_gpus(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_count(key, v, 0, NODE_GPUS_MAX, &s->each.gpus, err);
}

/* People write "H100"; models are kept in lower case. */
static int read_gpu_model(const char *key, const json_t *v, struct session *s, struct err *err)
{
    int r = read_text(key, v, s->gpu_model, sizeof(s->gpu_model), err);

    for (char *p = s->gpu_model; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    return r;
}

static int read_shm(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_bytes(key, v, &s->shm, err);
}

static int read_group(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_text(key, v, s->group, sizeof(s->group), err);
}

static int read_image(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_text(key, v, s->image, sizeof(s->image), err);
}

static int read_command(const char *key, const json_t *v, struct session *s, struct err *err)
{
    json_t *word;
    size_t i;

    if (!json_is_array(v))
        return err_set(err, -EINVAL,
            "'%s' must be a list of words, like [\"python\", \"train.py\"] (a shell line is "
            "[\"sh\", \"-c\", \"...\"])",
            key);
    if (json_array_size(v) > SESSION_COMMAND_MAX)
        return err_set(err, -EINVAL, "'%s' has %zu words; at most %d are taken", key,
            json_array_size(v), SESSION_COMMAND_MAX);
    json_array_foreach (v, i, word) {
        if (!json_is_string(word) || json_string_length(word) > ENTRY_BYTES_MAX ||
            strlen(json_string_value(word)) != json_string_length(word))
            return err_set(err, -EINVAL, "'%s[%zu]' must be a string of at most 128 KiB", key, i);
        strv_push(&s->command, json_string_value(word));
    }
    return 0;
}

static int read_env(const char *key, const json_t *v, struct session *s, struct err *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(v))
        return err_set(err, -EINVAL, "'%s' must be an object like {\"NAME\": \"value\"}", key);
    if (json_object_size(v) > SESSION_ENV_MAX)
        return err_set(err, -EINVAL, "'%s' has %zu variables; at most %d are taken", key,
            json_object_size(v), SESSION_ENV_MAX);
    json_object_foreach ((json_t *)v, name, value) {
        _cleanup_free_ char *shown = str_escape(name, strlen(name), 64);

        if (!name[0] || strchr(name, '='))
            return err_set(err, -EINVAL, "'%s' has a bad name '%s'", key, shown);
        if (!json_is_string(value) || json_string_length(value) > ENTRY_BYTES_MAX ||
            strlen(json_string_value(value)) != json_string_length(value))
            return err_set(err, -EINVAL,
                "'%s': the value of '%s' must be a string of at most 128 KiB", key, shown);
        strv_pushf(&s->env, "%s=%s", name, json_string_value(value));
    }
    return 0;
}

static int read_workdir(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_text(key, v, s->workdir, sizeof(s->workdir), err);
}

static int refuse_unknown_in_mount(const json_t *v, struct err *err)
{
    static const char *const known[] = {"volume", "path", "read_only"};
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)v, key, value) {
        if (!str_eq(key, "volume") && !str_eq(key, "path") && !str_eq(key, "read_only"))
            return suggest_unknown(key, known, ARRAY_LEN(known), err);
    }
    return 0;
}

static int read_mount(const json_t *v, struct session_mount *m, struct err *err)
{
    const json_t *read_only = json_object_get(v, "read_only");
    int r;

    if (!json_is_object(v))
        return err_set(err, -EINVAL, "must be an object like {\"volume\": ..., \"path\": ...}");
    r = refuse_unknown_in_mount(v, err);
    if (r >= 0)
        r = read_text("volume", json_object_get(v, "volume"), m->volume, sizeof(m->volume), err);
    if (r >= 0)
        r = read_text("path", json_object_get(v, "path"), m->path, sizeof(m->path), err);
    if (r < 0)
        return r;
    if (read_only && !json_is_null(read_only) && !json_is_boolean(read_only))
        return err_set(err, -EINVAL, "'read_only' must be true or false");
    m->read_only = json_is_true(read_only);
    return 0;
}

static int read_mounts(const char *key, const json_t *v, struct session *s, struct err *err)
{
    json_t *entry;
    size_t i;
    int r;

    if (!json_is_array(v) || json_array_size(v) > SESSION_MOUNTS_MAX)
        return err_set(
            err, -EINVAL, "'%s' must be a list of at most %d mounts", key, SESSION_MOUNTS_MAX);
    s->mounts = xnew_array(struct session_mount, json_array_size(v));
    s->mount_count = (uint32_t)json_array_size(v);
    json_array_foreach (v, i, entry) {
        r = read_mount(entry, &s->mounts[i], err);
        if (r < 0) {
            err_prefix(err, "%s[%zu]", key, i);
            return r;
        }
    }
    return 0;
}

static int read_time_limit(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_time(key, v, &s->time_limit_usec, err);
}

static int read_grace(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_time(key, v, &s->grace_usec, err);
}

static int read_on(const char *key, const json_t *v, struct session *s, struct err *err)
{
    if (session_on_parse(json_string_value(v), &s->on) < 0)
        return bad_word(key, "main", "all", err);
    return 0;
}

static int read_on_failure(const char *key, const json_t *v, struct session *s, struct err *err)
{
    if (session_on_failure_parse(json_string_value(v), &s->on_failure) < 0)
        return bad_word(key, "strict", "tolerant", err);
    return 0;
}

static int read_depends(const char *key, const json_t *v, struct session *s, struct err *err)
{
    const json_t *one;
    size_t i;

    if (!json_is_array(v) || json_array_size(v) > DEPENDS_MAX)
        return err_set(
            err, -EINVAL, "'%s' must be a list of at most %d dependencies", key, DEPENDS_MAX);
    json_array_foreach (v, i, one) {
        const char *text = json_string_value(one);
        struct depend ignored;
        int r = depend_parse(text ? text : "", &ignored, err);

        if (r < 0)
            return err_prefix(err, "'%s'", key);
        strv_push(&s->depends, text);
    }
    return 0;
}

static int read_account(const char *key, const json_t *v, struct session *s, struct err *err)
{
    const char *text = json_string_value(v);

    if (!text || name_check(key, text, NULL) < 0)
        return err_set(err, -EINVAL, "'%s' must be the name of an account", key);
    STR_SET(s->account, text);
    return 0;
}

static int read_qos(const char *key, const json_t *v, struct session *s, struct err *err)
{
    if (session_qos_parse(json_string_value(v), &s->qos) < 0)
        return err_set(err, -EINVAL, "'%s' must be low, normal or high", key);
    return 0;
}

static int read_flag(const char *key, const json_t *v, bool *ret, struct err *err)
{
    if (!json_is_boolean(v))
        return err_set(err, -EINVAL, "'%s' must be true or false", key);
    *ret = json_is_true(v);
    return 0;
}

static int read_retry(const char *key, const json_t *v, struct session *s, struct err *err)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < 0 || n > SESSION_RETRY_MAX)
        return err_set(err, -EINVAL, "'%s' must be a number up to %d", key, SESSION_RETRY_MAX);
    s->retry_max = (uint32_t)n;
    if (!s->retry_on)
        s->retry_on = RETRY_ALL;
    return 0;
}

static int read_retry_on(const char *key, const json_t *v, struct session *s, struct err *err)
{
    const json_t *one;
    size_t i;

    s->retry_on = 0;
    json_array_foreach (v, i, one) {
        uint32_t bit;

        if (session_retry_on_parse(json_string_value(one), &bit) < 0)
            break;
        s->retry_on |= bit;
    }
    if (!json_is_array(v) || i < json_array_size(v) || !s->retry_on)
        return err_set(err, -EINVAL, "'%s' must be a list of node-fail, timeout and exit", key);
    return 0;
}

static int read_spot(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_flag(key, v, &s->spot, err);
}

static int read_requeue(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_flag(key, v, &s->requeue, err);
}

static int read_switches(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_count(key, v, 1, UINT16_MAX, &s->switches, err);
}

static int read_switch_wait(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_time(key, v, &s->switch_wait_usec, err);
}

static int read_nice(const char *key, const json_t *v, struct session *s, struct err *err)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < -SESSION_NICE_MAX || n > SESSION_NICE_MAX)
        return err_set(err, -EINVAL, "'%s' must be a whole number from -%d to %d", key,
            SESSION_NICE_MAX, SESSION_NICE_MAX);
    s->nice = (int)n;
    return 0;
}

static int read_hold(const char *key, const json_t *v, struct session *s, struct err *err)
{
    if (!json_is_boolean(v))
        return err_set(err, -EINVAL, "'%s' must be true or false", key);
    s->hold = json_is_true(v) ? HOLD_USER : HOLD_NONE;
    return 0;
}

static int read_moment(const char *key, const json_t *v, uint64_t *ret, struct err *err)
{
    const char *text = json_string_value(v);

    if (!text || clock_parse(text, ret, NULL) < 0)
        return err_set(
            err, -EINVAL, "'%s' must be a time like \"2026-12-24T18:00:00Z\" (RFC 3339)", key);
    return 0;
}

static int read_begin(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_moment(key, v, &s->begin_usec, err);
}

static int read_finish(const char *key, const json_t *v, struct session *s, struct err *err)
{
    return read_moment(key, v, &s->finish_usec, err);
}

static const struct member {
    const char *key;
    read_fn read;
} members[] = {
    {"name", read_name},
    {"kind", read_kind},
    {"size", read_size},
    {"mode", read_mode},
    {"cpus", read_cpus},
    {"mem", read_mem},
    {"gpus", read_gpus},
    {"gpu_model", read_gpu_model},
    {"shm", read_shm},
    {"group", read_group},
    {"image", read_image},
    {"command", read_command},
    {"env", read_env},
    {"workdir", read_workdir},
    {"mounts", read_mounts},
    {"time_limit", read_time_limit},
    {"grace", read_grace},
    {"on", read_on},
    {"on_failure", read_on_failure},
    {"depends", read_depends},
    {"account", read_account},
    {"qos", read_qos},
    {"retry", read_retry},
    {"retry_on", read_retry_on},
    {"spot", read_spot},
    {"requeue", read_requeue},
    {"switches", read_switches},
    {"switch_wait", read_switch_wait},
    {"nice", read_nice},
    {"hold", read_hold},
    {"begin", read_begin},
    {"finish_by", read_finish},
};

static const struct member *member_find(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (str_eq(members[i].key, key))
            return &members[i];
    return NULL;
}

static int refuse_member(const char *key, struct err *err)
{
    const char *known[ARRAY_LEN(members)];

    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        known[i] = members[i].key;
    return suggest_unknown(key, known, ARRAY_LEN(known), err);
}

static int read_members(const json_t *body, struct session *s, struct err *err)
{
    const char *key;
    json_t *value;
    int r;

    json_object_foreach ((json_t *)body, key, value) {
        const struct member *m = member_find(key);

        if (!m)
            return refuse_member(key, err);
        if (json_is_null(value))
            continue;
        r = m->read(key, value, s, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void set_defaults(struct session *s)
{
    s->kind = KIND_UNSAID;
    s->size = 1;
    s->switch_wait_usec = SESSION_SWITCH_WAIT_USEC;
    s->qos = QOS_NORMAL;
    s->mode = MODE_MULTI_NODE;
    s->each = (struct resources){.cpu_milli = 1000, .mem = 2 * GIB};
    s->shm = SHM_UNSAID;
    STR_SET(s->group, "default");
    s->grace_usec = USEC_UNSAID;
    s->on = ON_MAIN;
    s->on_failure = FAIL_STRICT;
}

static void settle_defaults(struct session *s)
{
    if (s->kind == KIND_UNSAID)
        s->kind = s->command ? KIND_TRAIN : KIND_DEBUG;
    if (s->shm == SHM_UNSAID)
        s->shm = MIN_OF(64 * MIB, s->each.mem);
    if (s->grace_usec == USEC_UNSAID)
        s->grace_usec = (s->kind == KIND_TRAIN ? 30 : 10) * USEC_PER_SEC;
}

int session_request_from_json(const json_t *body, struct session *ret, struct err *err)
{
    _cleanup_(session_freep) struct session *s = session_new();
    struct session old;
    int r;

    if (!json_is_object(body))
        return err_set(err, -EINVAL, "the body must be a JSON object");
    set_defaults(s);
    r = read_members(body, s, err);
    if (r < 0)
        return r;
    if (!s->image[0])
        return err_set(err, -EINVAL, "'image' is missing: name the image to run");
    settle_defaults(s);
    old = *ret; /* what was in it goes with s */
    *ret = *s;
    *s = old;
    return 0;
}
