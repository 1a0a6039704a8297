/* Columns are found by name: some lists have no gpu_spec. */
#include "openb.h"

#include "sim/fields.h"

#define MADE_UP 1000

/* Those that a list has in whole numbers below 2^31. */
static int number_of(const struct fields *f, const char *name, uint32_t *ret, struct err *err)
{
    uint64_t n;
    int r = fields_number(f, name, 1, 0, &n, err);

    if (r == 0 && n > INT32_MAX)
        r = err_set(err, -ERANGE, "'%s' is out of range", name);
    *ret = r == 0 ? (uint32_t)n : 0;
    return r;
}

static int add_node(void *arg, const struct fields *f, struct err *err)
{
    struct book_node n = {.name = (char *)fields_get(f, "sn"), .healthy = UINT64_MAX};
    uint32_t mib = 0;
    uint8_t model;
    int r = number_of(f, "cpu_milli", &n.cpu_milli, err);

    if (r == 0)
        r = number_of(f, "memory_mib", &mib, err);
    if (r == 0)
        r = number_of(f, "gpu", &n.gpus, err);
    if (r == 0 && n.gpus > SHAPE_GPUS_MAX)
        r = err_set(err, -ERANGE, "a node has %u GPUs", n.gpus);
    if (r == 0)
        r = book_model(arg, fields_get(f, "model"), &model);
    if (r < 0)
        return r;
    n.mem = (uint64_t)mib << 20;
    memset(n.model, model, sizeof(n.model));
    book_node_put(arg, &n);
    return 0;
}

int openb_nodes(struct book *b, const char *path, struct err *err)
{
    return fields_each(path, add_node, b, err);
}

static void add(struct requests *to, const struct shape *s)
{
    to->list = xgrow(to->list, &to->cap, to->count + 1, sizeof(*to->list));
    to->list[to->count++] = *s;
}

struct reading {
    struct book *book;
    struct requests *to;
};

static int add_request(void *arg, const struct fields *f, struct err *err)
{
    struct reading *reading = arg;
    struct shape s = {.size = 1};
    uint32_t mib = 0, gpus = 0, milli = 0;
    int r = number_of(f, "cpu_milli", &s.cpu_milli, err);

    if (r == 0)
        r = number_of(f, "memory_mib", &mib, err);
    if (r == 0)
        r = number_of(f, "num_gpu", &gpus, err);
    if (r == 0)
        r = number_of(f, "gpu_milli", &milli, err);
    if (r == 0)
        r = book_models(reading->book, fields_get(f, "gpu_spec"), &s.models);
    if (r == 0 && (gpus > SHAPE_GPUS_MAX || reading->to->count == OPENB_REQUESTS_MAX))
        r = err_set(err, -ERANGE, "%u GPUs, or the line after so many, are too many", gpus);
    if (r < 0)
        return r;
    s.mem = (uint64_t)mib << 20;
    s.gpu_milli = gpus == 1 && milli < SHAPE_WHOLE ? milli : gpus * SHAPE_WHOLE;
    add(reading->to, &s);
    return 0;
}

int openb_requests(struct book *b, const char *path, struct requests *ret, struct err *err)
{
    int r;

    *ret = (struct requests){0};
    r = fields_each(path, add_request, &(struct reading){b, ret}, err);
    if (r == 0 && ret->count == 0)
        r = err_set(err, -ENODATA, "'%s' has no request", path);
    return r;
}

void openb_made_up(struct prng *random, struct requests *ret)
{
    *ret = (struct requests){0};
    for (uint32_t i = 0; i < MADE_UP; i++) {
        struct shape s = {.size = 1};
        uint32_t times;

        if (i >= 130 && i < 510)
            s.gpu_milli = 50 * prng_range(random, 2, 18);
        else if (i >= 510)
            s.gpu_milli = SHAPE_WHOLE << (i < 980 ? 0 : i < 987 ? 1 : i < 994 ? 2 : 3);
        times = MAX_OF(shape_gpus(&s), 1u);
        s.cpu_milli = times * 1000 * prng_range(random, 4, 12);
        s.mem = (uint64_t)times * prng_range(random, 2, 8) << 33;
        add(ret, &s);
    }
}

void requests_shuffle(struct requests *r, struct prng *random)
{
    for (size_t i = r->count; i > 1; i--) {
        size_t k = prng_below(random, (uint32_t)i);
        struct shape s = r->list[i - 1];

        r->list[i - 1] = r->list[k];
        r->list[k] = s;
    }
}

void requests_done(struct requests *r)
{
    free(TAKE_PTR(r->list));
    *r = (struct requests){0};
}
