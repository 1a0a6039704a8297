/*
 * The manifest for our platform, its config and its layers, each to a file named by its digest.
 * What is in the files is checked when they are used; here only sizes are, which the manifest says.
 */
#include "image/fetch.h"

#include <fcntl.h>

#include "base/fs.h"
#include "base/strv.h"
#include "image/registry.h"

#define INDEXES_MAX 4 /* nested in each other */

struct pulled {
    const struct fetch *f;
    const char *scratch;
    struct registry *registry;
    struct manifest manifest;
    char digest[DIGEST_TEXT_MAX]; /* of the manifest */
    struct buf text;              /* of it */
    uint64_t total;
};

static char *blob_path(const struct pulled *p, const char *digest)
{
    return xasprintf("%s/layout/blobs/sha256/%s", p->scratch, digest_hex(digest));
}

/* ---- documents ---- */

static int get_manifest(struct pulled *p, const char *reference, bool by_digest, struct err *err)
{
    int r;

    buf_done(&p->text);
    manifest_done(&p->manifest);
    r = registry_manifest(p->registry, reference, &p->text, err);
    if (r < 0)
        return r;
    digest_of(p->text.data ? p->text.data : "", p->text.len, p->digest);
    if (by_digest && !str_eq(reference, p->digest))
        return err_set(
            err, -EBADMSG, "the manifest's digest should be %s and is %s", reference, p->digest);
    r = manifest_parse(
        p->text.data ? p->text.data : "", p->text.len, p->f->arch, &p->manifest, err);
    return r < 0 ? err_prefix(err, "manifest") : 0;
}

static int find_manifest(struct pulled *p, struct err *err)
{
    const struct image_ref *ref = p->f->ref;
    bool by_digest = ref->digest[0];
    int r = get_manifest(p, by_digest ? ref->digest : ref->tag, by_digest, err);

    for (unsigned depth = 0; r == 0 && p->manifest.is_index; depth++) {
        char next[DIGEST_TEXT_MAX];
        if (depth >= INDEXES_MAX)
            return err_set(err, -EINVAL, "indexes are nested too deep");
        STR_SET(next, p->manifest.next.digest);
        r = get_manifest(p, next, true, err);
    }
    return r;
}

/* ---- files ---- */

static int write_file(const char *path, const void *p, size_t n, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        return err_sys(err, fd < 0 ? -errno : -ENOSPC, "cannot write '%s'", path);
    return 0;
}

static int write_index(const struct pulled *p, struct err *err)
{
    static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    _cleanup_free_ char *manifest = blob_path(p, p->digest);
    _cleanup_free_ char *index_path = xasprintf("%s/layout/index.json", p->scratch);
    _cleanup_free_ char *layout_path = xasprintf("%s/layout/oci-layout", p->scratch);
    _cleanup_free_ char *index = xasprintf(
        "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":%zu}]}", p->digest,
        p->text.len);
    int r;

    if ((r = write_file(manifest, p->text.data, p->text.len, err)) < 0 ||
        (r = write_file(layout_path, layout, strlen(layout), err)) < 0)
        return r;
    return write_file(index_path, index, strlen(index), err);
}

/* ---- blobs ---- */

static void tell(void *arg, uint64_t bytes)
{
    const struct pulled *p = arg;

    if (p->f->progress)
        p->f->progress(p->f->arg, bytes, p->total);
}

static int add_blob(struct pulled *p, const struct blob_ref *ref, struct registry_blob *list,
    size_t *count, struct err *err)
{
    _cleanup_free_ char *path = blob_path(p, ref->digest);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST) /* the same layer twice */
        return 0;
    if (fd < 0)
        return err_sys(err, -errno, "cannot write '%s'", path);
    list[(*count)++] = (struct registry_blob){*ref, fd, 0};
    if (ref->size > p->f->max_bytes - p->total)
        return err_set(err, -EFBIG, "larger than the limit of %llu bytes",
            (unsigned long long)p->f->max_bytes);
    p->total += ref->size;
    return 0;
}

static int pull_blobs(struct pulled *p, struct err *err)
{
    struct registry_blob *list = xnew_array(struct registry_blob, p->manifest.layer_count + 1);
    size_t count = 0;
    int r = add_blob(p, &p->manifest.config, list, &count, err);

    for (uint32_t n = 0; r == 0 && n < p->manifest.layer_count; n++)
        r = add_blob(p, &p->manifest.layers[n], list, &count, err);
    if (r == 0)
        r = registry_blobs(p->registry, list, count, tell, p, err);
    if (r == 0)
        tell(p, p->total);
    for (size_t n = 0; n < count; n++)
        close(list[n].fd);
    free(list);
    return r;
}

/* ---- from one place ---- */

/* The value of the first "HOST=VALUE" for this host. */
static const char *value_of(char **list, const char *host)
{
    strv_for_each (s, list)
        if (str_starts(*s, host) && (*s)[strlen(host)] == '=')
            return *s + strlen(host) + 1;
    return NULL;
}

static int fetch_from(const struct fetch *f, const char *host, const char *scratch, struct err *err)
{
    _cleanup_free_ char *name = image_ref_path(f->ref);
    _cleanup_free_ char *layout = xasprintf("%s/layout", scratch);
    _cleanup_free_ char *blobs = xasprintf("%s/blobs/sha256", layout);
    struct pulled p = {.f = f, .scratch = scratch};
    struct registry_opts o = {
        .host = host,
        .name = name,
        .ca = value_of(f->cas, host),
        .insecure = strv_has(f->insecure, host),
        .auths = f->auths,
        .auths_from = f->auths_from,
        .stall_usec = f->stall_usec,
    };
    int r;

    if ((r = fs_remove_tree(layout, NULL)) == -ENOENT)
        r = 0;
    if (r == 0 && (r = fs_mkdir_p(blobs, 0700, err)) == 0 &&
        (r = registry_open(&o, &p.registry, err)) == 0 && (r = find_manifest(&p, err)) == 0 &&
        (r = pull_blobs(&p, err)) == 0)
        r = write_index(&p, err);
    if (r < 0 && !str_starts(err->text, "registry "))
        err_prefix(err, "registry '%s'", host);
    registry_close(p.registry);
    manifest_done(&p.manifest);
    buf_done(&p.text);
    return r;
}

int fetch_image(const struct fetch *f, const char *scratch, struct err *err)
{
    const char *host = image_ref_host(f->ref), *failed = NULL;
    char **mirrors = f->mirrors;
    int r;

    strv_for_each (s, mirrors) {
        char *one[] = {*s, NULL};
        const char *mirror = value_of(one, host);

        if (mirror && fetch_from(f, mirror, scratch, err) == 0)
            return 0;
        failed = mirror ? mirror : failed;
    }
    r = fetch_from(f, host, scratch, err);
    if (r < 0 && failed)
        err_prefix(err, "its mirror '%s' failed too", failed);
    return r;
}
