/*
 * What can never fit is refused when it is asked for, with the shortfall. Nodes count as they are
 * when empty, up or not, drained or not, their GPUs healthy or not: all of that passes.
 */
#include "sched/fill.h"
#include "sched/reason.h"

/* One node of the group, as far as this session is concerned. */
struct room {
    const struct node *node;
    struct resources whole; /* gpus: of the model asked */
    uint32_t fits;
};

static struct room *find_rooms(
    const struct session *s, const struct node *const *nodes, size_t count, size_t *ret_count)
{
    struct room *rooms = xnew_array(struct room, count);
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (!str_eq(nodes[i]->group, s->group))
            continue;
        rooms[n].node = nodes[i];
        rooms[n].whole = nodes[i]->capacity;
        rooms[n].whole.gpus = MIN_OF(nodes[i]->capacity.gpus,
            (uint32_t)__builtin_popcountll(fill_gpus(nodes[i], s->gpu_model, false)));
        rooms[n].fits = resources_times(&s->each, &rooms[n].whole);
        n++;
    }
    *ret_count = n;
    return rooms;
}

/* The kinds of resource, in the order in which a shortfall is looked for. */
enum dimension { DIM_GPUS, DIM_CPUS, DIM_MEM, DIM_COUNT };

static uint64_t dim_get(const struct resources *r, enum dimension dim)
{
    switch (dim) {
    case DIM_GPUS:
        return r->gpus;
    case DIM_CPUS:
        return r->cpu_milli;
    default:
        return r->mem;
    }
}

/* An amount: "8", "0.5", "4 GiB". */
static const char *dim_amount(enum dimension dim, uint64_t n, char text[SIZE_TEXT_MAX])
{
    char cpus[CPUS_TEXT_MAX];

    if (dim == DIM_MEM)
        return size_format(n, text);
    if (dim == DIM_CPUS) {
        snprintf(text, SIZE_TEXT_MAX, "%s",
            n <= UINT32_MAX ? cpus_format((uint32_t)n, cpus) : "too many");
        return text;
    }
    snprintf(text, SIZE_TEXT_MAX, "%ju", (uintmax_t)n);
    return text;
}

/* What stands behind an amount: " h100 GPUs", " CPUs", "" (memory: the unit is in the amount). */
static const char *dim_unit(
    enum dimension dim, const struct session *s, char text[NAME_MAX_LEN + 8])
{
    if (dim == DIM_MEM)
        return " of memory";
    if (dim == DIM_CPUS)
        return " CPUs";
    snprintf(text, NAME_MAX_LEN + 8, "%s%s GPUs", s->gpu_model[0] ? " " : "", s->gpu_model);
    return text;
}

static const struct room *largest_room(const struct room *rooms, size_t count, enum dimension dim)
{
    const struct room *best = &rooms[0];

    for (size_t i = 1; i < count; i++) {
        uint64_t a = dim_get(&rooms[i].whole, dim), b = dim_get(&best->whole, dim);

        if (a > b || (a == b && strcmp(rooms[i].node->name, best->node->name) < 0))
            best = &rooms[i];
    }
    return best;
}

static uint64_t sum_rooms(const struct room *rooms, size_t count, enum dimension dim)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(sum, dim_get(&rooms[i].whole, dim), &sum))
            return UINT64_MAX;
    return sum;
}

/* n containers on one node need more of this than any node has. */
static int refuse_on_node(const struct session *s, uint32_t n, const struct room *room,
    enum dimension dim, struct err *err)
{
    char each[SIZE_TEXT_MAX], all[SIZE_TEXT_MAX], has[SIZE_TEXT_MAX], unit[NAME_MAX_LEN + 8];
    uint64_t want = dim_get(&s->each, dim);

    dim_amount(dim, want, each);
    dim_amount(dim, want * n, all);
    dim_amount(dim, dim_get(&room->whole, dim), has);
    if (n > 1)
        return err_set(err, -E2BIG,
            "asks for %u x %s%s = %s on one node; the largest node of group '%s' (%s) has %s", n,
            each, dim_unit(dim, s, unit), all, s->group, room->node->name, has);
    return err_set(err, -E2BIG,
        "asks for %s%s in one container; the largest node of group '%s' (%s) has %s", each,
        dim_unit(dim, s, unit), s->group, room->node->name, has);
}

static int refuse_in_sum(const struct session *s, uint64_t sum, enum dimension dim, struct err *err)
{
    char each[SIZE_TEXT_MAX], all[SIZE_TEXT_MAX], has[SIZE_TEXT_MAX], unit[NAME_MAX_LEN + 8];
    uint64_t want = dim_get(&s->each, dim);

    return err_set(err, -E2BIG, "asks for %u x %s%s = %s; the nodes of group '%s' have %s together",
        s->size, dim_amount(dim, want, each), dim_unit(dim, s, unit),
        dim_amount(dim, want * s->size, all), s->group, dim_amount(dim, sum, has));
}

/* Each dimension would do by itself, but they do not come together. */
static int refuse_in_shape(const struct session *s, uint32_t largest, struct err *err)
{
    char gang[REASON_GANG_MAX];

    reason_gang(s, gang);
    if (s->size == 1)
        return err_set(err, -E2BIG,
            "asks for %s in one container; no node of group '%s' has all of that", gang, s->group);
    return err_set(err, -E2BIG,
        "asks for %s%s; the nodes of group '%s' have room for %u when empty", gang,
        s->mode == MODE_SINGLE_NODE ? " on one node" : "", s->group, largest);
}

static bool has_model(const struct session *s, const struct room *rooms, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rooms[i].whole.gpus > 0)
            return true;
    return !s->gpu_model[0];
}

static bool has_gpu_before(const struct room *rooms, size_t end, const char *model)
{
    for (size_t i = 0; i < end; i++)
        if (fill_gpus(rooms[i].node, model, false))
            return true;
    return false;
}

/* The models that there are, each once (a node has one): "h100, a100". */
static void list_models(const struct room *rooms, size_t count, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const struct node *n = rooms[i].node;

        if (n->capacity.gpus > 0 && used < size && !has_gpu_before(rooms, i, n->gpus[0].model))
            used += (size_t)snprintf(
                text + used, size - used, "%s%s", used ? ", " : "", n->gpus[0].model);
    }
}

static int refuse_model(
    const struct session *s, const struct room *rooms, size_t count, struct err *err)
{
    char models[96];

    list_models(rooms, count, models, sizeof(models));
    return err_set(err, -E2BIG, "asks for %s GPUs; the nodes of group '%s' have %s%s", s->gpu_model,
        s->group, models[0] ? "these models: " : "no GPUs", models);
}

static int refuse(const struct session *s, const struct room *rooms, size_t count, uint32_t largest,
    struct err *err)
{
    /* What one node must hold: a container at least. */
    uint32_t on_node = s->mode == MODE_SINGLE_NODE ? s->size : 1;

    if (!has_model(s, rooms, count))
        return refuse_model(s, rooms, count, err);
    for (enum dimension dim = 0; dim < DIM_COUNT; dim++) {
        const struct room *room = largest_room(rooms, count, dim);

        if (dim_get(&s->each, dim) * on_node > dim_get(&room->whole, dim))
            return refuse_on_node(s, on_node, room, dim, err);
    }
    for (enum dimension dim = 0; dim < DIM_COUNT; dim++) {
        uint64_t sum = sum_rooms(rooms, count, dim);

        if (dim_get(&s->each, dim) * s->size > sum)
            return refuse_in_sum(s, sum, dim, err);
    }
    return refuse_in_shape(s, largest, err);
}

int sched_could_ever(const struct session *s, const struct node *const *nodes, size_t count,
    uint32_t *ret_largest, struct err *err)
{
    _cleanup_free_ struct room *rooms = NULL;
    uint64_t sum = 0, most = 0, largest;
    size_t n;

    rooms = find_rooms(s, nodes, count, &n);
    for (size_t i = 0; i < n; i++) {
        sum += rooms[i].fits;
        most = MAX_OF(most, rooms[i].fits);
    }
    largest = s->mode == MODE_SINGLE_NODE ? most : sum;
    *ret_largest = (uint32_t)MIN_OF(largest, (uint64_t)SESSION_SIZE_MAX);
    if (n == 0)
        return err_set(err, -ENOENT, "group '%s' has no node", s->group);
    return largest >= s->size ? 0 : refuse(s, rooms, n, *ret_largest, err);
}
