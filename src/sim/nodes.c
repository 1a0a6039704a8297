/* The cluster of a replay: from a file of nodes, or so many equal ones. */
#include "base/str.h"
#include "base/strv.h"
#include "model/resources.h"
#include "sim/fields.h"
#include "sim/workload.h"

#define NODES_MAX 1000000

/* One node's fields into the book. */
static int add_node(struct book *b, const struct fields *f, const char *name, struct err *err)
{
    struct book_node n = {.name = (char *)name, .healthy = UINT64_MAX};
    const char *mem = fields_get(f, "mem"), *model = fields_get(f, "gpu_model");
    uint64_t cpus = 0, gpus = 0;
    uint8_t number = 0;
    int r = fields_number(f, "cpus", 1000, 0, &cpus, err);

    if (r == 0)
        r = fields_number(f, "gpus", 1, 0, &gpus, err);
    if (r == 0 && mem[0])
        r = size_parse(mem, &n.mem, err);
    if (r < 0)
        return r;
    if (gpus > SHAPE_GPUS_MAX || cpus > UINT32_MAX)
        return err_set(err, -ERANGE, "node '%.60s': cpus or gpus are out of range", name);
    if (book_switch(b, fields_get(f, "leaf"), &n.leaf) < 0 ||
        book_switch(b, fields_get(f, "spine"), &n.spine) < 0)
        return err_set(err, -ENOSPC, "there are more than %d switches", UINT16_MAX);
    if (gpus && book_model(b, model[0] ? model : "gpu", &number) < 0)
        return err_set(err, -ENOSPC, "there are more than %d GPU models", BOOK_MODELS_MAX);
    n.cpu_milli = (uint32_t)cpus;
    n.gpus = (uint32_t)gpus;
    n.group = workload_group(b, fields_get(f, "group"));
    memset(n.model, number, sizeof(n.model));
    if (!mem[0])
        n.mem = INT64_MAX; /* not said: not what is short */
    book_node_put(b, &n);
    return 0;
}

static int add_line(void *book, const struct fields *f, struct err *err)
{
    struct book *b = book;

    if (b->node_count == NODES_MAX)
        return err_set(err, -E2BIG, "there are more than %d nodes", NODES_MAX);
    return add_node(b, f, fields_get(f, "name"), err);
}

/* "cpus=96,mem=768G,gpus=8,gpu_model=v100" as columns and fields. */
static int read_words(struct columns *c, struct fields *f, char **words, struct err *err)
{
    strv_for_each (word, words) {
        char *eq = strchr(*word, '=');

        if (!eq || c->count == FIELDS_MAX)
            return err_set(err, -EINVAL, "'%.60s' is not NAME=VALUE", *word);
        *eq = '\0';
        c->names[c->count++] = xstrdup(*word);
        f->values[f->count++] = eq + 1;
    }
    return 0;
}

static int make_equal(struct book *b, uint64_t count, const char *text, struct err *err)
{
    _cleanup_(strv_freep) char **words = strv_split(text, ',');
    _cleanup_(columns_done) struct columns columns = {0};
    struct fields f = {.columns = &columns};
    int r = read_words(&columns, &f, words, err);

    for (uint64_t i = 0; r == 0 && i < count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "n%06ju", (uintmax_t)i + 1);
        r = add_node(b, &f, name, err);
    }
    return r;
}

int workload_nodes(struct book *b, const char *text, struct err *err)
{
    const char *x = strchr(text, 'x');
    char number[16];
    uint64_t count;
    size_t n = x ? (size_t)(x - text) : 0;

    if (n == 0 || n >= sizeof(number))
        return fields_each(text, add_line, b, err);
    memcpy(number, text, n);
    number[n] = '\0';
    if (str_to_u64(number, NODES_MAX, &count) < 0)
        return fields_each(text, add_line, b, err);
    return make_equal(b, count, x + 1 + strspn(x + 1, " "), err);
}
