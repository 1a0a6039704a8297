/*
 * A pass: for each pending session in the given order a place, or a reason with numbers. Where a
 * gang goes is place.c's business. A session that does not fit does not hold back the ones behind
 * it; reservations come beside this.
 */
#include "sched/place.h"
#include "sched/reason.h"

/* The reason for a person; cut where it is too long. */
static void say(struct sched_decision *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(struct sched_decision *d, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(d->text, sizeof(d->text), fmt, ap);
    va_end(ap);
}

static uint32_t free_gpus(const struct candidate *c)
{
    return MIN_OF((uint32_t)__builtin_popcountll(c->gpus), c->sn->free.gpus);
}

/* Nodes of the group by what keeps them from taking work. */
struct census {
    uint32_t nodes, up, drained, unreachable, lost;
};

static struct census take_census(const struct sched_snapshot *snap, const char *group)
{
    struct census c = {0};

    for (size_t i = 0; i < snap->node_count; i++) {
        const struct node *n = snap->nodes[i].node;

        if (!str_eq(n->group, group))
            continue;
        c.nodes++;
        c.up += n->state == NODE_UP;
        c.drained += n->state == NODE_UP && n->drained;
        c.unreachable += n->state == NODE_UNREACHABLE;
        c.lost += n->state == NODE_LOST;
    }
    return c;
}

/* No node of the group takes work at all. */
static void explain_no_node(
    struct sched_decision *d, const struct sched_snapshot *snap, const char *group)
{
    struct census c = take_census(snap, group);

    if (c.up > 0) {
        STR_SET(d->code, "group_drained");
        say(d, "all nodes of group '%s' that are up are drained (%u)", group, c.drained);
        return;
    }
    STR_SET(d->code, "no_node_up");
    if (c.nodes == 0)
        say(d, "group '%s' has no node", group);
    else
        say(d, "no node of group '%s' is up (%u unreachable, %u lost)", group, c.unreachable,
            c.lost);
}

static const struct candidate *roomiest(const struct candidate *cand, size_t count)
{
    const struct candidate *best = &cand[0];

    for (size_t i = 1; i < count; i++)
        if (cand[i].fits > best->fits)
            best = &cand[i];
    return best;
}

static void explain_single_node(
    struct sched_decision *d, const struct candidate *cand, size_t count)
{
    const struct candidate *best = roomiest(cand, count);
    char gang[REASON_GANG_MAX];

    STR_SET(d->code, "single_node_too_small_now");
    reason_gang(d->session, gang);
    if (best->fits == 0)
        say(d, "needs %s on one node; no node of group '%s' has room for even one now", gang,
            d->session->group);
    else
        say(d, "needs %s on one node; the most any node of group '%s' has free is %u x (%s)", gang,
            d->session->group, best->fits, best->sn->node->name);
}

/* What is free on all candidates, GPUs being those that the session could use. */
static struct resources sum_free(const struct candidate *cand, size_t count)
{
    struct resources sum = {0};

    for (size_t i = 0; i < count; i++) {
        struct resources r = cand[i].sn->free;

        r.gpus = free_gpus(&cand[i]);
        resources_add(&sum, &r);
    }
    return sum;
}

static void explain_resources(struct sched_decision *d, const struct candidate *cand, size_t count)
{
    const struct session *s = d->session;
    char gang[REASON_GANG_MAX], left[REASON_TEXT_MAX];
    struct resources sum = sum_free(cand, count);

    STR_SET(d->code, "resources");
    reason_gang(s, gang);
    reason_resources(&sum, s->each.gpus > 0, s->gpu_model, left);
    if (s->size == 1)
        say(d, "needs %s; no node of group '%s' has room for it now (free on %zu node%s: %s)", gang,
            s->group, count, count == 1 ? "" : "s", left);
    else
        say(d, "needs %s; group '%s' has room for %u now (free on %zu node%s: %s)", gang, s->group,
            d->largest, count, count == 1 ? "" : "s", left);
}

/* The largest size below the one asked that would fit now. */
static uint32_t largest_now(const struct session *s, const struct candidate *cand, size_t count)
{
    uint64_t sum = 0, most = 0;

    for (size_t i = 0; i < count; i++) {
        sum += cand[i].fits;
        most = MAX_OF(most, cand[i].fits);
    }
    return (uint32_t)MIN_OF(s->mode == MODE_SINGLE_NODE ? most : sum, s->size - 1);
}

static void explain(struct sched_decision *d, const struct sched_snapshot *snap,
    const struct candidate *cand, size_t count)
{
    if (count == 0) {
        explain_no_node(d, snap, d->session->group);
        return;
    }
    d->largest = largest_now(d->session, cand, count);
    if (d->session->mode == MODE_SINGLE_NODE && d->session->size > 1)
        explain_single_node(d, cand, count);
    else
        explain_resources(d, cand, count);
}

static void decide(struct sched_decision *d, struct sched_snapshot *snap, const struct session *s)
{
    _cleanup_free_ struct candidate *cand = NULL;
    _cleanup_free_ struct sched_share *shares = NULL;
    size_t count;

    assert(s->size > 0 && s->size <= SESSION_SIZE_MAX);
    d->session = s;
    cand = place_candidates(snap, s, &count);
    shares = xnew_array(struct sched_share, s->size);
    d->placed = place_gang(cand, count, s, shares);
    if (d->placed)
        d->shares = TAKE_PTR(shares);
    else
        explain(d, snap, cand, count);
}

void sched_pass(struct sched_snapshot *snap, struct sched_decision **ret, size_t *ret_count)
{
    struct sched_decision *d = xnew_array(struct sched_decision, snap->pending_count);

    for (size_t i = 0; i < snap->pending_count; i++)
        decide(&d[i], snap, snap->pending[i]);
    *ret = d;
    *ret_count = snap->pending_count;
}

void sched_free(struct sched_decision *d, size_t count)
{
    for (size_t i = 0; d && i < count; i++)
        free(d[i].shares);
    free(d);
}
