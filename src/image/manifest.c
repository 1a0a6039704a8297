/*
 * Indexes and manifests. The media type of a document is optional in OCI, so what it holds decides;
 * of a layer it is checked, because an encrypted layer or an artefact must not be taken for a tar.
 * How a layer is compressed is seen from its bytes later.
 */
#include "image/manifest.h"

#include <sys/utsname.h>

#include "base/buf.h"

#define ENTRIES_MAX 1024 /* of an index */

static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
};

static const char *const index_types[] = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
};

static const char *const manifest_types[] = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
};

static bool is_one_of(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(s, list[i]))
            return true;
    return false;
}

#define IS_ONE_OF(s, list) is_one_of((s), (list), ARRAY_LEN(list))

const char *manifest_host_arch(void)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"},
        {"aarch64", "arm64"},
        {"ppc64le", "ppc64le"},
        {"s390x", "s390x"},
        {"riscv64", "riscv64"},
    };
    struct utsname u;

    if (uname(&u) == 0)
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (str_eq(u.machine, names[i][0]))
                return names[i][1];
    return "amd64";
}

void manifest_done(struct manifest *m)
{
    free(m->layers);
    m->layers = NULL;
}

/* "'mediaType' is 'x'": strangers' text in an error, short and printable. */
static int refuse(const char *what, const char *shown, struct err *err)
{
    _cleanup_free_ char *s = str_escape(shown, strlen(shown), 80);

    return err_set(err, -EINVAL, "%s '%s'", what, s);
}

static int parse_ref(const json_t *j, struct blob_ref *ret, struct err *err)
{
    const char *digest;
    int r;

    r = json_get_str(j, "digest", &digest, err);
    if (r < 0)
        return r;
    if (!digest_is_valid(digest))
        return refuse("cannot use the digest", digest, err);
    STR_SET(ret->digest, digest);
    return json_get_u64(j, "size", INT64_MAX, &ret->size, err);
}

/* ---- index ---- */

/* Without a platform an entry is taken for any; "unknown" is what attestations carry. */
static bool fits_platform(const json_t *entry, const char *arch)
{
    const json_t *platform = json_object_get(entry, "platform");

    if (!json_is_object(platform))
        return true;
    return str_eq(json_str_or(platform, "os", ""), "linux") &&
        str_eq(json_str_or(platform, "architecture", ""), arch);
}

static bool is_image_entry(const json_t *entry)
{
    const char *type = json_str_or(entry, "mediaType", "");

    return type[0] == '\0' || IS_ONE_OF(type, index_types) || IS_ONE_OF(type, manifest_types);
}

static int no_platform(const json_t *entries, const char *arch, struct err *err)
{
    struct buf has = BUF_INIT(120);
    json_t *entry;
    size_t n;
    int r;

    json_array_foreach (entries, n, entry) {
        const json_t *p = json_object_get(entry, "platform");
        _cleanup_free_ char *os = NULL, *a = NULL;

        if (!json_is_object(p))
            continue;
        os = str_escape(json_str_or(p, "os", "?"), strlen(json_str_or(p, "os", "?")), 16);
        a = str_escape(
            json_str_or(p, "architecture", "?"), strlen(json_str_or(p, "architecture", "?")), 16);
        (void)buf_printf(&has, "%s%s/%s", has.len ? ", " : "", os, a);
    }
    r = err_set(err, -ENOENT, "the image is not for linux/%s; it is for: %s", arch,
        has.len ? has.data : "nothing");
    buf_done(&has);
    return r;
}

static int parse_index(const json_t *entries, const char *arch, struct manifest *m, struct err *err)
{
    struct blob_ref found = {0};
    json_t *entry;
    size_t n;
    int r;

    if (json_array_size(entries) > ENTRIES_MAX)
        return err_set(err, -EINVAL, "'manifests' has more than %d items", ENTRIES_MAX);
    json_array_foreach (entries, n, entry) {
        struct blob_ref ref = {0};

        if (!is_image_entry(entry) || !fits_platform(entry, arch))
            continue;
        r = parse_ref(entry, &ref, err);
        if (r < 0)
            return err_prefix(err, "manifest %zu of the index", n + 1);
        if (found.digest[0] && !str_eq(found.digest, ref.digest))
            return err_set(err, -EINVAL, "the index holds several images for linux/%s", arch);
        found = ref;
        m->next_is_index = IS_ONE_OF(json_str_or(entry, "mediaType", ""), index_types);
    }
    if (!found.digest[0])
        return no_platform(entries, arch, err);
    m->is_index = true;
    m->next = found;
    return 0;
}

/* ---- manifest ---- */

static int parse_layer(const json_t *j, struct blob_ref *ret, struct err *err)
{
    const char *type = json_str_or(j, "mediaType", "");

    if (!IS_ONE_OF(type, layer_types))
        return refuse("cannot unpack a layer of type", type, err);
    return parse_ref(j, ret, err);
}

static int parse_manifest(const json_t *doc, struct manifest *m, struct err *err)
{
    json_t *config, *layers, *layer;
    size_t n;
    int r;

    if ((r = json_get_obj(doc, "config", &config, err)) < 0 ||
        (r = json_get_arr(doc, "layers", &layers, err)) < 0)
        return r;
    r = parse_ref(config, &m->config, err);
    if (r < 0)
        return err_prefix(err, "config");
    if (json_array_size(layers) > IMAGE_LAYERS_MAX)
        return err_set(err, -EINVAL, "more than %d layers", IMAGE_LAYERS_MAX);
    m->layers = xnew_array(struct blob_ref, json_array_size(layers));
    json_array_foreach (layers, n, layer) {
        r = parse_layer(layer, &m->layers[m->layer_count++], err);
        if (r < 0)
            return err_prefix(err, "layer %zu", n + 1);
    }
    return 0;
}

int manifest_parse(
    const char *text, size_t len, const char *arch, struct manifest *ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    _cleanup_(manifest_done) struct manifest m = {0};
    json_t *entries;
    int r;

    r = json_parse(text, len, MANIFEST_MAX_BYTES, &doc, err);
    if (r < 0)
        return r;
    if (!json_is_object(doc))
        return err_set(err, -EINVAL, "must be an object");
    if (json_u64_or(doc, "schemaVersion", 2) != 2)
        return err_set(err, -EINVAL, "a manifest of schema version %d (only 2 can be used)",
            (int)json_u64_or(doc, "schemaVersion", 0));
    if (json_get_arr(doc, "manifests", &entries, NULL) == 0)
        r = parse_index(entries, arch, &m, err);
    else
        r = parse_manifest(doc, &m, err);
    if (r < 0)
        return r;
    *ret = m;
    m.layers = NULL;
    return 0;
}
