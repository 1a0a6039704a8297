/* From options to the body of POST /v1/sessions, and sending it. */
#include "cli/request.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/moment.h"
#include "cli/text.h"
#include "model/depend.h"
#include "model/session.h"

/* A number alone is bytes; below this nobody meant them. */
#define BARE_MIN ((uint64_t)1 << 20)

/* --- checks of single options ------------------------------------------------------------- */

int request_check_kind(const char *value, struct err *err)
{
    enum session_kind k;

    return session_kind_parse(value, &k) < 0 ? err_set(err, -EINVAL, "must be debug or train") : 0;
}

int request_check_mode(const char *value, struct err *err)
{
    enum session_mode m;

    return session_mode_parse(value, &m) < 0
        ? err_set(err, -EINVAL, "must be single-node or multi-node")
        : 0;
}

int request_check_on(const char *value, struct err *err)
{
    enum session_on on;

    return session_on_parse(value, &on) < 0 ? err_set(err, -EINVAL, "must be main or all") : 0;
}

int request_check_on_failure(const char *value, struct err *err)
{
    enum session_on_failure f;

    return session_on_failure_parse(value, &f) < 0
        ? err_set(err, -EINVAL, "must be strict or tolerant")
        : 0;
}

int request_check_size(const char *value, struct err *err)
{
    uint64_t n;

    if (str_to_u64(value, SESSION_SIZE_MAX, &n) < 0 || n == 0)
        return err_set(err, -EINVAL, "must be a number from 1 to %d", SESSION_SIZE_MAX);
    return 0;
}

/* As Slurm has it: "afterok:12:13,singleton" is afterok:12, afterok:13 and singleton. */
static int split_dependency(const char *value, json_t *list, struct err *err)
{
    _cleanup_(strv_freep) char **parts = strv_split(value, ',');
    int r = 0;

    strv_for_each (part, parts) {
        _cleanup_(strv_freep) char **words = strv_split(*part, ':');
        size_t n = strv_len(words);

        for (size_t i = n > 1; r == 0 && i < MAX_OF(n, (size_t)1); i++) {
            _cleanup_free_ char *one = n > 1 ? xasprintf("%s:%s", words[0], words[i])
                                             : xstrdup(*part);
            struct depend ignored;

            r = depend_parse(one, &ignored, err);
            json_array_append_new(list, json_string(one));
        }
    }
    return r;
}

int request_check_dependency(const char *value, struct err *err)
{
    _cleanup_(json_decrefp) json_t *list = json_array();

    return split_dependency(value, list, err);
}

/* "2", "2:on=exit,timeout" into body. */
static int set_retry(json_t *body, const char *value, struct err *err)
{
    size_t len = strcspn(value, ":");
    _cleanup_free_ char *number = xstrndup(value, len);
    _cleanup_(strv_freep) char **words = NULL;
    json_t *list = json_array();
    uint64_t n;
    uint32_t bit;

    json_object_set_new(body, "retry_on", list);
    if (str_to_u64(number, SESSION_RETRY_MAX, &n) < 0 ||
        (value[len] && !str_starts(value + len, ":on=")))
        return err_set(err, -EINVAL, "must be a number up to %d, or like 2:on=node-fail,timeout",
            SESSION_RETRY_MAX);
    json_set_u64(body, "retry", n);
    if (!value[len]) {
        json_object_del(body, "retry_on");
        return 0;
    }
    words = strv_split(value + len + 4, ',');
    strv_for_each (word, words) {
        if (session_retry_on_parse(*word, &bit) < 0)
            return err_set(err, -EINVAL, "'%s' is not node-fail, timeout or exit", *word);
        json_array_append_new(list, json_string(*word));
    }
    return 0;
}

int request_check_retry(const char *value, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object();

    return set_retry(body, value, err);
}

int request_check_qos(const char *value, struct err *err)
{
    enum session_qos ignored;

    return session_qos_parse(value, &ignored) == 0
        ? 0
        : err_set(err, -EINVAL, "must be low, normal or high");
}

/* "2", "2@30m"; *ret_wait: what is behind the "@", borrowed, or NULL. */
static int split_switches(const char *value, uint64_t *ret, const char **ret_wait)
{
    const char *at = strchr(value, '@');
    _cleanup_free_ char *number = xstrndup(value, at ? (size_t)(at - value) : strlen(value));

    *ret_wait = at ? at + 1 : NULL;
    return str_to_u64(number, UINT16_MAX, ret) == 0 && *ret > 0 ? 0 : -EINVAL;
}

int request_check_switches(const char *value, struct err *err)
{
    const char *wait;
    uint64_t n;

    if (split_switches(value, &n, &wait) < 0)
        return err_set(err, -EINVAL, "must be a number of switches, or like 1@30m");
    return wait ? request_check_time(wait, err) : 0;
}

int request_check_nice(const char *value, struct err *err)
{
    int64_t n;

    if (str_to_i64(value, -SESSION_NICE_MAX, SESSION_NICE_MAX, &n) < 0)
        return err_set(err, -EINVAL, "must be a whole number from -%d to %d", SESSION_NICE_MAX,
            SESSION_NICE_MAX);
    return 0;
}

int request_check_moment(const char *value, struct err *err)
{
    uint64_t ignored;

    return moment_parse(value, clock_real_usec(), &ignored, err);
}

int request_check_volume(const char *value, struct err *err)
{
    _cleanup_(json_decrefp) json_t *mount = NULL;

    return request_volume(value, &mount, err);
}

int request_check_cpus(const char *value, struct err *err)
{
    uint32_t milli;

    return cpus_parse(value, &milli, err);
}

int request_check_bytes(const char *value, struct err *err)
{
    uint64_t bytes;
    int r = size_parse(value, &bytes, err);

    if (r == 0 && bytes > 0 && bytes < BARE_MIN && value[strspn(value, "0123456789")] == '\0')
        r = err_set(err, -EINVAL, "'%s' is so many bytes; did you mean '%sG'?", value, value);
    return r;
}

int request_check_time(const char *value, struct err *err)
{
    uint64_t usec;

    return duration_parse(value, &usec, err);
}

/* --- the body ----------------------------------------------------------------------------- */

static int volume_malformed(const char *spec, struct err *err)
{
    _cleanup_free_ char *echo = str_escape(spec, strlen(spec), 100);

    return err_set(err, -EINVAL,
        "'%s' must be NAME[:PATH][:ro|rw] with an absolute PATH, as in data:/data:ro", echo);
}

int request_volume(const char *spec, json_t **ret, struct err *err)
{
    _cleanup_(strv_freep) char **parts = strv_split(spec, ':');
    size_t count = strv_len(parts), at = 1;
    _cleanup_free_ char *path = NULL;
    bool read_only = false;
    int r = name_check("a volume's name", count ? parts[0] : "", err);

    if (r < 0)
        return r;
    if (at < count && parts[at][0] == '/')
        path = xstrdup(parts[at++]);
    else
        path = xasprintf("/data/%s", parts[0]);
    if (at < count && (str_eq(parts[at], "ro") || str_eq(parts[at], "rw")))
        read_only = str_eq(parts[at++], "ro");
    if (at < count)
        return volume_malformed(spec, err);
    *ret = json_object();
    json_set_str(*ret, "volume", parts[0]);
    json_set_str(*ret, "path", path);
    json_set_bool(*ret, "read_only", read_only);
    return 0;
}

int request_env(json_t *env, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    _cleanup_free_ char *key = equals ? xstrndup(text, (size_t)(equals - text)) : xstrdup(text);
    const char *value = equals ? equals + 1 : getenv(key);

    if (!key[0])
        return err_set(err, -EINVAL, "--env: '%.80s' has no name", text);
    if (!value)
        return err_set(
            err, -EINVAL, "--env: %.80s is not set here; give a value: %.80s=VALUE", key, key);
    if (!str_is_clean(key, strlen(key)))
        return err_set(err, -EINVAL, "--env: the name has characters that no name can have");
    if (json_object_set_new(env, key, json_string(value)) < 0)
        return err_set(err, -EINVAL, "--env: the value of %.80s is not UTF-8", key);
    return 0;
}

static void set_text(json_t *body, const char *key, const char *value)
{
    if (value)
        json_set_str(body, key, value);
}

/* It was checked when the option was read. */
static void set_moment(json_t *body, const char *key, const char *value)
{
    char text[CLOCK_TEXT_MAX];
    uint64_t usec;

    if (value && moment_parse(value, clock_real_usec(), &usec, NULL) == 0)
        json_set_str(body, key, clock_format(usec, text));
}

static void set_switches(json_t *body, const char *value)
{
    const char *wait;
    uint64_t n;

    if (!value || split_switches(value, &n, &wait) < 0)
        return;
    json_set_u64(body, "switches", n);
    set_text(body, "switch_wait", wait);
}

static void set_plain(const struct request_opts *o, json_t *body)
{
    int64_t nice;

    set_text(body, "name", o->name);
    set_text(body, "kind", o->kind);
    set_text(body, "mode", o->mode);
    set_text(body, "cpus", o->cpus);
    set_text(body, "mem", o->mem);
    set_text(body, "gpu_model", o->gpu_model);
    set_text(body, "shm", o->shm);
    set_text(body, "group", o->group);
    set_text(body, "time_limit", o->time);
    set_text(body, "grace", o->grace);
    set_text(body, "on", o->on);
    set_text(body, "on_failure", o->on_failure);
    set_text(body, "workdir", o->workdir);
    if (o->dependency) {
        json_t *list = json_array();
        json_object_set_new(body, "depends", list);
        (void)split_dependency(o->dependency, list, NULL);
    }
    set_text(body, "account", o->account);
    set_text(body, "qos", o->qos);
    if (o->retry)
        (void)set_retry(body, o->retry, NULL);
    if (o->spot)
        json_set_bool(body, "spot", true);
    if (o->requeue)
        json_set_bool(body, "requeue", true);
    set_switches(body, o->switches);
    set_moment(body, "begin", o->begin);
    set_moment(body, "finish_by", o->deadline);
    if (o->nice && str_to_i64(o->nice, INT64_MIN, INT64_MAX, &nice) == 0)
        json_object_set_new(body, "nice", json_integer(nice));
    if (o->hold)
        json_set_bool(body, "hold", true);
    if (o->size)
        json_set_u64(body, "size", o->size);
    if (o->gpus)
        json_set_u64(body, "gpus", o->gpus);
}

static int set_lists(const struct request_opts *o, json_t *body, struct err *err)
{
    json_t *mounts = json_array(), *env = json_object();
    char **volumes = o->volumes, **variables = o->env;
    int r = 0;

    json_object_set_new(body, "mounts", mounts);
    json_object_set_new(body, "env", env);
    strv_for_each (spec, volumes) {
        json_t *mount = NULL;
        r = r < 0 ? r : request_volume(*spec, &mount, err);
        if (mount)
            json_array_append_new(mounts, mount);
    }
    strv_for_each (text, variables)
        r = r < 0 ? r : request_env(env, *text, err);
    return r;
}

int request_body(
    const struct request_opts *o, int count, char **words, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object();
    json_t *command = json_array();
    int first = count > 1 && str_eq(words[1], "--") ? 2 : 1, r;

    json_set_str(body, "image", words[0]);
    set_plain(o, body);
    json_object_set_new(body, "command", command);
    for (int i = first; i < count; i++)
        if (json_array_append_new(command, json_string(words[i])) < 0)
            return err_set(err, -EINVAL, "word %d of the command is not UTF-8", i - first + 1);
    r = set_lists(o, body, err);
    if (r == 0)
        *ret = TAKE_PTR(body);
    return r;
}

/* --- sending ------------------------------------------------------------------------------ */

static int show_dry_run(struct cli *cli, const json_t *found)
{
    bool possible = json_bool_or(found, "possible", false);
    const json_t *c;
    size_t i;

    if (cli->json) {
        api_print(cli, found);
        return possible ? EXIT_OK : EXIT_FAILED;
    }
    _cleanup_free_ char *message = text_member(found, "message");
    printf("%s: %s\n",
        !possible                                ? "never"
            : json_bool_or(found, "fits", false) ? "now"
                                                 : "later",
        message);
    if (!json_bool_or(found, "fits", false) && json_u64_or(found, "largest", 0) > 0)
        printf("  the largest size that %s is %llu\n", possible ? "fits now" : "could run",
            (unsigned long long)json_u64_or(found, "largest", 0));
    if (json_is_string(json_object_get(found, "planned_start"))) {
        _cleanup_free_ char *start = text_time(found, "planned_start", cli->utc);
        printf("  it would start at %s at the latest\n", start);
    }
    json_array_foreach (json_object_get(found, "placement"), i, c) {
        _cleanup_free_ char *name = text_member(c, "name"), *node = text_member(c, "node");
        _cleanup_free_ char *gpus = text_numbers(json_object_get(c, "gpus"));
        printf("  %s on %s%s%s\n", name, node, gpus[0] ? ", GPU " : "", gpus);
    }
    return possible ? EXIT_OK : EXIT_FAILED;
}

int request_send(
    struct cli *cli, const struct request_opts *o, int count, char **words, json_t **ret_session)
{
    _cleanup_(json_decrefp) json_t *body = NULL, *answer = NULL;
    char key[UUID_TEXT_LEN + 1];
    struct err err = ERR_INIT;
    int r = request_body(o, count, words, &body, &err);

    if (r < 0)
        return cli_usage(cli, "%s", err_text(&err));
    if (o->dry_run) {
        r = api_call(cli, "POST", "/v1/sessions?dry_run=1", body, &answer, &err);
        return r < 0 ? cli_fail(cli, &err) : show_dry_run(cli, answer);
    }
    uuid_make(key);
    r = api_post_once(cli, "/v1/sessions", key, body, ret_session, &err);
    if (r < 0)
        return cli_fail(cli, &err);
    if (!o->volumes)
        cli_warn("no volume is mounted: what is written in the containers goes with them "
                 "(--volume NAME)");
    return CLI_GO_ON;
}
