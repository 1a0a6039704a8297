/* Priorities, in whole numbers: the same book gives the same order on any machine. */
#include "sched/order.h"

#include "model/account.h"
#include "sched/sort.h"

#define SECOND UINT64_C(1000000)
#define DAY (86400 * SECOND)

/* 1000 * log2(n) by the bits of n and a line between powers of two. */
static int32_t log2_milli(uint64_t n)
{
    uint32_t top;
    uint64_t rest;

    if (n < 2)
        return 0;
    top = 63 - (uint32_t)__builtin_clzll(n);
    rest = top >= 10 ? n >> (top - 10) : n << (10 - top); /* 1024 to 2047 */
    return (int32_t)(top * 1000 + (rest - 1024) * 1000 / 1024);
}

uint64_t order_expected(const struct book_job *j)
{
    if (j->estimate)
        return MIN_OF(j->estimate, j->limit);
    return j->limit != BOOK_FOREVER ? j->limit : DAY;
}

uint64_t order_work(const struct book *b, const struct book_job *j)
{
    const struct shape *s = &b->shapes[j->shape];
    uint64_t milli = s->gpu_milli ? s->gpu_milli : s->cpu_milli / ORDER_CPUS_FOR_A_GPU;
    uint64_t seconds = MAX_OF(order_expected(j) / SECOND, UINT64_C(1));

    return MAX_OF(milli, UINT64_C(1)) * s->size * MIN_OF(seconds, UINT64_C(1) << 32);
}

int64_t order_priority(const struct book *b, const struct book_job *j,
    const struct order_options *o, uint64_t now_usec, struct order_factors *ret)
{
    uint64_t expected = MAX_OF(order_expected(j), SECOND);
    uint64_t wait = now_usec > j->submitted ? now_usec - j->submitted : 0;
    struct order_factors f;

    f.work = (int32_t)(-(int64_t)o->work * log2_milli(order_work(b, j)) / 1000);
    /* In 1024ths, so that the beginning counts too. */
    f.expansion = (int32_t)((int64_t)o->expansion *
        (log2_milli((wait / 1024 + expected / 1024) / MAX_OF(expected >> 20, UINT64_C(1))) -
            log2_milli((expected / 1024) / MAX_OF(expected >> 20, UINT64_C(1)))) /
        1000);
    f.age = (int32_t)((int64_t)o->age * (int64_t)(wait / SECOND) / 86400);
    f.fair = (int32_t)((int64_t)o->fair * b->tree.leaves[j->leaf].fair / 1000);
    f.nice = -j->nice;
    if (ret)
        *ret = f;
    return (int64_t)f.work + f.expansion + f.age + f.fair + f.nice;
}

/* --- fairness ----------------------------------------------------------------------------- */

/* What a running job's GPUs have done, weighted by model. */
static uint64_t used_by(const struct book *b, const struct book_job *j, uint64_t now_usec)
{
    const struct shape *s = book_shape_of(b, j);
    uint64_t seconds = now_usec > j->started ? (now_usec - j->started) / SECOND : 0, milli = 0;

    for (uint32_t i = 0; i < s->size && s->gpu_milli; i++) {
        const struct book_share *share = &j->shares[i];

        for (uint64_t bits = share->node == BOOK_NONE ? 0 : share->gpus; bits; bits &= bits - 1) {
            uint8_t model = b->nodes[share->node].model[__builtin_ctzll(bits)];
            milli += (uint64_t)share->milli * b->model_weight[model] / BOOK_WEIGHT;
        }
    }
    if (!s->gpu_milli)
        milli = (uint64_t)s->cpu_milli / ORDER_CPUS_FOR_A_GPU * s->size;
    return milli * seconds;
}

static void set_fairness(struct book *b, const struct order_options *o, uint64_t now_usec)
{
    struct tree *t = &b->tree;
    _cleanup_free_ uint64_t *used = NULL;

    if (!o->fair || t->leaf_count < 3) /* nobody, and somebody alone */
        return;
    used = xnew_array(uint64_t, t->leaf_count);
    for (uint32_t i = 0; i < t->leaf_count; i++) {
        const struct tree_leaf *l = &t->leaves[i];
        uint64_t past = now_usec > l->used_at ? now_usec - l->used_at : 0;

        used[i] = account_decay(l->used, past, o->half_life_usec);
    }
    book_for_each_job(i, b) if (b->jobs[i].state == JOB_RUNS)
        used[b->jobs[i].leaf] += used_by(b, &b->jobs[i], now_usec);
    tree_fairness(t, used);
}

/* --- the order ---------------------------------------------------------------------------- */

/* Greater priorities first. */
static uint64_t key_of(int64_t priority)
{
    return (uint64_t)INT64_MAX - (uint64_t)priority;
}

#define CLASS_OTHERS (UINT64_C(1) << 62) /* later than any time */

/* What comes before all points; less is earlier. Who others leave for comes by when they began to.
 */
static uint64_t class_of(const struct ledger *l, uint32_t job, const struct book_job *j)
{
    uint32_t models;
    uint64_t class = CLASS_OTHERS | (uint64_t)(UINT8_MAX - j->tier) << 2;

    if (j->claimed)
        return j->claimed;
    if (l->nothing)
        return class | (j->spot ? 2 : 1);
    return class | (ledger_ask(l, job, &models, NULL) == LEDGER_FIRM ? 1 : 2);
}

uint32_t *order_jobs(struct book *b, const struct ledger *l, const struct order_options *o,
    uint64_t now_usec, uint32_t *ret_count)
{
    _cleanup_free_ struct sort_item *items = xnew_array(struct sort_item, b->waiting);
    _cleanup_free_ uint64_t *keys = xnew_array(uint64_t, b->waiting);
    uint32_t *jobs = xnew_array(uint32_t, b->waiting), n = 0;

    set_fairness(b, o, now_usec);
    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];

        if (j->state != JOB_WAITS)
            continue;
        jobs[n] = i;
        keys[n] = key_of(order_priority(b, j, o, now_usec, NULL));
        items[n] = (struct sort_item){j->num, n};
        n++;
    }
    /* By number, then by priority, then by class, where equals stay in their order. */
    sort_items(items, n);
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct sort_item){keys[items[i].value], jobs[items[i].value]};
    sort_items(items, n);
    for (uint32_t i = 0; i < n; i++)
        items[i].key = class_of(l, items[i].value, &b->jobs[items[i].value]);
    sort_items(items, n);
    for (uint32_t i = 0; i < n; i++)
        jobs[i] = items[i].value;
    *ret_count = n;
    return jobs;
}
