/*
 * Places. A name goes through its parents one by one: first as this layer has them, else as they
 * are below. A symbolic link among them is followed (its text is put before what is left), never
 * out of the root; a folder that is nowhere is made. The last part is never followed.
 */
#include "image/layer_path.h"

#include "base/str.h"

#define LINKS_MAX 40 /* as the kernel's */

int layer_failed(const char *raw, int code, const char *why, struct err *err)
{
    _cleanup_free_ char *shown = str_escape(raw, strlen(raw), 140);

    return err_set(err, code, "'%s': %s", shown, why);
}

bool layer_shows_below(const struct node *dir)
{
    for (; dir; dir = dir->parent)
        if (dir->opaque || dir->hidden || dir->type != NODE_DIR)
            return false;
    return true;
}

static int name_too_long(const struct layer *l, const char *raw, struct err *err)
{
    char why[64];

    snprintf(why, sizeof(why), "a part of the name is over %u bytes", l->limits->max_name);
    return layer_failed(raw, -ENAMETOOLONG, why, err);
}

static int path_too_long(const struct layer *l, const char *raw, struct err *err)
{
    char why[64];

    snprintf(why, sizeof(why), "the path is longer than %u bytes", l->limits->max_path);
    return layer_failed(raw, -ENAMETOOLONG, why, err);
}

int layer_path(const struct layer *l, const struct node *dir, const char *name,
    char ret[LAYER_PATH_MAX], struct err *err)
{
    size_t len, more = strlen(name);

    if (skeleton_path(dir, ret, LAYER_PATH_MAX) < 0)
        return path_too_long(l, name, err);
    len = strlen(ret);
    if (len + 1 + more > l->limits->max_path)
        return path_too_long(l, name, err);
    if (more == 0)
        return 0;
    if (len > 0)
        ret[len++] = '/';
    memcpy(ret + len, name, more + 1);
    return 0;
}

int layer_put(struct layer *l, const char *path, const struct item *i, struct err *err)
{
    if (++l->entries > l->limits->max_entries)
        return err_set(err, -EFBIG, "more than the limit of %llu entries",
            (unsigned long long)l->limits->max_entries);
    if (i->type == ITEM_FILE && i->size > l->limits->max_bytes - l->bytes)
        return err_set(err, -EFBIG, "its files are larger than the limit of %llu bytes",
            (unsigned long long)l->limits->max_bytes);
    l->bytes += i->type == ITEM_FILE ? i->size : 0;
    return l->out->ops->put(l->out, path, i, err);
}

struct node *layer_node_at(const struct layer *l, const struct place *p)
{
    if (p->name[0] == '\0')
        return p->dir;
    return skeleton_find(&l->names, p->dir, p->name, strlen(p->name));
}

/* ---- the walk ---- */

struct walk {
    const char *raw; /* for errors */
    struct node *at;
    char *rest; /* heap; what is still to go */
    unsigned links;
};

static int push_link(struct walk *w, const char *target, const char *rest, struct err *err)
{
    char *joined;

    if (++w->links > LINKS_MAX)
        return layer_failed(w->raw, -ELOOP, "too many symbolic links on the way", err);
    if (strlen(target) + strlen(rest) >= 4 * LAYER_PATH_MAX)
        return layer_failed(w->raw, -ENAMETOOLONG, "symbolic links make the path too long", err);
    joined = xasprintf("%s/%s", target, rest);
    free(w->rest);
    w->rest = joined;
    return 0;
}

static int imply_dir(
    struct layer *l, struct walk *w, struct node *n, struct item *attr, struct err *err)
{
    char path[LAYER_PATH_MAX];
    int r;

    r = layer_path(l, n, "", path, err);
    if (r < 0)
        return r;
    n->type = NODE_DIR;
    item_done(&n->attr);
    n->attr = *attr;
    *attr = (struct item){0};
    w->at = n;
    return layer_put(l, path, &n->attr, err);
}

/* A parent that this layer has not named. */
static int step_below(
    struct layer *l, struct walk *w, const char *name, const char *rest, struct err *err)
{
    _cleanup_(item_done) struct item attr = {0};
    struct node *n;
    char path[LAYER_PATH_MAX];
    int r = -ENOENT;

    if (skeleton_depth(w->at) >= l->limits->max_depth)
        return layer_failed(w->raw, -EINVAL, "folders are nested too deep", err);
    if (layer_shows_below(w->at)) {
        r = layer_path(l, w->at, name, path, err);
        if (r == 0)
            r = below_lookup(l->below, path, &attr, err);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    if (r == 0 && attr.type == ITEM_SYMLINK)
        return push_link(w, attr.target, rest, err);
    if (r < 0 || attr.type != ITEM_DIR) {
        item_done(&attr);
        attr = (struct item){.type = ITEM_DIR, .mode = 0755};
    }
    n = skeleton_add(&l->names, w->at, name, strlen(name), NODE_DIR);
    return imply_dir(l, w, n, &attr, err);
}

/* A parent that this layer has named. */
static int step_known(
    struct layer *l, struct walk *w, struct node *n, const char *rest, struct err *err)
{
    struct item attr = {.type = ITEM_DIR, .mode = 0755};

    switch (n->type) {
    case NODE_DIR:
        w->at = n;
        return 0;
    case NODE_SYMLINK:
        return push_link(w, n->attr.target, rest, err);
    case NODE_WHITEOUT:
        return imply_dir(l, w, n, &attr, err);
    default:
        return layer_failed(w->raw, -ENOTDIR, "a part of the path is no folder in this layer", err);
    }
}

/* The first part into name; returns what is behind it (inside w->rest), NULL if it is too long. */
static const char *next_part(
    const struct layer *l, const struct walk *w, char name[LAYER_NAME_MAX + 1])
{
    const char *start = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(start, "/");

    if (len > l->limits->max_name)
        return NULL;
    memcpy(name, start, len);
    name[len] = '\0';
    return start + len + strspn(start + len, "/");
}

static int step(
    struct layer *l, struct walk *w, const char *name, const char *rest, struct err *err)
{
    struct node *n;

    if (str_eq(name, ".") || name[0] == '\0')
        return 0;
    if (str_eq(name, "..")) {
        w->at = w->at->parent ? w->at->parent : w->at;
        return 0;
    }
    n = skeleton_find(&l->names, w->at, name, strlen(name));
    return n ? step_known(l, w, n, rest, err) : step_below(l, w, name, rest, err);
}

/* "a/./b/../c//" -> "a/c"; ".." stops at the root. Done on the text, before any link is followed,
 * as the tools that wrote and read such layers do. */
static char *normalise(const char *raw)
{
    char *out = xcalloc(1, strlen(raw) + 2);
    size_t len = 0;

    for (const char *p = raw; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0) {
            while (len > 0 && out[--len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && *p == '.')) {
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, p, n);
            len += n;
        }
        p += n + (p[n] == '/');
    }
    out[len] = '\0';
    return out;
}

int layer_find_place(struct layer *l, const char *raw, struct place *ret, struct err *err)
{
    _cleanup_free_ char *clean = normalise(raw);
    char *slash = strrchr(clean, '/');
    const char *last = slash ? slash + 1 : clean;
    struct walk w = {.raw = raw, .at = l->names.root};
    int r = 0;

    if (strlen(clean) > l->limits->max_path)
        return path_too_long(l, raw, err);
    if (strlen(last) > l->limits->max_name)
        return name_too_long(l, raw, err);
    w.rest = slash ? xstrndup(clean, (size_t)(slash - clean)) : xstrdup("");
    while (r == 0 && w.rest[0]) {
        char name[LAYER_NAME_MAX + 1];
        unsigned links = w.links;
        const char *rest = next_part(l, &w, name);

        if (!rest) {
            r = name_too_long(l, raw, err);
            break;
        }
        if (w.rest[0] == '/')
            w.at = l->names.root; /* an absolute link was put in front */
        r = step(l, &w, name, rest, err);
        if (r == 0 && w.links == links)
            memmove(w.rest, rest, strlen(rest) + 1);
    }
    free(w.rest);
    if (r < 0)
        return r;
    if (skeleton_depth(w.at) >= l->limits->max_depth)
        return layer_failed(raw, -EINVAL, "folders are nested too deep", err);
    ret->dir = w.at;
    STR_SET(ret->name, last);
    return 0;
}
