/*
 * The JSON documents around an image, from an attacker: the first byte says which. What is refused
 * says why; a config that is taken makes an image that survives the store.
 */
#include "image/credentials.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_config(struct image *run)
{
    _cleanup_(json_decrefp) json_t *j = NULL, *again = NULL;
    _cleanup_(image_freep) struct image *back = NULL;
    struct err err = ERR_INIT;

    digest_of("", 0, run->id);
    run->layers = xnew(struct assigned_layer);
    run->layer_count = 1;
    digest_of("", 0, run->layers[0].digest);
    j = image_to_json(run);
    if (image_from_json(j, &back, &err) < 0) {
        fprintf(stderr, "%s\n", err_text(&err));
        abort();
    }
    again = image_to_json(back);
    if (!json_equal(j, again))
        abort();
}

static void use_credentials(const json_t *doc)
{
    struct credentials who = {0};

    if (credentials_find(doc, "a file", "registry.lan:5000", "team/app", &who) == 0 && !who.user &&
        !who.token)
        abort();
    credentials_done(&who);
}

static int parse(char which, const char *text, size_t len, struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    struct docker_manifest d;
    struct image_config c;
    struct image_line l;
    struct manifest m;
    int r;

    if (which == 'm' && (r = manifest_parse(text, len, "amd64", &m, err)) == 0)
        manifest_done(&m);
    else if (which == 'd' && (r = docker_manifest_parse(text, len, &d, err)) == 0)
        docker_manifest_done(&d);
    else if (which == 'l' && (r = image_line_parse(text, len, &l, err)) == 0)
        image_line_done(&l);
    else if (which == 'c' && (r = image_config_parse(text, len, "amd64", &c, err)) == 0) {
        use_config(c.run);
        image_config_done(&c);
    } else if (which == 'a' && (r = json_parse(text, len, CREDENTIALS_MAX_BYTES, &doc, err)) == 0) {
        use_credentials(doc);
        r = credentials_check(doc, err);
    } else if (!strchr("mdlca", which) || which == '\0')
        return 0;
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;

    if (size > 0 && parse((char)data[0], (const char *)data + 1, size - 1, &err) < 0 &&
        !err.text[0])
        abort();
    return 0;
}
