/*
 * The pass. Within it what is free only shrinks, so a shape that has found no room finds none
 * later, and one that was kept off by a reservation is kept off for every longer time, too: each
 * shape is tried a few times, not once for each job.
 */
#include "sched/pass.h"

const struct pass_options pass_default = {.order = {.work = 1000, .expansion = 500},
    .reservations = 16,
    .patience_usec = 86400 * UINT64_C(1000000),
    .turns_milli = 50};

/* Those that cannot run now, on nodes that are away, say, do not keep others from their turn. */
#define TURN_TRIES 4

/* What is known of a shape by now. */
struct known {
    bool no_room;
    uint64_t kept_off; /* jobs of this limit and longer; 0: not known */
    uint32_t blocker;
};

struct pass {
    struct book *book;
    struct place now;
    struct plan plan;
    struct known *known; /* by shape */
    struct book_share *shares;
    uint32_t share_cap;
    uint64_t now_usec;
};

static struct book_share *room_for(struct pass *p, uint32_t size)
{
    if (size > p->share_cap) {
        free(p->shares);
        p->shares = xnew_array(struct book_share, size);
        p->share_cap = size;
    }
    return p->shares;
}

static enum verdict try_now(struct pass *p, struct decision *d)
{
    const struct book_job *j = &p->book->jobs[d->job];
    struct known *k = &p->known[j->shape];
    int r;

    if (k->no_room)
        return VERDICT_RESOURCES;
    if (k->kept_off && j->limit >= k->kept_off) {
        d->blocker = k->blocker;
        return VERDICT_PRIORITY;
    }
    r = plan_place(
        &p->plan, &p->now, d->job, room_for(p, p->book->shapes[j->shape].size), &d->blocker);
    if (r == 0)
        return VERDICT_START;
    if (r == -EAGAIN) {
        k->kept_off = MAX_OF(j->limit, UINT64_C(1));
        k->blocker = d->blocker;
        return VERDICT_PRIORITY;
    }
    k->no_room = true;
    return VERDICT_RESOURCES;
}

/* What keeps it from being looked at at all. */
static bool is_kept(const struct pass *p, const struct book_job *j, uint8_t *ret)
{
    *ret = j->held ? VERDICT_HELD : VERDICT_BEGIN;
    return j->held || j->begin > p->now_usec;
}

static void decide(struct pass *p, struct decision *d)
{
    const struct book_job *j = &p->book->jobs[d->job];

    if (is_kept(p, j, &d->verdict))
        return;
    d->verdict = (uint8_t)try_now(p, d);
    if (d->verdict == VERDICT_START) {
        book_job_start(p->book, d->job, p->shares, p->now_usec);
        plan_started(&p->plan, d->job);
        d->start = p->now_usec;
    } else if (p->plan.count < p->plan.max && plan_reserve(&p->plan, &p->now, d->job)) {
        const struct reservation *r = &p->plan.list[p->plan.count - 1];

        d->start = r->start;
        book_job_plan(p->book, d->job, r->shares, r->start);
    } else if (j->shares) {
        book_job_plan(p->book, d->job, NULL, 0);
    }
}

/* --- turns --------------------------------------------------------------------------------- */

/* Who has waited longer; of those that came together, the first. */
static bool is_older(const struct book_job *a, const struct book_job *b)
{
    return a->submitted != b->submitted ? a->submitted < b->submitted : a->num < b->num;
}

/* Of jobs from first on: the one that has waited longest, beyond patience. BOOK_NONE: none. */
static uint32_t find_turn(
    const struct pass *p, const uint32_t *jobs, uint32_t first, uint32_t count, uint64_t patience)
{
    uint32_t best = BOOK_NONE;

    for (uint32_t i = first; i < count; i++) {
        const struct book_job *j = &p->book->jobs[jobs[i]];
        uint8_t kept;

        if (is_kept(p, j, &kept) || p->now_usec < j->submitted ||
            p->now_usec - j->submitted < patience)
            continue;
        if (best == BOOK_NONE || is_older(j, &p->book->jobs[jobs[best]]))
            best = i;
    }
    return best;
}

/* The cluster's GPUs in thousandths, or CPUs as order_work counts them where it has none. */
static uint64_t cluster_milli(const struct book *b)
{
    uint64_t gpus = 0, cpus = 0;

    for (uint32_t i = 0; i < b->node_count; i++) {
        if (b->nodes[i].closed)
            continue;
        gpus += SHAPE_WHOLE * (uint64_t)b->nodes[i].gpus;
        cpus += b->nodes[i].cpu_milli / ORDER_CPUS_FOR_A_GPU;
    }
    return MAX_OF(gpus ? gpus : cpus, UINT64_C(1));
}

/* Seconds in which that share of the cluster does the job's work. */
static uint64_t turn_usec(const struct book *b, uint32_t job, uint32_t share)
{
    double seconds = (double)order_work(b, &b->jobs[job]) * 1000 /
        ((double)cluster_milli(b) * (double)share);

    return (uint64_t)(MIN_OF(seconds, 1e9) * 1e6);
}

/* Jobs that have their turn are decided, and first in the list. How many. */
static uint32_t serve_turn(
    struct pass *p, const struct pass_options *o, uint32_t *jobs, struct pass_result *ret)
{
    uint32_t n = 0;

    if (!o->patience_usec || !o->turns_milli || p->now_usec < p->book->turn_at)
        return 0;
    while (n < TURN_TRIES) {
        uint32_t at = find_turn(p, jobs, n, ret->count, o->patience_usec), job;
        struct decision *d = &ret->list[n];

        if (at == BOOK_NONE)
            break;
        job = jobs[at];
        memmove(&jobs[n + 1], &jobs[n], (at - n) * sizeof(*jobs));
        jobs[n++] = job;
        d->job = job;
        decide(p, d);
        if (d->verdict == VERDICT_START)
            p->book->turn_at = p->now_usec + turn_usec(p->book, job, o->turns_milli);
        if (d->verdict == VERDICT_START || d->start)
            break;
    }
    return n;
}

void pass_run(
    struct book *b, const struct pass_options *o, uint64_t now_usec, struct pass_result *ret)
{
    struct pass p = {.book = b, .now_usec = now_usec};
    uint32_t turns;
    _cleanup_free_ uint32_t *jobs = order_jobs(b, &o->order, now_usec, &ret->count);

    ret->list = xnew_array(struct decision, ret->count);
    ret->started = 0;
    place_init(&p.now, b);
    plan_init(&p.plan, b, now_usec, o->reservations);
    p.known = xnew_array(struct known, b->shape_count);
    turns = serve_turn(&p, o, jobs, ret);
    for (uint32_t i = 0; i < ret->count; i++) {
        ret->list[i].job = jobs[i];
        if (i >= turns)
            decide(&p, &ret->list[i]);
        ret->started += ret->list[i].verdict == VERDICT_START;
    }
    ret->scanned = p.now.scanned;
    plan_done(&p.plan);
    place_done(&p.now);
    free(p.known);
    free(p.shares);
}

void pass_result_done(struct pass_result *r)
{
    free(TAKE_PTR(r->list));
}
