/*
 * One import from begin to end. Layers go lowest first, because a layer may depend on those below.
 * A layer whose blob is here already is not converted again, but its bytes are still hashed: who
 * names a diff id in a config without having the layer gets nothing.
 */
#include "image/import.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "image/blobs.h"
#include "image/erofs.h"
#include "image/fetch.h"
#include "image/plan.h"

#define STREAM_EXTRA (UINT64_C(16) << 30) /* what a tar may have beside its files' bytes */

struct done_layer {
    char digest[DIGEST_TEXT_MAX], diff_id[DIGEST_TEXT_MAX];
    uint64_t size;
};

struct run {
    const struct import *opts;
    struct scratch scratch;
    struct blobs blobs;
    struct source *source;
    struct plan plan;
    struct below *below;
    struct layer_root root; /* of the stack so far */
    char chain[DIGEST_TEXT_MAX];
    struct layer_limits left;
    struct done_layer done[IMAGE_LAYERS_MAX]; /* lowest first */
    uint32_t done_count;
    uint32_t layer; /* 1-based, for progress */
};

/* ---- telling ---- */

static void emit(const struct run *run, json_t *j)
{
    _cleanup_free_ char *text = json_text(j);

    if (run->opts->out) {
        fprintf(run->opts->out, "%s\n", text);
        fflush(run->opts->out);
    }
    json_decref(j);
}

static json_t *progress_line(const struct run *run, const char *step, uint64_t bytes)
{
    json_t *j = json_object();

    json_set_str(j, "type", "progress");
    json_set_str(j, "step", step);
    json_set_u64(j, "layer", run->layer);
    json_set_u64(j, "layers", run->plan.layer_count);
    json_set_u64(j, "bytes", bytes);
    return j;
}

static void tell(const struct run *run, const char *step, uint64_t bytes)
{
    emit(run, progress_line(run, step, bytes));
}

static void tell_fetch(void *arg, uint64_t bytes, uint64_t total)
{
    json_t *j = progress_line(arg, "fetch", bytes);

    json_set_u64(j, "total", total);
    emit(arg, j);
}

static void tell_unpack(void *arg, uint64_t bytes)
{
    tell(arg, "unpack", bytes);
}

static void tell_image(const struct run *run, struct image *i)
{
    json_t *j = json_object(), *image, *value;
    const char *key;

    json_set_str(j, "type", "image");
    image = image_to_json(i);
    for (uint32_t n = 0; n < run->done_count; n++)
        json_set_str(
            json_array_get(json_object_get(image, "layers"), n), "diff_id", run->done[n].diff_id);
    json_object_foreach (image, key, value)
        json_object_set(j, key, value);
    json_decref(image);
    emit(run, j);
}

/* ---- converting a layer ---- */

struct conversion {
    struct stream in;
    struct sink *sink;
    char *blob;
    int fd;
};

static void conversion_done(struct conversion *c)
{
    sink_freep(&c->sink);
    stream_done(&c->in);
    cleanup_close(&c->fd);
    free(c->blob);
}

static int open_sink(struct run *run, struct conversion *c, struct err *err)
{
    c->blob = blobs_tmp_path(&run->blobs);
    (void)unlink(c->blob);
    c->fd = open(c->blob, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (c->fd < 0)
        return err_sys(err, -errno, "cannot write '%s'", c->blob);
    return sink_erofs_new(c->fd, run->scratch.path, &c->sink, err);
}

static int check_digest(const char *what, char *expected, const char *found, struct err *err)
{
    if (expected[0] == '\0') {
        assert(str_copy(expected, DIGEST_TEXT_MAX, found) == 0);
        return 0;
    }
    if (str_eq(expected, found))
        return 0;
    return err_set(err, -EBADMSG, "damaged: its %s should be %s and is %s", what, expected, found);
}

/* Read the rest, compare; what was not known beforehand is known then. */
static int verify(struct stream *in, struct plan_layer *l, struct err *err)
{
    char packed[DIGEST_TEXT_MAX], plain[DIGEST_TEXT_MAX];
    int r;

    if ((r = stream_end(in, packed, plain, err)) < 0 ||
        (r = check_digest("digest", l->packed, packed, err)) < 0)
        return r;
    return check_digest("diff id", l->diff_id, plain, err);
}

static int convert(struct run *run, const struct piece *piece, struct plan_layer *l,
    struct layer_record *record, struct err *err)
{
    _cleanup_(conversion_done) struct conversion c = {.fd = -1};
    struct layer_limits limits = run->left;
    uint64_t max = run->left.max_bytes + MIN_OF(STREAM_EXTRA, INT64_MAX - run->left.max_bytes);
    int r;

    limits.max_path = LAYER_PATH_MAX - 1;
    limits.max_name = LAYER_NAME_MAX;
    if ((r = stream_open(&c.in, piece, max, err)) < 0 || (r = open_sink(run, &c, err)) < 0 ||
        (r = layer_convert(&c.in, run->below, &run->root, &limits, c.sink, tell_unpack, run,
             &record->layer, err)) < 0 ||
        (r = verify(&c.in, l, err)) < 0)
        return r;
    r = blobs_add(&run->blobs, c.blob, record, err);
    if (r == 0)
        tell(run, "pack", record->size);
    return r;
}

/* ---- a layer that is here already ---- */

static bool root_is_default(const struct layer_root *r)
{
    return r->mode == 0755 && r->uid == 0 && r->gid == 0 && !r->has_xattrs;
}

/* Records by diff id without a root of their own were made above a default root. */
static int find_record(struct run *run, const char *diff_id, struct layer_record *ret)
{
    if (blobs_find(&run->blobs, false, diff_id, ret, NULL) == 0 &&
        (ret->layer.root_listed || root_is_default(&run->root)))
        return 0;
    return blobs_find(&run->blobs, true, run->chain, ret, NULL);
}

static int digest_of_piece(const struct piece *p, char text[DIGEST_TEXT_MAX], struct err *err)
{
    _cleanup_(stream_done) struct stream s = {0};

    stream_open_raw(&s, p);
    return stream_end(&s, text, NULL, err);
}

/* The bytes are what the digests say; decompressed only when it was never seen before. */
static int prove(struct run *run, const struct piece *piece, struct plan_layer *l, struct err *err)
{
    _cleanup_(stream_done) struct stream s = {0};
    char packed[DIGEST_TEXT_MAX], known[DIGEST_TEXT_MAX];
    int r;

    if ((r = digest_of_piece(piece, packed, err)) < 0 ||
        (r = check_digest("digest", l->packed, packed, err)) < 0)
        return r;
    if (str_eq(packed, l->diff_id) ||
        (blobs_packed_find(&run->blobs, packed, known) == 0 && str_eq(known, l->diff_id)))
        return 0;
    r = stream_open(&s, piece, INT64_MAX, err);
    return r < 0 ? r : verify(&s, l, err);
}

/* ---- one layer ---- */

static int convert_and_record(struct run *run, const struct piece *piece, struct plan_layer *l,
    struct layer_record *record, struct err *err)
{
    const char *id;
    bool by_chain;
    int r;

    r = convert(run, piece, l, record, err);
    if (r < 0)
        return r;
    if (run->chain[0] == '\0') /* a root file system: its diff id is known only now */
        digest_chain(NULL, l->diff_id, run->chain);
    by_chain = below_was_asked(run->below) ||
        (!record->layer.root_listed && !root_is_default(&run->root));
    id = by_chain ? run->chain : l->diff_id;
    r = blobs_record(&run->blobs, by_chain, id, record, err);
    if (r == 0 && !str_eq(l->packed, l->diff_id))
        r = blobs_packed_record(&run->blobs, l->packed, l->diff_id, err);
    return r;
}

static int obtain(struct run *run, const struct piece *piece, struct plan_layer *l,
    struct layer_record *record, struct err *err)
{
    int r;

    if (l->diff_id[0]) {
        char chain[DIGEST_TEXT_MAX];
        digest_chain(run->chain, l->diff_id, chain);
        STR_SET(run->chain, chain);
        r = blobs_lock(&run->blobs, l->diff_id, err);
        if (r < 0)
            return r;
        if (find_record(run, l->diff_id, record) == 0)
            return prove(run, piece, l, err);
    }
    return convert_and_record(run, piece, l, record, err);
}

/* A root file system brings no digest: its own, if it was seen before, tells the diff id. */
static int know_rootfs(
    struct run *run, const struct piece *piece, struct plan_layer *l, struct err *err)
{
    struct layer_record record;
    char known[DIGEST_TEXT_MAX];
    int r;

    r = digest_of_piece(piece, l->packed, err);
    if (r < 0)
        return r;
    if (blobs_packed_find(&run->blobs, l->packed, known) == 0)
        STR_SET(l->diff_id, known);
    else if (blobs_find(&run->blobs, false, l->packed, &record, NULL) == 0 ||
        blobs_find(&run->blobs, true, l->packed, &record, NULL) == 0)
        STR_SET(l->diff_id, l->packed);
    return 0;
}

static void take_limits(struct run *run, const struct layer_result *l)
{
    run->left.max_bytes -= MIN_OF(l->bytes, run->left.max_bytes);
    run->left.max_entries -= MIN_OF(l->entries, run->left.max_entries);
}

/* The same blob must not be twice in a stack (overlayfs: ELOOP); the upper one is enough, since it
 * shows or hides all that the lower one had. */
static void stack_layer(struct run *run, const struct layer_record *record, const char *diff_id)
{
    uint32_t n = 0;

    if (record->layer.opaque_root)
        run->done_count = 0;
    for (uint32_t i = 0; i < run->done_count; i++)
        if (!str_eq(run->done[i].digest, record->digest))
            run->done[n++] = run->done[i];
    run->done_count = n + 1;
    STR_SET(run->done[n].digest, record->digest);
    STR_SET(run->done[n].diff_id, diff_id);
    run->done[n].size = record->size;
    below_clear(run->below);
    for (uint32_t i = 0; i < run->done_count; i++) {
        _cleanup_free_ char *blob = blobs_path(&run->blobs, run->done[i].digest);
        below_push(run->below, blob);
    }
    run->root = record->layer.root;
    take_limits(run, &record->layer);
}

static int import_layer(struct run *run, struct plan_layer *l, struct err *err)
{
    struct layer_record record = {0};
    struct piece piece = {.fd = -1};
    int r;

    r = source_piece(run->source, l->member, &piece, err);
    if (r == 0 && !l->member)
        r = know_rootfs(run, &piece, l, err);
    if (r == 0)
        r = obtain(run, &piece, l, &record, err);
    if (r == 0 && !l->member && record.layer.entries == 0)
        r = err_set(err, -EINVAL, "no tar, or an empty one");
    piece_done(&piece);
    (void)blobs_lock(&run->blobs, NULL, NULL);
    if (r == 0)
        stack_layer(run, &record, l->diff_id);
    return r;
}

static int import_layers(struct run *run, struct err *err)
{
    for (uint32_t i = 0; i < run->plan.layer_count; i++) {
        struct plan_layer *l = &run->plan.layers[i];
        int r;

        run->layer = i + 1;
        tell(run, "unpack", 0);
        r = import_layer(run, l, err);
        if (r < 0 && !l->member)
            return err_prefix(err, "'%s'", run->opts->source);
        if (r < 0)
            return err_prefix(err, "layer %u of %u (%.19s)", i + 1, run->plan.layer_count,
                l->packed[0] ? l->packed : l->diff_id);
    }
    return 0;
}

/* ---- the image ---- */

static void finish_image(struct run *run)
{
    struct image *i = run->plan.run;
    const char *id = run->plan.id[0] ? run->plan.id : run->plan.layers[0].diff_id;
    const char *name = run->opts->name ? run->opts->name : run->plan.name;

    STR_SET(i->id, id);
    if (!name || image_ref_normal(name, i->name, NULL) < 0)
        i->name[0] = '\0';
    i->layers = xnew_array(struct assigned_layer, run->done_count);
    i->layer_count = run->done_count;
    for (uint32_t n = 0; n < run->done_count; n++) {
        STR_SET(i->layers[n].digest, run->done[n].digest);
        i->layers[n].size = run->done[n].size;
        i->size += run->done[n].size;
    }
    i->created_usec = clock_real_usec();
    tell_image(run, i);
}

static int fetch(struct run *run, char **ret_path, struct err *err)
{
    const struct import *o = run->opts;
    struct image_ref ref;
    struct fetch f = {
        .ref = &ref,
        .arch = o->arch,
        .auths = o->auths,
        .auths_from = o->auths_from,
        .insecure = o->insecure,
        .mirrors = o->mirrors,
        .cas = o->cas,
        .stall_usec = o->stall_usec,
        .max_bytes = o->limits.max_bytes,
        .progress = tell_fetch,
        .arg = run,
    };
    int r;

    if ((r = image_ref_parse(o->source, &ref, err)) < 0 ||
        (r = fetch_image(&f, run->scratch.path, err)) < 0)
        return r;
    *ret_path = xasprintf("%s/layout", run->scratch.path);
    return 0;
}

static int open_source(struct run *run, struct err *err)
{
    _cleanup_free_ char *fetched = NULL;
    const char *path = run->opts->source;
    int r;

    if (!run->opts->is_path) {
        r = fetch(run, &fetched, err);
        if (r < 0)
            return r;
        path = fetched;
    }
    r = source_open(path, run->scratch.path, run->opts->limits.max_bytes, &run->source, err);
    return r < 0 ? err_prefix(err, "'%s'", path) : 0;
}

static void run_done(struct run *run)
{
    below_free(run->below);
    plan_done(&run->plan);
    source_free(run->source);
    if (run->blobs.dir)
        blobs_done(&run->blobs);
    scratch_done(&run->scratch);
}

int import_run(const struct import *opts, struct err *err)
{
    _cleanup_(run_done) struct run run = {
        .opts = opts,
        .root = LAYER_ROOT_DEFAULT,
        .left = opts->limits,
    };
    int r;

    if ((r = scratch_make(opts->tmp, &run.scratch, err)) < 0 ||
        (r = blobs_open(opts->blobs, &run.blobs, err)) < 0)
        return r;
    run.below = below_new(run.scratch.path);
    if ((r = open_source(&run, err)) < 0 ||
        (r = plan_make(run.source, opts->arch, &run.plan, err)) < 0 ||
        (r = import_layers(&run, err)) < 0)
        return r;
    finish_image(&run);
    return 0;
}
