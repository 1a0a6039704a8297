/*
 * Reservations. What a node can give to a job for its whole time is the least that it has free at
 * any moment of it. That is what is free at its start, but on nodes with reservations: there each
 * start of a reservation counts, too. For the time of a try those nodes are seen as that least (the
 * view).
 *
 * The way into the future is a walk over the ends of jobs: at each, what the job had is given back,
 * and as soon as there is room it is tried to place the job.
 */
#include "sched/plan.h"

/* A node that cannot be reached (its agent restarts, the manager has just started) is planned with
 * from then on: what is told to those that wait holds over a restart. */
#define AWAY_USEC (60 * UINT64_C(1000000))

static uint64_t end_of(uint64_t start, uint64_t limit)
{
    return limit > BOOK_FOREVER - start ? BOOK_FOREVER : start + limit;
}

/* When a running job is over at the latest. One that is over its limit ends any moment. */
static uint64_t job_end(const struct plan *p, uint32_t job)
{
    const struct book_job *j = &p->book->jobs[job];

    return MAX_OF(end_of(j->started, j->limit), p->now + 1);
}

static void add_end(struct plan *p, uint32_t job)
{
    uint64_t at = job_end(p, job);

    if (at == BOOK_FOREVER)
        return;
    p->ends = xgrow(p->ends, &p->end_cap, p->end_count + 1, sizeof(*p->ends));
    p->ends[p->end_count++] = (struct sort_item){at, job};
    p->sorted = false;
}

/* Count, then fill: the shares of running jobs by their nodes. */
static void index_nodes(struct plan *p)
{
    const struct book *b = p->book;
    uint32_t total = 0;

    p->first = xnew_array(uint32_t, b->node_count + 2);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t e = 0; e < p->end_count; e++) {
            const struct book_job *j = &b->jobs[p->ends[e].value];

            for (uint32_t k = 0; k < b->shapes[j->shape].size; k++) {
                uint32_t node = j->shares[k].node;

                if (node == BOOK_NONE)
                    continue;
                if (fill)
                    p->node_ends[p->first[node + 1]++] = (struct plan_node_end){
                        p->ends[e].key, p->ends[e].value, k};
                else
                    p->first[node + 2]++, total++;
            }
        }
        if (fill)
            break;
        p->node_ends = xnew_array(struct plan_node_end, total + 1);
        for (uint32_t i = 2; i < b->node_count + 2; i++)
            p->first[i] += p->first[i - 1];
    }
}

static void hold_node(struct plan *p, uint32_t node)
{
    if (p->held_at[node])
        return;
    p->held[p->held_count++] = node;
    p->held_at[node] = p->held_count;
}

/* Nodes that are closed at some time to come are looked at like those with reservations. */
static void find_closing(struct plan *p)
{
    p->closing = xnew_array(uint32_t, p->book->node_count + 1);
    for (uint32_t i = 0; i < p->book->node_count; i++) {
        const struct book_node *n = &p->book->nodes[i];

        if (n->close_to <= n->close_from || n->close_to <= p->now)
            continue;
        p->closing[p->closing_count++] = i;
        hold_node(p, i);
    }
}

void plan_init(struct plan *p, const struct book *b, uint64_t now_usec, uint32_t reservations)
{
    *p = (struct plan){
        .book = b, .now = now_usec, .max = MIN_OF(reservations, (uint32_t)PLAN_RESERVATIONS_MAX)};
    p->list = xnew_array(struct reservation, p->max + 1);
    p->held = xnew_array(uint32_t, b->node_count + 1);
    p->held_at = xnew_array(uint32_t, b->node_count + 1);
    p->last_started = xnew_array(uint32_t, b->node_count + 1);
    for (uint32_t i = 0; i < b->job_count; i++)
        if (b->jobs[i].state == JOB_RUNS)
            add_end(p, i);
    p->back_at = BOOK_FOREVER;
    for (uint32_t i = 0; i < b->node_count; i++)
        if (b->nodes[i].closed == BOOK_UNREACHABLE)
            p->back_at = now_usec + AWAY_USEC;
    index_nodes(p);
    find_closing(p);
}

void plan_done(struct plan *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        free(p->list[i].shares);
    free(p->list);
    free(p->ends);
    free(p->node_ends);
    free(p->closing);
    free(p->first);
    free(p->started);
    free(p->held);
    free(p->held_at);
    free(p->last_started);
    free(p->saved);
    place_done(&p->future);
}

void plan_started(struct plan *p, uint32_t job)
{
    const struct book_job *j = &p->book->jobs[job];
    uint32_t size = p->book->shapes[j->shape].size;

    add_end(p, job);
    p->started = xgrow(p->started, &p->started_cap, p->started_count + size, sizeof(*p->started));
    for (uint32_t k = 0; k < size; k++) {
        uint32_t *last;

        if (j->shares[k].node == BOOK_NONE)
            continue;
        last = &p->last_started[j->shares[k].node];
        p->started[p->started_count++] = (struct plan_started){{job_end(p, job), job, k}, *last};
        *last = p->started_count;
    }
}

static void move_end(struct plan_node_end *e, uint32_t job, uint64_t at)
{
    if (e->job == job)
        e->at = at;
}

void plan_move_end(struct plan *p, uint32_t job)
{
    const struct book_job *j = &p->book->jobs[job];
    uint64_t at = job_end(p, job);
    bool known = false;

    for (uint32_t i = 0; i < p->end_count; i++)
        if (p->ends[i].value == job) {
            p->ends[i].key = at;
            known = true;
        }
    p->sorted = false;
    if (!known) { /* it had no end */
        plan_started(p, job);
        return;
    }
    for (uint32_t k = 0; k < p->book->shapes[j->shape].size; k++) {
        uint32_t node = j->shares[k].node;

        if (node == BOOK_NONE)
            continue;
        for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++)
            move_end(&p->node_ends[i], job, at);
        for (uint32_t i = p->last_started[node]; i; i = p->started[i - 1].next)
            move_end(&p->started[i - 1].end, job, at);
    }
}

/* --- what a node has for a whole time ------------------------------------------------------ */

static const struct shape *shape_of(const struct plan *p, uint32_t job)
{
    return book_shape_of(p->book, &p->book->jobs[job]);
}

static void give_if_ended(const struct plan *p, const struct plan_node_end *e,
    const struct book_node *of, uint64_t at, struct usage_node *u)
{
    if (e->at <= at)
        usage_node_add(u, of, shape_of(p, e->job), &p->book->jobs[e->job].shares[e->share], 1);
}

static void give_ended(const struct plan *p, uint32_t node, uint64_t at, struct usage_node *u)
{
    const struct book_node *of = &p->book->nodes[node];

    for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++)
        give_if_ended(p, &p->node_ends[i], of, at, u);
    for (uint32_t i = p->last_started[node]; i; i = p->started[i - 1].next)
        give_if_ended(p, &p->started[i - 1].end, of, at, u);
}

static bool is_closed(const struct book_node *n, uint64_t at)
{
    return n->close_to > n->close_from && n->close_from <= at && n->close_to > at;
}

static void take_reserved(const struct plan *p, uint32_t node, uint64_t at, struct usage_node *u)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const struct reservation *r = &p->list[i];
        const struct shape *s = shape_of(p, r->job);

        for (uint32_t k = 0; r->start <= at && r->end > at && k < s->size; k++)
            if (r->shares[k].node == node)
                usage_node_add(u, &p->book->nodes[node], s, &r->shares[k], -1);
    }
}

/* What is free at one time, given what is free now. */
static struct usage_node free_at(
    const struct plan *p, uint32_t node, const struct usage_node *now, uint64_t at)
{
    struct usage_node u = *now;

    if (is_closed(&p->book->nodes[node], at))
        return (struct usage_node){0};
    give_ended(p, node, at, &u);
    take_reserved(p, node, at, &u);
    return u;
}

/* The least that is free in [at, end). */
static struct usage_node least_free(
    const struct plan *p, uint32_t node, const struct usage_node *now, uint64_t at, uint64_t end)
{
    struct usage_node least = free_at(p, node, now, at);
    const struct book_node *of = &p->book->nodes[node];

    if (of->close_to > of->close_from && of->close_from >= at && of->close_from < end)
        return (struct usage_node){0};
    for (uint32_t i = 0; i < p->count; i++) {
        const struct reservation *r = &p->list[i];
        struct usage_node then;

        if (r->start <= at || r->start >= end)
            continue;
        then = free_at(p, node, now, r->start);
        usage_node_min(&least, &then, &p->book->nodes[node]);
    }
    return least;
}

/* --- the view ------------------------------------------------------------------------------ */

static void hold_nodes(struct plan *p, const struct reservation *r)
{
    uint32_t size = shape_of(p, r->job)->size;

    for (uint32_t k = 0; k < size; k++)
        hold_node(p, r->shares[k].node);
}

static void view_release(struct plan *p, struct place *now)
{
    for (uint32_t i = 0; p->viewed && i < p->held_count; i++)
        place_set(now, p->held[i], &p->saved[i]);
    p->viewed = false;
}

/* Is there a reservation that starts between the two? Then they are different to a node. */
static bool is_between(const struct plan *p, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->list[i].start >= MIN_OF(a, b) && p->list[i].start < MAX_OF(a, b))
            return true;
    for (uint32_t i = 0; i < p->closing_count; i++) {
        uint64_t from = p->book->nodes[p->closing[i]].close_from;
        if (from >= MIN_OF(a, b) && from < MAX_OF(a, b))
            return true;
    }
    return false;
}

/* Nodes with reservations as they are for a job that runs from now to end. */
static void view_now(struct plan *p, struct place *now, uint64_t end)
{
    if (p->viewed && !is_between(p, p->view_end, end))
        return;
    view_release(p, now);
    p->saved = xgrow(p->saved, &p->saved_cap, p->held_count, sizeof(*p->saved));
    for (uint32_t i = 0; i < p->held_count; i++) {
        struct usage_node least;

        p->saved[i] = now->usage.nodes[p->held[i]];
        least = least_free(p, p->held[i], &p->saved[i], p->now, end);
        place_set(now, p->held[i], &least);
    }
    p->viewed = true;
    p->view_end = end;
}

/* What was placed in the view is taken from what is free, too. The view stays: at all times that it
 * has seen, the job that it was made for still runs. */
static void view_placed(struct plan *p, const struct shape *s, const struct book_share *shares)
{
    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t node = shares[i].node, at = p->held_at[node];

        if (at)
            usage_node_add(&p->saved[at - 1], &p->book->nodes[node], s, &shares[i], -1);
    }
}

void plan_look_now(struct plan *p, struct place *now)
{
    view_release(p, now);
}

/* Its nodes stay among those that are looked at twice: that is only slower. */
void plan_drop_last(struct plan *p, struct place *now)
{
    view_release(p, now);
    free(p->list[--p->count].shares);
}

/* --- now ----------------------------------------------------------------------------------- */

/* Is there a place without reservations, for one that sums do not tell of? The view is gone then.
 */
static bool has_place(
    struct plan *p, struct place *now, const struct shape *s, struct book_share *shares)
{
    bool room;

    view_release(p, now);
    room = place_job(now, s, shares);
    for (uint32_t i = 0; room && i < s->size; i++)
        place_give(now, s, &shares[i]);
    return room;
}

/* It was not placed in the view. Would it have been without reservations? */
static bool has_room(const struct plan *p, const struct place *now, const struct shape *s)
{
    uint64_t room = now->room;

    for (uint32_t i = 0; i < p->held_count; i++) {
        uint32_t node = p->held[i], fits;

        if (!usage_may(p->book, node, s, now->later))
            continue;
        fits = usage_node_fits(&p->saved[i], &p->book->nodes[node], s);
        if (s->single_node && fits >= s->size)
            return true;
        room += fits;
        room -= usage_fits(&now->usage, node, s);
    }
    return !s->single_node && room >= s->size;
}

/* Where it was planned, for others are planned around that. */
static bool place_planned(
    struct place *now, const struct book_job *j, const struct shape *s, struct book_share *shares)
{
    if (!j->shares || !place_exactly(now, s, j->shares))
        return false;
    memcpy(shares, j->shares, s->size * sizeof(*shares));
    return true;
}

/* The job whose reservation is the first that would be in the way. */
static uint32_t first_blocker(const struct plan *p, uint64_t end)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->list[i].start < end)
            return p->list[i].job;
    return BOOK_NONE;
}

int plan_place(struct plan *p, struct place *now, uint32_t job, struct book_share *shares,
    uint32_t *ret_blocker)
{
    const struct book_job *j = &p->book->jobs[job];
    const struct shape *s = book_shape_of(p->book, j);
    uint64_t end = end_of(p->now, j->limit);

    view_now(p, now, end);
    if (place_planned(now, j, s, shares) || place_job(now, s, shares)) {
        view_placed(p, s, shares);
        return 0;
    }
    if (p->held_count == 0)
        return -ENOSPC;
    if (s->switches ? !has_place(p, now, s, shares) : !has_room(p, now, s))
        return -ENOSPC;
    *ret_blocker = first_blocker(p, end);
    return -EAGAIN;
}

/* --- the walk ------------------------------------------------------------------------------ */

struct walk {
    struct plan *plan;
    const struct place *now;
    struct place *future;
    const struct shape *shape;
    uint32_t *fits; /* of each node */
    uint64_t total; /* containers that there is room for */
    uint32_t hosts; /* nodes that have room for all */
    uint32_t next;  /* end that comes next */
};

static void count_node(struct walk *w, uint32_t node)
{
    const struct shape *s = w->shape;
    uint32_t fits;

    if (node == BOOK_NONE)
        return;
    fits = place_fits(w->future, node, s);
    w->total += fits;
    w->total -= w->fits[node];
    w->hosts += fits >= s->size;
    w->hosts -= w->fits[node] >= s->size;
    w->fits[node] = fits;
}

static void walk_init(struct walk *w, struct plan *p, struct place *now, const struct shape *s)
{
    uint32_t count;

    *w = (struct walk){.plan = p, .now = now, .future = &p->future, .shape = s};
    place_copy(w->future, now, p->back_at != BOOK_FOREVER);
    w->fits = xnew_array(uint32_t, p->book->node_count);
    count = place_scan(w->future, s, &w->total);
    for (uint32_t i = 0; i < count; i++) {
        const struct place_candidate *c = &w->future->list[i];

        w->fits[c->node] = c->fits;
        w->hosts += c->fits >= s->size;
    }
    if (!p->sorted)
        sort_items(p->ends, p->end_count);
    p->sorted = true;
}

static void walk_done(struct walk *w)
{
    free(w->fits);
}

/* Everything that ends at this time ends. Nodes with reservations are seen anew anyway. */
static void pass_ends(struct walk *w, uint64_t at)
{
    const struct plan *p = w->plan;

    while (w->next < p->end_count && p->ends[w->next].key <= at) {
        const struct book_job *j = &p->book->jobs[p->ends[w->next++].value];
        const struct shape *s = book_shape_of(p->book, j);

        for (uint32_t i = 0; i < s->size; i++) {
            if (j->shares[i].node == BOOK_NONE || p->held_at[j->shares[i].node])
                continue;
            place_give(w->future, s, &j->shares[i]);
            count_node(w, j->shares[i].node);
        }
    }
}

/* Nodes with reservations as they are for a job that runs from at to end. */
static void view_then(struct walk *w, uint64_t at, uint64_t end)
{
    const struct plan *p = w->plan;

    for (uint32_t i = 0; i < p->held_count; i++) {
        uint32_t node = p->held[i];
        struct usage_node least = least_free(p, node, &w->now->usage.nodes[node], at, end);

        place_set(w->future, node, &least);
        count_node(w, node);
    }
}

/* The next time at which something is given back; BOOK_FOREVER: none. */
static uint64_t next_time(const struct walk *w, uint64_t after)
{
    const struct plan *p = w->plan;
    uint64_t at = w->next < p->end_count ? p->ends[w->next].key : BOOK_FOREVER;

    if (p->back_at > after)
        at = MIN_OF(at, p->back_at);
    for (uint32_t i = 0; i < p->closing_count; i++)
        if (p->book->nodes[p->closing[i]].close_to > after)
            at = MIN_OF(at, p->book->nodes[p->closing[i]].close_to);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->list[i].end > after)
            at = MIN_OF(at, p->list[i].end);
    return at;
}

static bool may_fit(const struct walk *w)
{
    return w->shape->single_node ? w->hosts > 0 : w->total >= w->shape->size;
}

/* Where it was planned before, if that is the time and there is room: a plan that was told is kept
 * as long as nobody before it in the queue needs it. Else anywhere. */
static bool place_then(
    struct walk *w, const struct book_job *j, uint64_t at, struct book_share *shares)
{
    if (j->started == at && place_planned(w->future, j, w->shape, shares))
        return true;
    return place_job(w->future, w->shape, shares);
}

bool plan_reserve(struct plan *p, struct place *now, uint32_t job)
{
    const struct book_job *j = &p->book->jobs[job];
    const struct shape *s = book_shape_of(p->book, j);
    _cleanup_(walk_done) struct walk w;
    _cleanup_free_ struct book_share *shares = NULL;

    if (p->count == p->max)
        return false;
    view_release(p, now);
    walk_init(&w, p, now, s);
    shares = xnew_array(struct book_share, s->size);
    for (uint64_t at = next_time(&w, p->now); at != BOOK_FOREVER; at = next_time(&w, at)) {
        struct reservation *r = &p->list[p->count];

        pass_ends(&w, at);
        view_then(&w, at, end_of(at, j->limit));
        if (!may_fit(&w) || !place_then(&w, j, at, shares))
            continue;
        *r = (struct reservation){
            .job = job, .start = at, .end = end_of(at, j->limit), .shares = TAKE_PTR(shares)};
        p->count++;
        hold_nodes(p, r);
        return true;
    }
    return false;
}
