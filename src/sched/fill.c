/*
 * From sessions and nodes to the book. What somebody else holds on a node (quarantined containers)
 * is not part of it there.
 */
#include "sched/fill.h"

/* After its grace, what a session that stops holds is soon removed. */
#define REMOVAL_USEC (10 * UINT64_C(1000000))

uint64_t fill_gpus(const struct node *n, const char *wish, bool healthy_only)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < n->capacity.gpus; i++) {
        const struct gpu *g = &n->gpus[i];

        if (g->index >= NODE_GPUS_MAX || (healthy_only && !g->healthy))
            continue;
        if (gpu_model_fits(wish, g->model))
            bits |= UINT64_C(1) << g->index;
    }
    return bits;
}

static enum book_closed closed_by(const struct node *n)
{
    if (node_takes_work(n))
        return BOOK_OPEN;
    if (n->state == NODE_UP)
        return BOOK_DRAINED;
    return n->state == NODE_LOST ? BOOK_LOST : BOOK_UNREACHABLE;
}

void fill_node(struct book *b, const struct node *n, const struct sched_withheld *withheld)
{
    struct resources left = n->capacity;
    struct book_node to = {.name = (char *)n->name,
        .gpus = MIN_OF(n->capacity.gpus, (uint32_t)SHAPE_GPUS_MAX),
        .healthy = fill_gpus(n, "", true),
        .group = book_name(b, n->group),
        .closed = (uint8_t)closed_by(n)};

    if (withheld) {
        resources_sub(&left, &withheld->sum);
        to.healthy &= ~withheld->gpus;
    }
    (void)book_switch(b, n->leaf, &to.leaf);
    (void)book_switch(b, n->spine, &to.spine);
    if (n->drain_from_usec) {
        to.close_from = n->drain_from_usec;
        to.close_to = BOOK_FOREVER;
    }
    to.cpu_milli = left.cpu_milli;
    to.mem = left.mem;
    for (uint32_t i = 0; i < n->capacity.gpus; i++) {
        const struct gpu *g = &n->gpus[i];

        if (g->index >= SHAPE_GPUS_MAX)
            continue;
        (void)book_model(b, g->model, &to.model[g->index]);
        to.numa[g->index] = (uint8_t)g->numa;
        to.nvlink[g->index] = (uint8_t)g->nvlink;
    }
    book_node_put(b, &to);
}

/* When it is enough of waiting for a place on few switches. */
static uint64_t relax_of(const struct session *s, uint64_t now_usec)
{
    return s->switches ? (s->submitted_usec ? s->submitted_usec : now_usec) + s->switch_wait_usec
                       : 0;
}

static struct shape shape_of(struct book *b, const struct session *s, uint64_t now_usec)
{
    struct shape shape = {.mem = s->each.mem,
        .cpu_milli = s->each.cpu_milli,
        .gpu_milli = s->each.gpus * SHAPE_WHOLE,
        .size = s->size,
        .group = book_name(b, s->group),
        .single_node = s->mode == MODE_SINGLE_NODE};

    if (s->state == SESSION_PENDING && relax_of(s, now_usec) > now_usec)
        shape.switches = (uint16_t)s->switches;
    (void)book_models(b, s->gpu_model, &shape.models);
    return shape;
}

uint64_t fill_started(const struct session *s)
{
    return s->started_usec ? s->started_usec : s->placed_usec;
}

/* Of running. One that stops is over with its grace, whatever its limit was. */
static uint64_t limit_of(const struct session *s, uint64_t now_usec)
{
    uint64_t start = s->state == SESSION_PENDING ? MAX_OF(now_usec, s->begin_usec)
                                                 : fill_started(s);

    if (s->state == SESSION_STOPPING)
        return s->state_usec + session_grace(s) + REMOVAL_USEC - fill_started(s);
    return session_may_run(s, start);
}

static uint32_t leaf_of(struct book *b, const struct session *s)
{
    return tree_leaf(&b->tree, s->account[0] ? tree_find(&b->tree, s->account) : TREE_NONE,
        book_name(b, s->owner));
}

struct book_job fill_job(struct book *b, const struct session *s, uint64_t now_usec)
{
    struct shape shape = shape_of(b, s, now_usec);

    /* One that is not in the queue yet, for a dry run, comes last. */
    return (struct book_job){.num = s->num ? s->num : UINT64_MAX,
        .shape = book_shape(b, &shape),
        .kind = (uint8_t)s->kind,
        .owner = book_name(b, s->owner),
        .submitted = s->submitted_usec ? s->submitted_usec : now_usec,
        .held = s->hold != HOLD_NONE,
        .depends = s->waits_for_others,
        .nice = s->nice,
        .tier = (uint8_t)s->qos,
        .spot = s->spot,
        .leaf = leaf_of(b, s),
        .claimed = s->claimed_usec,
        .leaves = s->state == SESSION_STOPPING,
        .leaves_for = s->leaves_for,
        .estimate = s->estimate_usec,
        .begin = s->begin_usec,
        .relax = shape.switches ? relax_of(s, now_usec) : 0,
        .limit = limit_of(s, now_usec)};
}

/* Where it is; a container that holds nothing any more is nowhere. */
static struct book_share share_of(const struct book *b, const struct container *c)
{
    struct book_share share = {.node = BOOK_NONE, .milli = SHAPE_WHOLE};

    if (!container_holds(c))
        return share;
    share.node = book_node_find(b, c->node);
    for (uint32_t i = 0; i < c->gpu_count; i++)
        if (c->gpus[i] < SHAPE_GPUS_MAX)
            share.gpus |= UINT64_C(1) << c->gpus[i];
    return share;
}

struct book_share *fill_shares(const struct book *b, const struct session *s)
{
    struct book_share *shares = xnew_array(struct book_share, s->size);

    for (uint32_t i = 0; i < s->size; i++)
        shares[i] = share_of(b, &s->containers[i]);
    return shares;
}

bool fill_holds(const struct session *s)
{
    for (uint32_t i = 0; s->containers && i < s->size; i++)
        if (container_holds(&s->containers[i]))
            return true;
    return false;
}
