/*
 * Image configs (OCI image-spec "config.md", and Docker's which it came from) and the manifest.json
 * of "docker save". Members that say how to run the image are optional and may be null.
 */
#include <signal.h>

#include "image/manifest.h"

#define PATH_PART_MAX 4096 /* of a member's name in a docker-archive */

void image_config_done(struct image_config *c)
{
    free(c->diff_ids);
    image_free(c->run);
    *c = (struct image_config){0};
}

static int parse_words(const json_t *obj, const char *key, size_t max, char ***ret, struct err *err)
{
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
        if (!json_is_string(item))
            return err_set(err, -EINVAL, "'%s' must be a list of strings", key);
        if (json_string_length(item) > IMAGE_TEXT_MAX)
            return err_set(err, -EINVAL, "'%s' has an item over %d bytes", key, IMAGE_TEXT_MAX);
        strv_push(ret, json_string_value(item));
    }
    return 0;
}

/* Only K=V with a K; Docker drops what has none, too. The last of a name counts. */
static int parse_env(const json_t *obj, char ***ret, struct err *err)
{
    _cleanup_(strv_freep) char **all = NULL;
    int r;

    r = parse_words(obj, "Env", IMAGE_ENV_MAX, &all, err);
    if (r < 0)
        return r;
    strv_for_each (s, all) {
        _cleanup_free_ char *key = NULL;
        char *eq = strchr(*s, '=');

        if (!eq || eq == *s)
            continue;
        key = xstrndup(*s, (size_t)(eq - *s));
        strv_env_set(ret, key, eq + 1);
    }
    return 0;
}

static int parse_text(const json_t *obj, const char *key, char *dst, size_t size, struct err *err)
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

static int parse_run(const json_t *doc, struct image *run, struct err *err)
{
    char sig[32] = "";
    json_t *j;
    int r;

    r = json_get_obj(doc, "config", &j, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    if ((r = parse_env(j, &run->env, err)) < 0 ||
        (r = parse_words(j, "Entrypoint", IMAGE_WORDS_MAX, &run->entrypoint, err)) < 0 ||
        (r = parse_words(j, "Cmd", IMAGE_WORDS_MAX, &run->cmd, err)) < 0 ||
        (r = parse_text(j, "WorkingDir", run->workdir, sizeof(run->workdir), err)) < 0 ||
        (r = parse_text(j, "User", run->user, sizeof(run->user), err)) < 0 ||
        (r = parse_text(j, "StopSignal", sig, sizeof(sig), err)) < 0)
        return r;
    /* A signal that we do not know is no reason to refuse the image. */
    if (image_signal_parse(sig, &run->stop_signal, NULL) < 0)
        run->stop_signal = SIGTERM;
    return 0;
}

static int check_platform(const json_t *doc, const char *arch, struct err *err)
{
    const char *os = json_str_or(doc, "os", "linux");
    const char *a = json_str_or(doc, "architecture", arch);
    _cleanup_free_ char *os_shown = NULL, *a_shown = NULL;

    if (str_eq(os, "linux") && str_eq(a, arch))
        return 0;
    os_shown = str_escape(os, strlen(os), 16);
    a_shown = str_escape(a, strlen(a), 16);
    return err_set(
        err, -EINVAL, "the image is for %s/%s, not for linux/%s", os_shown, a_shown, arch);
}

static int parse_diff_ids(const json_t *doc, struct image_config *c, struct err *err)
{
    json_t *rootfs, *ids, *id;
    size_t n;
    int r;

    if ((r = json_get_obj(doc, "rootfs", &rootfs, err)) < 0 ||
        (r = json_get_arr(rootfs, "diff_ids", &ids, err)) < 0)
        return r;
    if (json_array_size(ids) == 0)
        return err_set(err, -EINVAL, "the image has no layers");
    if (json_array_size(ids) > IMAGE_LAYERS_MAX)
        return err_set(err, -EINVAL, "more than %d layers", IMAGE_LAYERS_MAX);
    c->diff_ids = xcalloc(json_array_size(ids), sizeof(*c->diff_ids));
    json_array_foreach (ids, n, id) {
        if (!digest_is_valid(json_string_value(id)))
            return err_set(err, -EINVAL, "diff id %zu is no sha256 digest", n + 1);
        STR_SET(c->diff_ids[c->layer_count++], json_string_value(id));
    }
    return 0;
}

int image_config_parse(
    const char *text, size_t len, const char *arch, struct image_config *ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    _cleanup_(image_config_done) struct image_config c = {0};
    int r;

    r = json_parse(text, len, MANIFEST_MAX_BYTES, &doc, err);
    if (r < 0)
        return r;
    c.run = image_new();
    if ((r = check_platform(doc, arch, err)) < 0 || (r = parse_diff_ids(doc, &c, err)) < 0 ||
        (r = parse_run(doc, c.run, err)) < 0)
        return r;
    *ret = c;
    c = (struct image_config){0};
    return 0;
}

/* ---- docker save ---- */

void docker_manifest_done(struct docker_manifest *m)
{
    free(m->config);
    free(m->name);
    strv_free(m->layers);
    *m = (struct docker_manifest){0};
}

static int parse_entry(const json_t *entry, struct docker_manifest *m, struct err *err)
{
    const char *config;
    json_t *tags;
    int r;

    if ((r = json_get_str(entry, "Config", &config, err)) < 0 ||
        (r = parse_words(entry, "Layers", IMAGE_LAYERS_MAX, &m->layers, err)) < 0)
        return r;
    if (strlen(config) > PATH_PART_MAX)
        return err_set(err, -EINVAL, "'Config' is longer than %d bytes", PATH_PART_MAX);
    m->config = xstrdup(config);
    if (json_get_arr(entry, "RepoTags", &tags, NULL) == 0 &&
        json_is_string(json_array_get(tags, 0)))
        m->name = xstrdup(json_string_value(json_array_get(tags, 0)));
    return 0;
}

int docker_manifest_parse(
    const char *text, size_t len, struct docker_manifest *ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    _cleanup_(docker_manifest_done) struct docker_manifest m = {0};
    int r;

    r = json_parse(text, len, MANIFEST_MAX_BYTES, &doc, err);
    if (r < 0)
        return r;
    if (!json_is_array(doc) || json_array_size(doc) != 1)
        return err_set(
            err, -EINVAL, "the archive must hold one image, it holds %zu", json_array_size(doc));
    r = parse_entry(json_array_get(doc, 0), &m, err);
    if (r < 0)
        return r;
    *ret = m;
    m = (struct docker_manifest){0};
    return 0;
}
