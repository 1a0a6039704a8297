/*
 * From index to manifest to config, each read by its digest and checked against it. In a
 * docker-archive there is nothing to check the manifest against; the config's name is its digest,
 * and the config's diff ids are what the layers are checked against.
 */
#include "image/plan.h"

#include "base/str.h"
#include "base/strv.h"

#define INDEXES_MAX 4 /* nested in each other */
#define HEX_LEN 64

void plan_done(struct plan *p)
{
    for (uint32_t i = 0; i < p->layer_count; i++)
        free(p->layers[i].member);
    free(p->layers);
    free(p->name);
    image_free(p->run);
    *p = (struct plan){0};
}

static int read_member(
    const struct source *s, const char *member, char **ret, size_t *ret_len, struct err *err)
{
    struct piece p = {.fd = -1};
    int r;

    r = source_piece(s, member, &p, err);
    if (r == 0)
        r = piece_read(&p, MANIFEST_MAX_BYTES, ret, err);
    if (r == 0)
        *ret_len = p.len;
    piece_done(&p);
    if (r != 0) {
        _cleanup_free_ char *shown = str_escape(member, strlen(member), 100);
        return err_prefix(err, "'%s'", shown);
    }
    return 0;
}

static char *blob_member(const char *digest)
{
    return xasprintf("blobs/sha256/%s", digest_hex(digest));
}

static int read_blob(const struct source *s, const struct blob_ref *ref, char **ret,
    size_t *ret_len, struct err *err)
{
    _cleanup_free_ char *member = blob_member(ref->digest), *text = NULL;
    char digest[DIGEST_TEXT_MAX];
    int r;

    r = read_member(s, member, &text, ret_len, err);
    if (r < 0)
        return r;
    digest_of(text, *ret_len, digest);
    if (!str_eq(digest, ref->digest))
        return err_set(err, -EBADMSG, "damaged: '%s' has the digest %s", member, digest);
    *ret = TAKE_PTR(text);
    return 0;
}

/* ---- OCI layout ---- */

static int find_manifest(
    const struct source *s, const char *arch, struct manifest *m, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r;

    r = read_member(s, "index.json", &text, &len, err);
    for (int depth = 0; r == 0; depth++) {
        manifest_done(m);
        *m = (struct manifest){0};
        r = manifest_parse(text, len, arch, m, err);
        if (r < 0)
            return err_prefix(err, depth == 0 ? "index.json" : "manifest");
        if (!m->is_index)
            return 0;
        if (depth >= INDEXES_MAX)
            return err_set(err, -EINVAL, "indexes are nested too deep");
        free(text);
        text = NULL;
        r = read_blob(s, &m->next, &text, &len, err);
    }
    return r;
}

static int take_config(struct plan *p, const char *text, size_t len, const char *arch,
    uint32_t layers, struct err *err)
{
    struct image_config c = {0};
    int r;

    r = image_config_parse(text, len, arch, &c, err);
    if (r < 0)
        return err_prefix(err, "image config");
    if (c.layer_count != layers) {
        r = err_set(err, -EINVAL, "image config: %u diff ids for %u layers", c.layer_count, layers);
        image_config_done(&c);
        return r;
    }
    p->layers = xnew_array(struct plan_layer, layers);
    p->layer_count = layers;
    for (uint32_t i = 0; i < layers; i++)
        STR_SET(p->layers[i].diff_id, c.diff_ids[i]);
    p->run = TAKE_PTR(c.run);
    image_config_done(&c);
    return 0;
}

static int plan_oci(const struct source *s, const char *arch, struct plan *p, struct err *err)
{
    _cleanup_(manifest_done) struct manifest m = {0};
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r;

    if ((r = find_manifest(s, arch, &m, err)) < 0 ||
        (r = read_blob(s, &m.config, &text, &len, err)) < 0 ||
        (r = take_config(p, text, len, arch, m.layer_count, err)) < 0)
        return r;
    STR_SET(p->id, m.config.digest);
    for (uint32_t i = 0; i < m.layer_count; i++) {
        p->layers[i].member = blob_member(m.layers[i].digest);
        STR_SET(p->layers[i].packed, m.layers[i].digest);
    }
    return 0;
}

/* ---- docker-archive ---- */

/* "HEX.json", "blobs/sha256/HEX": the digits say what the digest must be. */
static int check_config_name(const char *member, const char *digest, struct err *err)
{
    const char *slash = strrchr(member, '/');
    const char *base = slash ? slash + 1 : member;

    if (strspn(base, "0123456789abcdef") != HEX_LEN ||
        strncmp(base, digest_hex(digest), HEX_LEN) == 0)
        return 0;
    return err_set(
        err, -EBADMSG, "damaged: the image config '%.80s' has the digest %s", base, digest);
}

static int plan_docker(const struct source *s, const char *arch, struct plan *p, struct err *err)
{
    _cleanup_(docker_manifest_done) struct docker_manifest m = {0};
    _cleanup_free_ char *manifest = NULL, *config = NULL;
    size_t len;
    int r;

    r = read_member(s, "manifest.json", &manifest, &len, err);
    if (r < 0)
        return r;
    r = docker_manifest_parse(manifest, len, &m, err);
    if (r < 0)
        return err_prefix(err, "manifest.json");
    r = read_member(s, m.config, &config, &len, err);
    if (r < 0)
        return r;
    digest_of(config, len, p->id);
    if ((r = check_config_name(m.config, p->id, err)) < 0 ||
        (r = take_config(p, config, len, arch, (uint32_t)strv_len(m.layers), err)) < 0)
        return r;
    for (uint32_t i = 0; i < p->layer_count; i++)
        p->layers[i].member = xstrdup(m.layers[i]);
    p->name = TAKE_PTR(m.name);
    return 0;
}

int plan_make(const struct source *s, const char *arch, struct plan *ret, struct err *err)
{
    _cleanup_(plan_done) struct plan p = {0};
    int r = 0;

    switch (s->kind) {
    case SOURCE_OCI:
        r = plan_oci(s, arch, &p, err);
        break;
    case SOURCE_DOCKER:
        r = plan_docker(s, arch, &p, err);
        break;
    case SOURCE_ROOTFS:
        p.run = image_new();
        p.layers = xnew(struct plan_layer);
        p.layer_count = 1;
        break;
    }
    if (r < 0)
        return r;
    *ret = p;
    p = (struct plan){0};
    return 0;
}
