/* One import from begin to end: fetched, planned, its layers converted (layers.c), told. */
#include "image/import.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "image/blobs.h"
#include "image/fetch.h"
#include "image/layers.h"
#include "image/plan.h"
#include "image/sandbox.h"
#include "image/squash.h"

#define FETCH_MEMORY_MAX (UINT64_C(1) << 30)

struct run {
    const struct import *opts;
    struct scratch scratch;
    struct blobs blobs;
    struct source *source;
    struct plan plan;
    struct layers layers;
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

static void tell(void *arg, const char *step, uint32_t layer, uint64_t bytes, uint64_t total)
{
    const struct run *run = arg;
    json_t *j = json_object();

    json_set_str(j, "type", "progress");
    json_set_str(j, "step", step);
    json_set_u64(j, "layer", layer);
    json_set_u64(j, "layers", run->plan.layer_count);
    json_set_u64(j, "bytes", bytes);
    if (total)
        json_set_u64(j, "total", total);
    emit(run, j);
}

static void tell_fetch(void *arg, uint64_t bytes, uint64_t total)
{
    tell(arg, "fetch", 0, bytes, total);
}

static void tell_image(const struct run *run, struct image *i)
{
    json_t *j = json_object(), *image, *value;
    const char *key;

    json_set_str(j, "type", "image");
    image = image_to_json(i);
    for (uint32_t n = 0; n < run->layers.stack_count; n++)
        json_set_str(json_array_get(json_object_get(image, "layers"), n), "diff_id",
            run->layers.stack[n].diff_id);
    json_object_foreach (image, key, value)
        json_object_set(j, key, value);
    json_decref(image);
    emit(run, j);
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
    i->layers = xnew_array(struct assigned_layer, run->layers.stack_count);
    i->layer_count = run->layers.stack_count;
    for (uint32_t n = 0; n < run->layers.stack_count; n++) {
        STR_SET(i->layers[n].digest, run->layers.stack[n].digest);
        i->layers[n].size = run->layers.stack[n].size;
        i->size += run->layers.stack[n].size;
    }
    i->created_usec = clock_real_usec();
    tell_image(run, i);
}

static int fetch_here(void *arg, struct err *err)
{
    return fetch_image(arg, ".", err);
}

static int fetch(struct run *run, char **ret_path, struct err *err)
{
    const struct import *o = run->opts;
    const struct sandbox_limits limits = {o->limits.max_bytes, FETCH_MEMORY_MAX};
    _cleanup_free_ char *folder = xasprintf("%s/fetched", run->scratch.path);
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
        (r = sandbox_run(SANDBOX_NETWORK, folder, &limits, fetch_here, &f, err)) < 0)
        return r;
    *ret_path = xasprintf("%s/layout", folder);
    return 0;
}

static int open_source(struct run *run, struct err *err)
{
    const char *path = run->opts->source;
    uint64_t max = run->opts->limits.max_bytes;
    _cleanup_free_ char *made = NULL;
    int r = 0;

    if (!run->opts->is_path) {
        r = fetch(run, &made, err);
    } else if (squash_is_one(path)) {
        _cleanup_free_ char *folder = xasprintf("%s/squash", run->scratch.path);
        made = xasprintf("%s/rootfs.tar", folder);
        r = squash_to_tar(path, folder, max, err);
    }
    if (r == 0)
        r = source_open(made ? made : path, run->scratch.path, max, &run->source, err);
    return r < 0 && run->opts->is_path ? err_prefix(err, "'%s'", path) : r;
}

static int convert_layers(struct run *run, struct err *err)
{
    run->layers = (struct layers){
        .blobs = &run->blobs,
        .scratch = run->scratch.path,
        .source = run->source,
        .plan = &run->plan,
        .limits = run->opts->limits,
        .from = run->opts->source,
        .tell = tell,
        .arg = run,
    };
    return layers_convert(&run->layers, err);
}

static void run_done(struct run *run)
{
    layers_done(&run->layers);
    plan_done(&run->plan);
    source_free(run->source);
    if (run->blobs.dir)
        blobs_done(&run->blobs);
    scratch_done(&run->scratch);
}

int import_run(const struct import *opts, struct err *err)
{
    _cleanup_(run_done) struct run run = {.opts = opts};
    int r;

    if ((r = scratch_make(opts->tmp, &run.scratch, err)) < 0 ||
        (r = blobs_open(opts->blobs, &run.blobs, err)) < 0)
        return r;
    if ((r = open_source(&run, err)) < 0 ||
        (r = plan_make(run.source, opts->arch, &run.plan, err)) < 0 ||
        (r = convert_layers(&run, err)) < 0)
        return r;
    finish_image(&run);
    return 0;
}
