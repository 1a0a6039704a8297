/* Rankings say what a search of all nodes says. A copy of a place has no rankings. */
#include "sched/place.h"
#include "support/cm.h"
#include "support/prng.h"

#define NODES 100
#define STEPS 4000
#define JOBS 512
#define SIZE_MAX_HERE 3

struct placed {
    struct shape shape;
    struct book_share shares[SIZE_MAX_HERE];
};

static void add_nodes(struct book *b)
{
    for (uint32_t i = 0; i < NODES; i++) {
        char name[16];
        struct book_node n = {.name = name,
            .cpu_milli = 32000,
            .mem = UINT64_C(1) << 38,
            .gpus = 4 + 4 * (i % 2),
            .healthy = UINT64_MAX,
            .leaf = (uint16_t)(1 + i * 7 % 9)};
        uint8_t model = 0;

        snprintf(name, sizeof(name), "n%03u", i);
        book_model(b, i % 3 ? "a100" : "h100", &model);
        memset(n.model, model, sizeof(n.model));
        book_node_put(b, &n);
    }
}

/* A few come often, others seldom. */
static struct shape draw(struct prng *random)
{
    bool often = prng_chance(random, 80);
    uint32_t gpus = prng_below(random, 4);

    return (struct shape){.cpu_milli = often ? 4000 : 500 * prng_range(random, 1, 40),
        .mem = UINT64_C(1) << 33,
        .gpu_milli = gpus == 3 ? 300 : gpus * SHAPE_WHOLE,
        .models = gpus && prng_chance(random, 20) ? 1 : 0,
        .size = prng_chance(random, 10) ? SIZE_MAX_HERE : 1,
        .single_node = prng_chance(random, 50)};
}

static void fill_mix(struct book *b, struct prng *random)
{
    for (uint32_t i = 0; i < 50; i++) {
        struct shape s = draw(random);

        book_job_add(b, &(struct book_job){.num = i + 1, .shape = book_shape(b, &s)});
    }
}

static void give_back(struct place *p, const struct placed *job)
{
    for (uint32_t i = 0; i < job->shape.size; i++)
        place_give(p, &job->shape, &job->shares[i]);
}

static void a_shape_that_comes_often_goes_where_a_search_of_all_nodes_puts_it(UNUSED void **state)
{
    struct prng random = {prng_seed("place_rank")};
    struct placed jobs[JOBS];
    struct book b;
    struct place p, copy = {0};
    uint32_t count = 0, refused = 0;

    book_init(&b);
    add_nodes(&b);
    fill_mix(&b, &random);
    place_init(&p, &b);
    for (uint32_t step = 0; step < STEPS; step++) {
        struct placed job = {.shape = draw(&random)}, other = job;
        bool placed;

        place_copy(&copy, &p, false);
        placed = place_job(&p, &job.shape, job.shares);
        assert_int_equal(place_job(&copy, &job.shape, other.shares), placed);
        refused += !placed;
        if (placed) {
            assert_memory_equal(job.shares, other.shares, sizeof(job.shares));
            assert_true(count < JOBS);
            jobs[count++] = job;
        }
        while (count > 0 && (count == JOBS || prng_chance(&random, 30))) {
            uint32_t at = prng_below(&random, count);

            give_back(&p, &jobs[at]);
            jobs[at] = jobs[--count];
        }
    }
    place_done(&copy);
    place_done(&p);
    book_done(&b);
    assert_true(refused > 0 && refused < STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shape_that_comes_often_goes_where_a_search_of_all_nodes_puts_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
