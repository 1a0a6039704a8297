/*
 * Images as documents. Everything is read with bounds: the worker's lines are made from what an
 * image's author wrote. Text that the image brings (env, command words) may hold any character but
 * NUL; who shows it to a person escapes it.
 */
#include "image/image.h"

#include <signal.h>

#include "base/clock.h"

struct image *image_new(void)
{
    struct image *i = xnew(struct image);

    i->stop_signal = SIGTERM;
    return i;
}

void image_free(struct image *i)
{
    if (!i)
        return;
    free(i->layers);
    strv_free(i->env);
    strv_free(i->entrypoint);
    strv_free(i->cmd);
    free(i);
}

void image_freep(struct image **i)
{
    image_free(*i);
}

/* ---- signals ---- */

int image_signal_parse(const char *text, uint32_t *ret, struct err *err)
{
    const char *name = str_starts(text, "SIG") ? text + 3 : text;
    uint64_t number;

    if (str_is_empty(text)) {
        *ret = SIGTERM;
        return 0;
    }
    if (str_to_u64(text, (uint64_t)SIGRTMAX, &number) == 0 && number > 0) {
        *ret = (uint32_t)number;
        return 0;
    }
    for (int sig = 1; sig < NSIG; sig++) {
        if (str_eq(sigabbrev_np(sig), name)) {
            *ret = (uint32_t)sig;
            return 0;
        }
    }
    /* "RTMIN+3" is systemd's "halt", and what images that run systemd ask for. */
    if (str_starts(name, "RTMIN+") && str_to_u64(name + 6, 30, &number) == 0) {
        *ret = (uint32_t)(SIGRTMIN + (int)number);
        return 0;
    }
    return err_set(err, -EINVAL, "the image's stop signal is no signal");
}

char *image_signal_format(uint32_t sig, char text[IMAGE_SIGNAL_TEXT_MAX])
{
    const char *name = sig < NSIG ? sigabbrev_np((int)sig) : NULL;

    if (name)
        snprintf(text, IMAGE_SIGNAL_TEXT_MAX, "SIG%s", name);
    else
        snprintf(text, IMAGE_SIGNAL_TEXT_MAX, "%u", sig);
    return text;
}

/* ---- to JSON ---- */

static json_t *config_json(const struct image *i)
{
    char sig[IMAGE_SIGNAL_TEXT_MAX];
    json_t *config = json_object();

    json_set_strv(config, "env", i->env);
    json_set_strv(config, "entrypoint", i->entrypoint);
    json_set_strv(config, "cmd", i->cmd);
    json_set_str(config, "workdir", i->workdir);
    json_set_str(config, "user", i->user);
    json_set_str(config, "stop_signal", image_signal_format(i->stop_signal, sig));
    return config;
}

json_t *image_to_json(const struct image *i)
{
    json_t *j = json_object(), *layers = json_array();

    json_set_str(j, "id", i->id);
    json_set_str(j, "name", i->name);
    for (uint32_t n = 0; n < i->layer_count; n++) {
        json_t *layer = json_object();
        json_set_str(layer, "digest", i->layers[n].digest);
        json_set_u64(layer, "size", i->layers[n].size);
        json_array_append_new(layers, layer);
    }
    json_object_set_new(j, "layers", layers);
    json_object_set_new(j, "config", config_json(i));
    json_set_u64(j, "size", i->size);
    json_set_bool(j, "pinned", i->pinned);
    json_set_u64(j, "created_usec", i->created_usec);
    json_set_u64(j, "last_used_usec", i->last_used_usec);
    return j;
}

static void set_time(json_t *j, const char *key, uint64_t usec)
{
    char text[CLOCK_TEXT_MAX];

    json_set_str(j, key, usec ? clock_format(usec, text) : NULL);
}

json_t *image_public_json(const struct image *i)
{
    json_t *j = json_object();

    json_set_str(j, "id", i->id);
    json_set_str(j, "name", i->name);
    json_set_u64(j, "layers", i->layer_count);
    json_set_u64(j, "size", i->size);
    json_set_bool(j, "pinned", i->pinned);
    set_time(j, "created_at", i->created_usec);
    set_time(j, "last_used_at", i->last_used_usec);
    json_object_set_new(j, "config", config_json(i));
    return j;
}

/* ---- from JSON ---- */

static int read_strv(const json_t *obj, const char *key, size_t max, char ***ret, struct err *err)
{
    _cleanup_(strv_freep) char **v = NULL;
    json_t *arr, *item;
    size_t n;
    int r;

    r = json_get_arr(obj, key, &arr, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    if (json_array_size(arr) > max)
        return err_set(err, -EINVAL, "'%s' has more than %zu items", key, max);
    json_array_foreach (arr, n, item) {
        if (!json_is_string(item) || json_string_length(item) > IMAGE_TEXT_MAX)
            return err_set(err, -EINVAL, "'%s' must be a list of strings", key);
        strv_push(&v, json_string_value(item));
    }
    *ret = TAKE_PTR(v);
    return 0;
}

/* A member that may be missing, then "". */
static int read_text(const json_t *obj, const char *key, char *dst, size_t size, struct err *err)
{
    const char *s;
    int r;

    r = json_get_str(obj, key, &s, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    if (str_copy(dst, size, s) < 0)
        return err_set(err, -EINVAL, "'%s' is longer than %zu bytes", key, size - 1);
    return 0;
}

static int read_digest(const json_t *obj, const char *key, char *dst, struct err *err)
{
    const char *s;
    int r;

    r = json_get_str(obj, key, &s, err);
    if (r < 0)
        return r;
    if (!digest_is_valid(s))
        return err_set(err, -EINVAL, "'%s' must be sha256: and 64 hexadecimal digits", key);
    assert(str_copy(dst, DIGEST_TEXT_MAX, s) == 0);
    return 0;
}

static int read_config(const json_t *j, struct image *i, struct err *err)
{
    char sig[32] = "";
    json_t *config;
    int r;

    r = json_get_obj(j, "config", &config, err);
    if (r < 0)
        return r;
    if ((r = read_strv(config, "env", IMAGE_ENV_MAX, &i->env, err)) < 0 ||
        (r = read_strv(config, "entrypoint", IMAGE_WORDS_MAX, &i->entrypoint, err)) < 0 ||
        (r = read_strv(config, "cmd", IMAGE_WORDS_MAX, &i->cmd, err)) < 0 ||
        (r = read_text(config, "workdir", i->workdir, sizeof(i->workdir), err)) < 0 ||
        (r = read_text(config, "user", i->user, sizeof(i->user), err)) < 0 ||
        (r = read_text(config, "stop_signal", sig, sizeof(sig), err)) < 0)
        return r;
    return image_signal_parse(sig, &i->stop_signal, err);
}

static int read_layers(const json_t *j, struct image *i, struct err *err)
{
    json_t *layers, *layer;
    size_t n;
    int r;

    r = json_get_arr(j, "layers", &layers, err);
    if (r < 0)
        return r;
    if (json_array_size(layers) == 0 || json_array_size(layers) > IMAGE_LAYERS_MAX)
        return err_set(err, -EINVAL, "'layers' must have 1 to %d items", IMAGE_LAYERS_MAX);
    i->layers = xnew_array(struct assigned_layer, json_array_size(layers));
    json_array_foreach (layers, n, layer) {
        struct assigned_layer *l = &i->layers[i->layer_count++];
        if ((r = read_digest(layer, "digest", l->digest, err)) < 0 ||
            (r = json_get_u64(layer, "size", INT64_MAX, &l->size, err)) < 0)
            return err_prefix(err, "layer %zu", n + 1);
    }
    return 0;
}

int image_from_json(const json_t *j, struct image **ret, struct err *err)
{
    _cleanup_(image_freep) struct image *i = image_new();
    int r;

    if ((r = read_digest(j, "id", i->id, err)) < 0 ||
        (r = read_text(j, "name", i->name, sizeof(i->name), err)) < 0 ||
        (r = read_layers(j, i, err)) < 0 || (r = read_config(j, i, err)) < 0 ||
        (r = json_get_u64(j, "size", INT64_MAX, &i->size, err)) < 0)
        return err_prefix(err, "image");
    i->created_usec = json_u64_or(j, "created_usec", 0);
    i->pinned = json_bool_or(j, "pinned", false);
    i->last_used_usec = json_u64_or(j, "last_used_usec", 0);
    *ret = TAKE_PTR(i);
    return 0;
}

/* ---- the command ---- */

bool image_has_command(const struct image *i)
{
    return strv_len(i->entrypoint) + strv_len(i->cmd) > 0;
}

int image_command(
    const struct image *i, char *const *asked, bool train, char ***ret, struct err *err)
{
    char *const *tail = strv_len(asked) > 0 ? asked : i->cmd;
    char **words = NULL;

    if (strv_len(asked) == 0 && !train) {
        *ret = NULL;
        return 0;
    }
    for (char *const *s = i->entrypoint; s && *s; s++)
        strv_push(&words, *s);
    for (char *const *s = tail; s && *s; s++)
        strv_push(&words, *s);
    if (!words)
        return err_set(err, -EINVAL, "image '%s' has no command of its own; give one", i->name);
    *ret = words;
    return 0;
}

/* ---- the worker's lines ---- */

void image_line_done(struct image_line *l)
{
    image_free(l->image);
    l->image = NULL;
}

static int read_progress(const json_t *j, struct image_line *l, struct err *err)
{
    l->type = IMAGE_LINE_PROGRESS;
    l->layer = (uint32_t)MIN_OF(json_u64_or(j, "layer", 0), IMAGE_LAYERS_MAX);
    l->layers = (uint32_t)MIN_OF(json_u64_or(j, "layers", 0), IMAGE_LAYERS_MAX);
    l->bytes = json_u64_or(j, "bytes", 0);
    return read_text(j, "step", l->step, sizeof(l->step), err);
}

static int read_error(const json_t *j, struct image_line *l, struct err *err)
{
    const char *text;
    int r;

    r = json_get_str(j, "text", &text, err);
    if (r < 0)
        return r;
    l->type = IMAGE_LINE_ERROR;
    snprintf(l->text, sizeof(l->text), "%s", text);
    return 0;
}

int image_line_parse(const char *text, size_t len, struct image_line *ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *j = NULL;
    struct image_line line = {0};
    const char *type;
    int r;

    if ((r = json_parse(text, len, IMAGE_LINE_MAX, &j, err)) < 0 ||
        (r = json_get_str(j, "type", &type, err)) < 0)
        return r;
    if (str_eq(type, "progress")) {
        r = read_progress(j, &line, err);
    } else if (str_eq(type, "error")) {
        r = read_error(j, &line, err);
    } else if (str_eq(type, "image")) {
        line.type = IMAGE_LINE_IMAGE;
        r = image_from_json(j, &line.image, err);
    } else {
        r = err_set(err, -EINVAL, "a line of unknown type");
    }
    if (r < 0)
        return r;
    *ret = line;
    return 0;
}
