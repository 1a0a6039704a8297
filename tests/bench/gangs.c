/*
 * Where gangs lie on a real network: how many stay inside one leaf switch. Hosts of 8 GPUs are kept
 * full to a share of their GPUs while jobs come and go; every policy gets the same jobs in the same
 * order, and one that finds no room waits until others have ended.
 *
 * Of 10 jobs, 6 are one container of 1, 2, 4 or 8 GPUs, equally often, and 4 are gangs of whole
 * hosts: 16 of 40 gangs have 2 hosts, 12 have 4, 8 have 8, 4 have 16. Which job ends is random.
 *
 * A leaf is what the list calls ASW. The names of those come again under each PSW, and a list does
 * not say whether they are one switch then: with "nested" each is a leaf of its PSW only.
 *
 * Usage: bench_gangs HOSTS.csv flat|nested PERCENT GANGS SEED; prints a line of JSON for each
 * policy.
 */
#include "base/str.h"
#include "sched/place.h"
#include "sim/fields.h"
#include "support/prng.h"

#define GPUS 8
#define CPU_MILLI 96000
#define LINE_MAX_BYTES 4096
#define HOSTS_MAX 16 /* of a gang */
#define JOBS_MAX 65536

struct trial {
    struct book book;
    bool nested;
    uint32_t *by_network; /* nodes, leaf after leaf */
    uint32_t largest;     /* hosts of a leaf */
    uint32_t *jobs;       /* handles of those that run */
    uint32_t job_count;
    uint64_t used_milli;
    struct prng jobs_random, ends_random, random;
};

struct tally {
    uint64_t gangs; /* that the largest leaf could hold when empty */
    uint64_t in_leaf, in_spine, leaves;
    uint64_t roomy; /* gangs for which a leaf had room */
};

typedef bool place_fn(
    struct trial *t, struct place *p, const struct shape *s, struct book_share *shares);

/* --- hosts -------------------------------------------------------------------------------- */

/* Numbers from 1; leaves have names of two words. */
static uint16_t domain_number(struct book *b, const char *above, const char *name)
{
    char text[64];

    snprintf(text, sizeof(text), "%s%s%s", above, above[0] ? " " : "", name);
    return (uint16_t)(book_name(b, text) + 1);
}

static int read_hosts(struct book *b, const char *path, bool nested, struct err *err)
{
    _cleanup_(columns_done) struct columns columns = {0};
    struct fields f = {.columns = &columns};
    FILE *file = fopen(path, "re");
    char line[LINE_MAX_BYTES];

    if (!file)
        return err_sys(err, -errno, "cannot open '%s'", path);
    for (bool first = true; fgets(line, sizeof(line), file); first = false) {
        struct book_node n = {
            .cpu_milli = CPU_MILLI, .mem = UINT64_C(1) << 40, .gpus = GPUS, .healthy = UINT64_MAX};

        if (first) {
            columns_read(&columns, line, ',');
            continue;
        }
        fields_split(&f, line, ',');
        n.name = (char *)fields_get(&f, "ip");
        n.leaf = domain_number(b, nested ? fields_get(&f, "psw") : "any", fields_get(&f, "asw"));
        n.spine = domain_number(b, "", fields_get(&f, "psw"));
        book_node_put(b, &n);
    }
    fclose(file);
    return b->node_count ? 0 : err_set(err, -ENODATA, "'%s' has no host", path);
}

/* The leaf decides, and in a tree the spine before it. */
static uint64_t network_key(const struct trial *t, uint32_t node)
{
    const struct book_node *n = &t->book.nodes[node];

    return (uint64_t)(t->nested ? n->spine : 0) << 48 | (uint64_t)n->leaf << 32 | node;
}

static int by_network(const void *a, const void *b, void *arg)
{
    uint64_t x = network_key(arg, *(const uint32_t *)a), y = network_key(arg, *(const uint32_t *)b);

    return x < y ? -1 : x > y;
}

static void sort_by_network(struct trial *t)
{
    uint32_t run = 0;

    t->by_network = xnew_array(uint32_t, t->book.node_count);
    for (uint32_t i = 0; i < t->book.node_count; i++)
        t->by_network[i] = i;
    qsort_r(t->by_network, t->book.node_count, sizeof(uint32_t), by_network, t);
    for (uint32_t i = 0; i < t->book.node_count; i++) {
        uint32_t before = t->by_network[i ? i - 1 : 0];

        run = t->book.nodes[before].leaf == t->book.nodes[t->by_network[i]].leaf ? run + 1 : 1;
        t->largest = MAX_OF(t->largest, run);
    }
}

/* --- policies ----------------------------------------------------------------------------- */

static bool place_ours(
    struct trial *t UNUSED, struct place *p, const struct shape *s, struct book_share *shares)
{
    return place_job(p, s, shares);
}

static bool has_room(const struct place *p, uint32_t node, const struct shape *s)
{
    return usage_may(p->book, node, s, false) && usage_fits(&p->usage, node, s) > 0;
}

/* Container by container, each on the node that pick gives. */
static bool place_each(struct trial *t, struct place *p, const struct shape *s,
    struct book_share *shares,
    uint32_t (*pick)(struct trial *t, const struct place *p, const struct shape *s))
{
    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t node = pick(t, p, s);

        if (node == BOOK_NONE)
            return false;
        shares[i] = (struct book_share){
            .node = node, .milli = SHAPE_WHOLE, .gpus = usage_gpus(&p->usage, node, s)};
        place_take(p, s, &shares[i]);
    }
    return true;
}

static uint32_t pick_random(struct trial *t, const struct place *p, const struct shape *s)
{
    uint32_t seen = 0, chosen = BOOK_NONE;

    for (uint32_t i = 0; i < p->book->node_count; i++)
        if (has_room(p, i, s) && prng_below(&t->random, ++seen) == 0)
            chosen = i;
    return chosen;
}

static uint32_t pick_first(struct trial *t UNUSED, const struct place *p, const struct shape *s)
{
    for (uint32_t i = 0; i < p->book->node_count; i++)
        if (has_room(p, i, s))
            return i;
    return BOOK_NONE;
}

static uint32_t pick_next(struct trial *t, const struct place *p, const struct shape *s)
{
    for (uint32_t i = 0; i < p->book->node_count; i++)
        if (has_room(p, t->by_network[i], s))
            return t->by_network[i];
    return BOOK_NONE;
}

static bool place_random(
    struct trial *t, struct place *p, const struct shape *s, struct book_share *shares)
{
    return place_each(t, p, s, shares, pick_random);
}

static bool place_first(
    struct trial *t, struct place *p, const struct shape *s, struct book_share *shares)
{
    return place_each(t, p, s, shares, pick_first);
}

static bool place_next(
    struct trial *t, struct place *p, const struct shape *s, struct book_share *shares)
{
    return place_each(t, p, s, shares, pick_next);
}

/* --- jobs come and go --------------------------------------------------------------------- */

static struct shape draw(struct trial *t)
{
    uint32_t n = prng_below(&t->jobs_random, 100);
    uint32_t size = n < 60 ? 1 : n < 76 ? 2 : n < 88 ? 4 : n < 96 ? 8 : HOSTS_MAX;
    uint32_t gpus = n < 60 ? 1u << (n % 4) : GPUS;

    return (struct shape){.cpu_milli = gpus * 10000,
        .mem = (uint64_t)gpus << 36,
        .gpu_milli = gpus * SHAPE_WHOLE,
        .size = size};
}

static void end_one(struct trial *t)
{
    uint32_t at = prng_below(&t->ends_random, t->job_count);
    const struct shape *s = book_shape_of(&t->book, &t->book.jobs[t->jobs[at]]);

    t->used_milli -= (uint64_t)s->gpu_milli * s->size;
    book_job_remove(&t->book, t->jobs[at]);
    t->jobs[at] = t->jobs[--t->job_count];
}

/* Has any leaf as many free hosts? */
static bool is_roomy(const struct book *b, const struct shape *s)
{
    _cleanup_free_ uint32_t *room = xnew_array(uint32_t, UINT16_MAX + 1);
    struct usage u = {0};
    bool found = false;

    usage_init(&u, b);
    for (uint32_t i = 0; i < b->node_count; i++) {
        room[b->nodes[i].leaf] += usage_fits(&u, i, s);
        found |= room[b->nodes[i].leaf] >= s->size;
    }
    usage_done(&u);
    return found;
}

static void count(
    struct tally *y, const struct book *b, const struct shape *s, const struct book_share *shares)
{
    bool one_spine = true;
    uint32_t leaves = 0;

    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t k = 0;

        while (b->nodes[shares[k].node].leaf != b->nodes[shares[i].node].leaf)
            k++;
        leaves += k == i;
        one_spine &= b->nodes[shares[i].node].spine == b->nodes[shares[0].node].spine;
    }
    y->gangs++;
    y->leaves += leaves;
    y->in_leaf += leaves == 1;
    y->in_spine += one_spine;
}

/* One job, as in a pass that has it alone. */
static bool try_job(struct trial *t, uint32_t job, place_fn *place, struct book_share *shares)
{
    struct place p;
    bool placed;

    place_init(&p, &t->book);
    placed = place(t, &p, book_shape_of(&t->book, &t->book.jobs[job]), shares);
    place_done(&p);
    if (placed)
        book_job_start(&t->book, job, shares, 0);
    return placed;
}

static void run(struct trial *t, uint32_t percent, uint64_t gangs, place_fn *place, struct tally *y)
{
    uint64_t most = (uint64_t)t->book.node_count * GPUS * SHAPE_WHOLE / 100 * percent;
    bool filled = false;

    while (y->gangs < gangs) {
        struct shape s = draw(t);
        uint32_t job = book_job_add(&t->book,
            &(struct book_job){.num = t->book.job_count + 1, .shape = book_shape(&t->book, &s)});
        struct book_share shares[HOSTS_MAX];
        bool roomy;

        for (; t->used_milli + (uint64_t)s.gpu_milli * s.size > most; filled = true)
            end_one(t);
        for (roomy = is_roomy(&t->book, &s); !try_job(t, job, place, shares);
             roomy = is_roomy(&t->book, &s))
            end_one(t);
        assert(t->job_count < JOBS_MAX);
        t->jobs[t->job_count++] = job;
        t->used_milli += (uint64_t)s.gpu_milli * s.size;
        if (!filled || s.size == 1 || s.size > t->largest)
            continue;
        y->roomy += roomy;
        count(y, &t->book, &s, shares);
    }
}

static int run_policy(
    char **argv, const uint64_t numbers[3], place_fn *place, struct tally *y, struct err *err)
{
    struct trial t = {.nested = str_eq(argv[2], "nested"),
        .jobs = xnew_array(uint32_t, JOBS_MAX),
        .jobs_random = {numbers[2]},
        .ends_random = {numbers[2] + 1},
        .random = {numbers[2] + 2}};
    int r;

    book_init(&t.book);
    r = read_hosts(&t.book, argv[1], t.nested, err);
    if (r == 0) {
        sort_by_network(&t);
        run(&t, (uint32_t)numbers[0], numbers[1], place, y);
    }
    free(t.by_network);
    free(t.jobs);
    book_done(&t.book);
    return r;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        place_fn *place;
    } policies[] = {{"ours", place_ours},
        {"first-fit, hosts in the order of the network", place_next},
        {"first-fit, hosts by name", place_first}, {"random", place_random}};
    struct err err = ERR_INIT;
    uint64_t numbers[3]; /* percent, gangs, seed */
    bool ok = argc == 6 && (str_eq(argv[2], "flat") || str_eq(argv[2], "nested"));

    for (int i = 0; ok && i < 3; i++)
        ok = str_to_u64(argv[i + 3], i == 0 ? 99 : 10000000, &numbers[i]) == 0;
    if (!ok) {
        fprintf(stderr, "usage: bench_gangs HOSTS.csv flat|nested PERCENT GANGS SEED\n");
        return 2;
    }
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        struct tally y = {0};

        if (run_policy(argv, numbers, policies[i].place, &y, &err) < 0) {
            fprintf(stderr, "bench_gangs: %s\n", err_text(&err));
            return 1;
        }
        printf("{\"policy\": \"%s\", \"gangs\": %ju, \"in_leaf\": %ju, \"roomy\": %ju, "
               "\"in_spine\": %ju, \"leaves\": %ju}\n",
            policies[i].name, (uintmax_t)y.gangs, (uintmax_t)y.in_leaf, (uintmax_t)y.roomy,
            (uintmax_t)y.in_spine, (uintmax_t)y.leaves);
    }
    return 0;
}
