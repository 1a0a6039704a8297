/* The options of `muster up` that say what the cluster is, and their record. */
#include "cli/sizing.h"

#include "base/fs.h"
#include "base/strv.h"
#include "model/node.h"
#include "model/resources.h"

#define RECORD_MAX (1024 * 1024)
#define WORDS_MAX 4096

struct member {
    const char *name, *option;
    size_t offset;
};

static const struct member members[] = {
    {"nodes", "--nodes", offsetof(struct sizing, nodes)},
    {"node_cpus", "--node-cpus", offsetof(struct sizing, node_cpus)},
    {"node_mem", "--node-mem", offsetof(struct sizing, node_mem)},
    {"gpu", "--gpu", offsetof(struct sizing, gpu)},
};

static const char *get(const struct sizing *s, const struct member *m)
{
    return *(char *const *)((const char *)s + m->offset);
}

static void set(struct sizing *s, const struct member *m, const char *text)
{
    char **at = (char **)((char *)s + m->offset);

    free(*at);
    *at = xstrdup(text);
}

/* --- checks ------------------------------------------------------------------------------- */

int sizing_check_nodes(const char *value, struct err *err)
{
    uint64_t n;

    if (str_to_u64(value, CLUSTER_NODES_MAX, &n) < 0)
        return err_set(err, -EINVAL,
            "must be a number from 1 to %d, or 0 for this machine as the node", CLUSTER_NODES_MAX);
    return 0;
}

int sizing_check_gpu(const char *value, struct err *err)
{
    char model[NAME_MAX_LEN + 1];
    uint32_t count;

    if (str_eq(value, "auto") || str_eq(value, "none"))
        return 0;
    if (str_starts(value, GPU_FAKE) && gpu_fake_parse(value, model, &count, NULL) == 0)
        return 0;
    return err_set(err, -EINVAL,
        "must be auto, none, or fake:MODEL:COUNT with a count of 1 to %d, as in fake:h100:2",
        NODE_GPUS_MAX);
}

/* --- values ------------------------------------------------------------------------------- */

size_t sizing_nodes(const struct sizing *s)
{
    uint64_t n = 0;

    if (s->nodes)
        (void)str_to_u64(s->nodes, CLUSTER_NODES_MAX, &n);
    return n;
}

void sizing_merge(struct sizing *s, const struct sizing *old)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (!get(s, &members[i]))
            set(s, &members[i], get(old, &members[i]));
}

char *sizing_words(const struct sizing *s)
{
    struct buf b = BUF_INIT(WORDS_MAX);

    buf_puts(&b, "");
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (get(s, &members[i]))
            buf_printf(&b, "%s%s %s", b.len ? " " : "", members[i].option, get(s, &members[i]));
    return buf_take(&b);
}

static bool same_nodes(const char *asked, const char *now)
{
    uint64_t a, b;

    return str_to_u64(asked, UINT32_MAX, &a) == 0 && str_to_u64(now, UINT32_MAX, &b) == 0 && a == b;
}

static bool same_cpus(const char *asked, const char *now)
{
    uint32_t a, b;

    return cpus_parse(asked, &a, NULL) == 0 && cpus_parse(now, &b, NULL) == 0 && a == b;
}

static bool same_mem(const char *asked, const char *now)
{
    uint64_t a, b;

    return size_parse(asked, &a, NULL) == 0 && size_parse(now, &b, NULL) == 0 && a == b;
}

int sizing_check_same(const struct sizing *s, const struct cluster *c, struct err *err)
{
    char count[24];
    struct {
        const char *option, *asked, *now;
        bool (*same)(const char *asked, const char *now);
    } all[] = {
        {"--nodes", s->nodes, count, same_nodes},
        {"--node-cpus", s->node_cpus, c->node_cpus, same_cpus},
        {"--node-mem", s->node_mem, c->node_mem, same_mem},
        {"--gpu", s->gpu, c->gpu ? c->gpu : "auto", str_eq},
    };

    snprintf(count, sizeof(count), "%zu", cluster_is_virtual(c) ? c->count : 0);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].asked && !(all[i].now && all[i].same(all[i].asked, all[i].now)))
            return err_set(err, -EEXIST, "the cluster in '%s' is up already, %s %s%s%s", c->dir,
                all[i].now ? "with" : "without", all[i].option, all[i].now ? " " : "",
                all[i].now ? all[i].now : "");
    return 0;
}

/* --- the record --------------------------------------------------------------------------- */

static char *record_path(const char *dir)
{
    return xasprintf("%s/up.json", dir);
}

static void read_names(const json_t *list, char ***ret)
{
    const json_t *name;
    size_t i;

    json_array_foreach (list, i, name)
        if (json_is_string(name))
            strv_push(ret, json_string_value(name));
}

int made_load(const char *dir, struct made *ret, struct err *err)
{
    _cleanup_free_ char *path = record_path(dir), *text = NULL;
    _cleanup_(json_decrefp) json_t *o = NULL;
    size_t len;
    int r;

    *ret = (struct made){0};
    if (!fs_exists(path))
        return 0;
    r = fs_read(path, RECORD_MAX, &text, &len, err);
    if (r == 0)
        r = json_parse(text, len, RECORD_MAX, &o, err);
    if (r < 0)
        return err_prefix(err, "'%s'", path);
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        set(&ret->sizing, &members[i], json_str_or(o, members[i].name, NULL));
    ret->port = (uint16_t)json_u64_or(o, "port", 0);
    read_names(json_object_get(o, "names"), &ret->names);
    read_names(json_object_get(o, "former"), &ret->former);
    return 0;
}

int made_save(const char *dir, const struct made *m, struct err *err)
{
    _cleanup_(json_decrefp) json_t *o = json_object();
    _cleanup_free_ char *path = record_path(dir), *text = NULL;

    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        json_set_str(o, members[i].name, get(&m->sizing, &members[i]));
    json_set_u64(o, "port", m->port);
    json_set_strv(o, "names", m->names);
    json_set_strv(o, "former", m->former);
    text = json_dumps(o, JSON_INDENT(2));
    return fs_write_atomic(path, text, strlen(text), 0644, err);
}

void made_plan(struct made *m, const struct sizing *s, const struct cluster *c)
{
    char **names = NULL, **former = NULL, **before[] = {m->names, m->former};

    for (size_t i = 0; i < c->count; i++)
        strv_push(&names, c->nodes[i].name);
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        strv_for_each (name, before[i])
            if (!strv_has(names, *name) && !strv_has(former, *name))
                strv_push(&former, *name);
    strv_free(m->names);
    strv_free(m->former);
    m->port = c->port;
    m->names = names;
    m->former = former;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        set(&m->sizing, &members[i], get(s, &members[i]));
}
