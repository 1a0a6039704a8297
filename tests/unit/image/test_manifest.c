#include "image/manifest.h"
#include "unit.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define D0 "sha256:" HEX "0"
#define D1 "sha256:" HEX "1"
#define D2 "sha256:" HEX "2"
#define REF(d) "{\"digest\":\"" d "\",\"size\":7}"
#define LAYER(type) "{\"mediaType\":\"" type "\",\"digest\":\"" D1 "\",\"size\":7}"
#define OCI_GZIP "application/vnd.oci.image.layer.v1.tar+gzip"
#define DOCKER_GZIP "application/vnd.docker.image.rootfs.diff.tar.gzip"
#define FOR(d, os, arch) \
    "{\"digest\":\"" d "\",\"size\":7,\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch \
    "\"}}"

static void takes(const char *text, struct manifest *m)
{
    struct err err = ERR_INIT;

    assert_ok(manifest_parse(text, strlen(text), "amd64", m, &err), &err);
}

static void refuses(const char *text, int code, const char *want)
{
    struct manifest m;
    struct err err;

    assert_fails(manifest_parse(text, strlen(text), "amd64", &m, &err), &err, code, want);
}

TEST(a_manifest_names_config_and_layers_in_order)
{
    struct manifest m;

    takes("{\"schemaVersion\":2,\"config\":" REF(D0) ",\"layers\":[" LAYER(OCI_GZIP) "," LAYER(
              DOCKER_GZIP) "]}",
        &m);
    assert_false(m.is_index);
    assert_string_equal(m.config.digest, D0);
    assert_int_equal(m.layer_count, 2);
    assert_string_equal(m.layers[1].digest, D1);
    assert_int_equal(m.layers[1].size, 7);
    manifest_done(&m);
}

TEST(an_index_gives_the_entry_for_the_architecture)
{
    struct manifest m;

    takes("{\"manifests\":[" FOR(D0, "linux", "arm64") "," FOR(D1, "linux", "amd64") "," FOR(
              D2, "windows", "amd64") "]}",
        &m);
    assert_true(m.is_index);
    assert_string_equal(m.next.digest, D1);
    takes("{\"manifests\":[" REF(D2) "]}", &m);
    assert_string_equal(m.next.digest, D2);
}

TEST(an_index_without_or_with_several_fitting_entries_is_refused)
{
    refuses("{\"manifests\":[" FOR(D0, "linux", "arm64") "]}", -ENOENT,
        "the image is not for linux/amd64; it is for: linux/arm64");
    refuses("{\"manifests\":[]}", -ENOENT, "the image is not for linux/amd64; it is for: nothing");
    refuses("{\"manifests\":[" REF(D0) "," REF(D1) "]}", -EINVAL,
        "the index holds several images for linux/amd64");
}

TEST(what_is_no_manifest_is_refused_with_the_reason)
{
    refuses("[]", -EINVAL, "must be an object");
    refuses(
        "{\"schemaVersion\":1}", -EINVAL, "a manifest of schema version 1 (only 2 can be used)");
    refuses("{}", -ENOENT, "'config' is missing");
    refuses("{\"config\":{\"digest\":\"md5:1\",\"size\":1},\"layers\":[]}", -EINVAL,
        "config: cannot use the digest 'md5:1'");
    refuses("{\"config\":" REF(D0) ",\"layers\":[" LAYER("text/plain\\n") "]}", -EINVAL,
        "layer 1: cannot unpack a layer of type 'text/plain\\x0a'");
    refuses("{\"config\":" REF(D0) ",\"layers\":[" REF(D1) "]}", -EINVAL,
        "layer 1: cannot unpack a layer of type ''");
}

TEST(a_docker_archive_holds_one_image)
{
    static const char one[] =
        "[{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"x/y\"]}]";
    struct docker_manifest m;
    struct err err = ERR_INIT;

    assert_ok(docker_manifest_parse(one, strlen(one), &m, &err), &err);
    assert_string_equal(m.config, "c.json");
    assert_string_equal(m.name, "a:1");
    assert_string_equal(m.layers[0], "x/y");
    docker_manifest_done(&m);
    assert_fails(docker_manifest_parse("[{},{}]", 7, &m, &err), &err, -EINVAL,
        "the archive must hold one image, it holds 2");
    assert_fails(docker_manifest_parse("[{}]", 4, &m, &err), &err, -ENOENT, "'Config' is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_names_config_and_layers_in_order),
        cmocka_unit_test(an_index_gives_the_entry_for_the_architecture),
        cmocka_unit_test(an_index_without_or_with_several_fitting_entries_is_refused),
        cmocka_unit_test(what_is_no_manifest_is_refused_with_the_reason),
        cmocka_unit_test(a_docker_archive_holds_one_image),
    };

    return RUN_TESTS(tests);
}
