/*
 * The search works on a copy of what is free, to which victims give back what they have; only when
 * it has found some are book and plan touched, and put back as they were if the plan has no place
 * at that time after all.
 */
#include "sched/preempt.h"

#include "model/session.h"

struct candidate {
    uint32_t job;
    bool spot;
    uint8_t tier;
    uint64_t lost; /* milli-GPU-seconds (of CPUs / 8) of work */
    uint64_t milli, num;
};

struct search {
    const struct book *book;
    struct ledger *ledger;
    uint32_t job;
    const struct shape *shape;
    struct place free;
    struct book_share *shares; /* of the job, when it was placed */
    struct candidate *list;
    uint32_t count;
};

static uint64_t milli_of(const struct shape *s)
{
    return (uint64_t)(s->gpu_milli ? s->gpu_milli : s->cpu_milli / 8) * s->size;
}

/* Does what it has help the job at all? */
static bool is_useful(const struct book *b, const struct book_job *victim, const struct shape *want)
{
    const struct shape *have = book_shape_of(b, victim);

    for (uint32_t i = 0; i < have->size; i++) {
        uint32_t node = victim->shares[i].node;

        if (node != BOOK_NONE && usage_may(b, node, want, false) &&
            (!want->gpu_milli || victim->shares[i].gpus))
            return true;
    }
    return false;
}

static uint64_t free_from(const struct book_job *j, const struct preempt_options *o)
{
    return j->started + (j->spot ? o->spot_run_usec : o->min_run_usec);
}

static void collect(
    struct search *s, uint64_t now_usec, const struct preempt_options *o, uint64_t *ret_next)
{
    const struct book *b = s->book;

    s->list = xnew_array(struct candidate, b->running + 1);
    book_for_each_job(i, b)
    {
        const struct book_job *j = &b->jobs[i];
        uint64_t milli;

        if (j->state != JOB_RUNS || j->kind != KIND_TRAIN || !j->borrows || j->leaves ||
            !is_useful(b, j, s->shape))
            continue;
        if (free_from(j, o) > now_usec) {
            *ret_next = MIN_OF(*ret_next, free_from(j, o));
            continue;
        }
        milli = milli_of(book_shape_of(b, j));
        s->list[s->count++] = (struct candidate){.job = i,
            .spot = j->spot,
            .tier = j->tier,
            .lost = milli * ((now_usec - MIN_OF(j->started, now_usec)) / 1000000),
            .milli = milli,
            .num = j->num};
    }
}

/* Spot, then lowest service, least lost, largest (so that they are few), youngest. */
static int in_order(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->spot != y->spot)
        return x->spot ? -1 : 1;
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    if (x->lost != y->lost)
        return x->lost < y->lost ? -1 : 1;
    if (x->milli != y->milli)
        return x->milli > y->milli ? -1 : 1;
    return x->num > y->num ? -1 : x->num < y->num;
}

/* --- the choice ----------------------------------------------------------------------------- */

static void give_back(struct search *s, const struct candidate *c, bool back)
{
    const struct book_job *j = &s->book->jobs[c->job];
    const struct shape *shape = book_shape_of(s->book, j);

    ledger_leaves(s->ledger, c->job, back ? 1 : -1);
    for (uint32_t i = 0; i < shape->size; i++) {
        if (j->shares[i].node == BOOK_NONE)
            continue;
        if (back)
            place_give(&s->free, shape, &j->shares[i]);
        else
            place_take(&s->free, shape, &j->shares[i]);
    }
}

static bool fits(struct search *s)
{
    bool kept;

    if (!place_job(&s->free, s->shape, s->shares))
        return false;
    kept = ledger_keeps_guarantees(s->ledger, &s->free, s->job);
    for (uint32_t i = 0; i < s->shape->size; i++)
        place_give(&s->free, s->shape, &s->shares[i]);
    return kept;
}

/* As many as it takes. False: all together are not enough. */
static bool choose(struct search *s)
{
    uint32_t n = 0;

    if (s->count > 0)
        qsort(s->list, s->count, sizeof(*s->list), in_order);
    while (n < s->count) {
        give_back(s, &s->list[n++], true);
        if (fits(s)) {
            s->count = n;
            return true;
        }
    }
    return false;
}

/* The last one was needed when it came, with all before it: those before may not be. */
static void spare(struct search *s)
{
    uint32_t kept = 0;

    for (uint32_t i = s->count - 1; i-- > 0;) {
        give_back(s, &s->list[i], false);
        if (fits(s))
            s->list[i].job = BOOK_NONE;
        else
            give_back(s, &s->list[i], true);
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (s->list[i].job != BOOK_NONE)
            s->list[kept++] = s->list[i];
    s->count = kept;
}

/* --- telling book and plan ------------------------------------------------------------------ */

/* The plan may have another place for it than the search. */
static bool is_good(struct search *s, const struct reservation *r, uint64_t at)
{
    bool good;

    if (r->start > at)
        return false;
    for (uint32_t i = 0; i < s->shape->size; i++)
        place_take(&s->free, s->shape, &r->shares[i]);
    good = ledger_keeps_guarantees(s->ledger, &s->free, s->job);
    for (uint32_t i = 0; i < s->shape->size; i++)
        place_give(&s->free, s->shape, &r->shares[i]);
    return good;
}

static uint32_t *tell(struct book *b, struct plan *plan, struct place *now, uint32_t job,
    struct search *s, const struct preempt_options *o)
{
    _cleanup_free_ uint64_t *limits = xnew_array(uint64_t, s->count);
    uint32_t *victims = xnew_array(uint32_t, s->count);
    uint64_t at = plan->now + o->grace_usec;
    bool soon;

    for (uint32_t i = 0; i < s->count; i++) {
        struct book_job *j = &b->jobs[s->list[i].job];

        victims[i] = s->list[i].job;
        limits[i] = j->limit;
        j->limit = MIN_OF(j->limit, at - MIN_OF(j->started, at));
        plan_move_end(plan, victims[i]);
    }
    soon = plan_reserve(plan, now, job);
    if (soon && !is_good(s, &plan->list[plan->count - 1], at)) {
        plan_drop_last(plan, now);
        soon = false;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        struct book_job *j = &b->jobs[victims[i]];

        if (soon) {
            j->leaves = true;
            j->leaves_for = b->jobs[job].num;
        } else {
            j->limit = limits[i];
            plan_move_end(plan, victims[i]);
        }
    }
    if (soon)
        return victims;
    free(victims);
    return NULL;
}

uint32_t *preempt_for(struct book *b, struct ledger *l, struct plan *plan, struct place *now,
    uint32_t job, const struct preempt_options *o, uint32_t *ret_count, uint64_t *ret_next)
{
    struct search s = {
        .book = b, .ledger = l, .job = job, .shape = book_shape_of(b, &b->jobs[job])};
    uint32_t *victims = NULL;

    *ret_next = BOOK_FOREVER;
    *ret_count = 0;
    if (plan->count == plan->max)
        return NULL;
    plan_look_now(plan, now);
    collect(&s, plan->now, o, ret_next);
    s.shares = xnew_array(struct book_share, s.shape->size);
    place_copy(&s.free, now, false);
    if (choose(&s)) {
        spare(&s);
        victims = tell(b, plan, now, job, &s, o);
        *ret_count = victims ? s.count : 0;
    }
    for (uint32_t i = 0; !victims && i < s.count; i++)
        ledger_leaves(l, s.list[i].job, -1);
    place_done(&s.free);
    free(s.shares);
    free(s.list);
    return victims;
}
