/*
 * The shell around the scheduler: builds the snapshot from what is live, runs the pass at the end
 * of a turn in which somebody wanted one, and turns placements into assignments. Usage is added up
 * from containers each time, never kept.
 */
#include "base/clock.h"
#include "base/log.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "sched/sched.h"

void pass_want(struct manager *m)
{
    m->pass_wanted = true;
}

static struct sched_node *usage_of(struct sched_node *nodes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(nodes[i].node->name, name))
            return &nodes[i];
    return NULL;
}

static void take(struct sched_node *u, const struct session *s, const struct container *c)
{
    struct resources each = s->each;

    each.gpus = c->gpu_count;
    resources_sub(&u->free, &each);
    for (uint32_t i = 0; i < c->gpu_count; i++)
        u->gpu_free &= ~(UINT64_C(1) << c->gpus[i]);
}

struct sched_node *pass_usage(struct manager *m, size_t *ret_count)
{
    size_t count = 0;
    struct sched_node *nodes = xnew_array(struct sched_node, map_count(&m->nodes));

    map_for_each (e, &m->nodes) {
        struct mnode *n = e->value;
        struct sched_node *u = &nodes[count++];
        u->node = &n->node;
        u->free = n->node.capacity;
        for (uint32_t i = 0; i < n->node.capacity.gpus; i++)
            u->gpu_free |= UINT64_C(1) << n->node.gpus[i].index;
        map_for_each (q, &n->quarantined) {
            const struct held *h = q->value;
            resources_sub(&u->free, &h->sum);
            u->gpu_free &= ~h->gpus;
        }
    }
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        for (uint32_t i = 0; i < s->size; i++) {
            const struct container *c = &s->containers[i];
            struct sched_node *u = container_holds(c) ? usage_of(nodes, count, c->node) : NULL;
            if (u)
                take(u, s, c);
        }
    }
    *ret_count = count;
    return nodes;
}

static int by_num(const void *a, const void *b)
{
    const struct session *x = *(const struct session *const *)a;
    const struct session *y = *(const struct session *const *)b;

    return x->num < y->num ? -1 : x->num > y->num;
}

static const struct session **pending(struct manager *m, size_t *ret_count)
{
    const struct session **list = xnew_array(const struct session *, map_count(&m->sessions));
    size_t n = 0;

    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        if (s->state == SESSION_PENDING)
            list[n++] = s;
    }
    qsort(list, n, sizeof(*list), by_num); /* NOLINT(bugprone-sizeof-expression): of pointers */
    *ret_count = n;
    return list;
}

static void place_container(struct session *s, uint32_t rank, const struct sched_share *share)
{
    struct container *c = &s->containers[rank];
    uint32_t n = 0;

    STR_SET(c->node, share->node->name);
    c->gpu_count = (uint32_t)__builtin_popcountll(share->gpus);
    free(c->gpus);
    c->gpus = xnew_array(uint32_t, c->gpu_count);
    for (uint32_t i = 0; i < NODE_GPUS_MAX; i++)
        if (share->gpus & (UINT64_C(1) << i))
            c->gpus[n++] = i;
    c->ip = s->subnet + 2 + rank;
    c->end = END_NONE;
    c->text[0] = '\0';
    container_state_move(&c->state, CONTAINER_ASSIGNED, NULL);
}

static void apply(struct manager *m, const struct sched_decision *d)
{
    struct session *s = map_get(&m->sessions, d->session->id);
    bool several = false;

    if (!d->placed) {
        bool news = !str_eq(s->reason_code, d->code);
        STR_SET(s->reason_code, d->code);
        STR_SET(s->reason, d->text);
        if (news)
            session_save(m, s);
        return;
    }
    for (uint32_t i = 0; i < s->size; i++) {
        place_container(s, i, &d->shares[i]);
        several |= d->shares[i].node != d->shares[0].node;
    }
    s->placed_mode = several ? MODE_MULTI_NODE : MODE_SINGLE_NODE;
    launch_placed(m, s);
}

static void pass_run(struct manager *m)
{
    struct sched_snapshot snap = {0};
    struct sched_decision *d = NULL;
    size_t count = 0;

    snap.pending = pending(m, &snap.pending_count);
    if (snap.pending_count > 0) {
        snap.nodes = pass_usage(m, &snap.node_count);
        sched_pass(&snap, &d, &count);
        for (size_t i = 0; i < count; i++)
            apply(m, &d[i]);
        sched_free(d, count);
    }
    m->pass_count++;
    m->pass_usec = clock_real_usec();
    free(snap.nodes);
    free((void *)snap.pending);
}

struct sched_decision *pass_dry(struct manager *m, const struct session *s)
{
    struct sched_snapshot snap = {.pending = &s, .pending_count = 1};
    struct sched_decision *d = NULL;
    size_t count;

    snap.nodes = pass_usage(m, &snap.node_count);
    sched_pass(&snap, &d, &count);
    free(snap.nodes);
    assert(count == 1);
    return d;
}

static void pass_at_turn_end(uv_check_t *check)
{
    struct manager *m = check->data;

    if (!m->pass_wanted)
        return;
    m->pass_wanted = false;
    pass_run(m);
}

void pass_start(struct manager *m)
{
    uv_check_init(m->loop, &m->pass_check);
    m->pass_check.data = m;
    uv_check_start(&m->pass_check, pass_at_turn_end);
    uv_unref((uv_handle_t *)&m->pass_check);
    pass_want(m);
}
