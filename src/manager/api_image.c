/* Images over HTTP: what there is, and blobs for agents. Imports are in imports.c. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "manager/api_page.h"
#include "manager/imports.h"
#include "manager/state.h"

json_t *image_json(const struct manager *m, const struct image *i)
{
    json_t *o = image_public_json(i);
    unsigned users = 0;

    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        users += str_eq(s->image_id, i->id);
    }
    json_set_u64(o, "sessions", users);
    return o;
}

static json_t *listed(const struct call *c, void *value, UNUSED void *arg)
{
    return image_json(c->m, value);
}

void api_image_list(struct call *c)
{
    reply_page(c, &(struct page_of){.what = "images", .map = &c->m->images, .to_json = listed});
}

static struct image *call_image(struct call *c)
{
    char name[IMAGE_REF_MAX + 1];
    struct image *i = NULL;

    if (image_ref_normal(c->params[0], name, NULL) == 0)
        i = map_get(&c->m->images, name);
    if (!i)
        reply_error(
            c, 404, "not_found", "there is no image '%.200s'; see 'muster image ls'", c->params[0]);
    return i;
}

/* With its blobs, and the sessions that the caller may see. */
static json_t *image_details(const struct call *c, const struct image *i)
{
    json_t *o = image_json(c->m, i), *blobs = json_array(), *used_by = json_array();

    for (uint32_t n = 0; n < i->layer_count; n++) {
        json_t *blob = json_object();
        json_set_str(blob, "digest", i->layers[n].digest);
        json_set_u64(blob, "size", i->layers[n].size);
        json_array_append_new(blobs, blob);
    }
    map_for_each (e, &c->m->sessions) {
        const struct session *s = e->value;
        if (str_eq(s->image_id, i->id) && (call_is_admin(c) || str_eq(s->owner, c->user->name)))
            json_array_append_new(used_by, json_integer((json_int_t)s->num));
    }
    json_object_set_new(o, "blobs", blobs);
    json_object_set_new(o, "used_by", used_by);
    return o;
}

void api_image_show(struct call *c)
{
    struct image *i = call_image(c);

    if (i)
        reply_json(c, 200, image_details(c, i));
}

const struct session *image_user(struct manager *m, const struct image *i)
{
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        if (str_eq(s->image_id, i->id))
            return s;
    }
    return NULL;
}

/* {"pinned": true}: it is not removed for space. */
void api_image_set(struct call *c)
{
    struct image *i = call_image(c);
    struct err err = ERR_INIT;
    bool pinned;

    if (!i)
        return;
    if (json_get_bool(c->body, "pinned", &pinned, &err) < 0) {
        err.code = -EINVAL;
        reply_err(c, &err);
        return;
    }
    i->pinned = pinned;
    image_save(c->m, i, pinned ? "image.pinned" : "image.unpinned");
    reply_committed(c, 200, image_json(c->m, i));
}

/* --- prune -------------------------------------------------------------------------------- */

/* Blobs that an image has: digest -> anything. */
static void list_used(struct manager *m, struct map *used)
{
    map_init(used);
    map_for_each (e, &m->images) {
        const struct image *i = e->value;
        for (uint32_t n = 0; n < i->layer_count; n++)
            map_set(used, digest_hex(i->layers[n].digest), m);
    }
}

/* Records of blobs that are gone count for nothing, so only blobs are removed. */
static uint64_t remove_blobs(struct manager *m, unsigned *ret_count)
{
    _cleanup_free_ char *path = xasprintf("%s/blobs/sha256", m->config.state_dir);
    DIR *dir = opendir(path);
    struct dirent *e;
    struct map used;
    uint64_t bytes = 0;

    list_used(m, &used);
    while (dir && (e = readdir(dir))) {
        struct stat st;
        if (e->d_name[0] == '.' || map_get(&used, e->d_name) ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            unlinkat(dirfd(dir), e->d_name, 0) < 0)
            continue;
        bytes += (uint64_t)st.st_size;
        ++*ret_count;
    }
    if (dir)
        closedir(dir);
    map_done(&used, NULL);
    return bytes;
}

static bool is_idle(struct manager *m, const struct image *i, uint64_t since)
{
    return !i->pinned && !image_user(m, i) && MAX_OF(i->last_used_usec, i->created_usec) < since;
}

/* Images that nobody used for a time, and blobs that no image has. */
void api_image_prune(struct call *c)
{
    uint64_t seconds, now = clock_real_usec();
    json_t *body, *names;
    unsigned blobs = 0;

    if (!call_query_u64(c, "unused_for", UINT64_C(30) * 86400, UINT64_C(36600) * 86400, &seconds))
        return;
    if (c->m->import_count > 0) {
        reply_error(c, 503, "busy", "an image is being imported; try again when it is here");
        return;
    }
    body = json_object();
    names = json_array();
    map_for_each (e, &c->m->images) {
        struct image *i = e->value;
        if (!is_idle(c->m, i, now - MIN_OF(now, seconds * USEC_PER_SEC)))
            continue;
        json_array_append_new(names, json_string(i->name));
        image_forget(c->m, i);
    }
    json_object_set_new(body, "images", names);
    json_set_u64(body, "bytes", remove_blobs(c->m, &blobs));
    json_set_u64(body, "blobs", blobs);
    reply_committed(c, 200, body);
}

void api_image_delete(struct call *c)
{
    struct image *i = call_image(c);
    const struct session *s = i ? image_user(c->m, i) : NULL;

    if (!i)
        return;
    if (s) {
        reply_error(c, 409, "in_use", "session %s (%llu) uses the image '%s'; stop it first",
            s->name, (unsigned long long)s->num, i->name);
        return;
    }
    image_forget(c->m, i);
    reply_committed(c, 200, json_object());
}

/* --- import ------------------------------------------------------------------------------- */

void api_image_import(struct call *c)
{
    const char *ref = NULL, *name;
    char normal[IMAGE_REF_MAX + 1];
    struct err err = ERR_INIT;
    int r = call_body_text(c, "ref", &ref, &err);

    if (r == 0 && ref[0] == '/')
        r = err_set(&err, -EINVAL, "a path is not a registry reference; upload the file instead");
    name = json_str_or(c->body, "name", ref);
    if (r == 0)
        r = image_ref_check(ref, &err);
    if (r == 0)
        r = image_ref_normal(name, normal, &err);
    if (r < 0)
        reply_err(c, &err);
    else
        import_ref(c->m, normal, ref, c->user->name, c);
}

void api_image_upload(struct call *c)
{
    char normal[IMAGE_REF_MAX + 1];
    struct err err = ERR_INIT;

    if (image_ref_normal(c->params[0], normal, &err) < 0 ||
        import_upload(c->m, normal, c, &err) < 0)
        reply_err(c, &err);
}

/* --- blobs, for agents -------------------------------------------------------------------- */

/* "bytes=N-": the only form that agents use. */
static uint64_t range_start(struct request *rq)
{
    const char *range = request_header(rq, "range");
    uint64_t n = 0;
    char number[24];
    size_t len;

    if (!str_starts(range, "bytes="))
        return 0;
    range += strlen("bytes=");
    len = strcspn(range, "-");
    if (len >= sizeof(number) || range[len] != '-' || range[len + 1])
        return 0;
    memcpy(number, range, len);
    number[len] = '\0';
    return str_to_u64(number, INT64_MAX, &n) < 0 ? 0 : n;
}

void api_blob(struct call *c)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int fd = -1;
    struct stat st;
    uint64_t start;

    if (!digest_is_valid(c->params[0])) {
        reply_error(c, 400, "bad_digest", "a blob's digest is sha256: and 64 hexadecimal digits");
        return;
    }
    path = xasprintf(
        "%s/blobs/sha256/%s", c->m->config.state_dir, c->params[0] + strlen("sha256:"));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0) {
        reply_error(c, 404, "not_found", "there is no such blob");
        return;
    }
    start = range_start(c->rq);
    if (start >= (uint64_t)st.st_size)
        start = 0;
    struct request *rq = call_take_request(c);
    if (rq)
        request_reply_file(rq, "application/octet-stream", TAKE_FD(fd), start,
            (uint64_t)st.st_size - start, (uint64_t)st.st_size);
}
