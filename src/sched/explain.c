/*
 * Reasons. What is said is as things are after the pass: of what is free then, the numbers.
 */
#include "sched/explain.h"

#include "base/clock.h"
#include "base/strv.h"
#include "sched/reason.h"

static const char *const code_words[CODE_COUNT] = {
    [CODE_QUEUED] = "queued",
    [CODE_HELD] = "held",
    [CODE_BEGIN] = "begin_time",
    [CODE_DEPENDS] = "dependency",
    [CODE_RESOURCES] = "resources",
    [CODE_SINGLE_NODE] = "single_node_too_small_now",
    [CODE_SWITCHES] = "switches",
    [CODE_PRIORITY] = "priority",
    [CODE_CLOSING] = "maintenance",
    [CODE_QUOTA] = "quota",
    [CODE_LEAVING] = "preempting",
    [CODE_NO_NODE] = "no_node_up",
    [CODE_DRAINED] = "group_drained",
};

static const char *const slurm_words[CODE_COUNT] = {
    [CODE_QUEUED] = "None",
    [CODE_HELD] = "JobHeldUser",
    [CODE_BEGIN] = "BeginTime",
    [CODE_DEPENDS] = "Dependency",
    [CODE_RESOURCES] = "Resources",
    [CODE_SINGLE_NODE] = "Resources",
    [CODE_SWITCHES] = "Resources",
    [CODE_PRIORITY] = "Priority",
    [CODE_CLOSING] = "ReqNodeNotAvail",
    [CODE_QUOTA] = "AssocGrpGRES",
    [CODE_LEAVING] = "Resources",
    [CODE_NO_NODE] = "ReqNodeNotAvail",
    [CODE_DRAINED] = "ReqNodeNotAvail",
};

/* The reason for a person; cut where it is too long. */
static void say(struct sched_reason *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(struct sched_reason *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text, sizeof(r->text), fmt, ap);
    va_end(ap);
}

struct census *explain_census(const struct book *b)
{
    struct census *list = xnew_array(struct census, b->text_count + 1);

    for (uint32_t i = 0; i < b->node_count; i++) {
        list[b->nodes[i].group].nodes++;
        list[b->nodes[i].group].by[b->nodes[i].closed]++;
    }
    return list;
}

enum sched_code explain_code(
    const struct census *c, const struct shape *shape, enum verdict verdict)
{
    if (verdict == VERDICT_HELD)
        return CODE_HELD;
    if (verdict == VERDICT_BEGIN)
        return CODE_BEGIN;
    if (verdict == VERDICT_DEPENDS)
        return CODE_DEPENDS;
    if (verdict == VERDICT_QUOTA)
        return CODE_QUOTA;
    if (verdict == VERDICT_LEAVING)
        return CODE_LEAVING;
    if (c->by[BOOK_OPEN] == 0)
        return c->by[BOOK_DRAINED] > 0 ? CODE_DRAINED : CODE_NO_NODE;
    if (verdict == VERDICT_PRIORITY)
        return CODE_PRIORITY;
    return shape->single_node && shape->size > 1 ? CODE_SINGLE_NODE : CODE_RESOURCES;
}

static void explain_no_node(struct sched_reason *r, const struct book *b, uint32_t group_number)
{
    _cleanup_free_ struct census *list = explain_census(b);
    struct census c = list[group_number];
    const char *group = book_text(b, group_number);

    if (c.by[BOOK_DRAINED] > 0)
        say(r, "all nodes of group '%s' that are up are drained (%u)", group, c.by[BOOK_DRAINED]);
    else if (c.nodes == 0)
        say(r, "group '%s' has no node", group);
    else
        say(r, "no node of group '%s' is up (%u unreachable, %u lost)", group,
            c.by[BOOK_UNREACHABLE], c.by[BOOK_LOST]);
}

static const struct place_candidate *best_node(const struct place *p, uint32_t count)
{
    const struct place_candidate *best = NULL;

    for (uint32_t i = 0; i < count; i++)
        if (!best || p->list[i].fits > best->fits)
            best = &p->list[i];
    return best;
}

static void explain_single_node(
    struct sched_reason *r, const struct place *p, const struct session *s, uint32_t count)
{
    const struct place_candidate *best = best_node(p, count);
    char gang[REASON_GANG_MAX];

    reason_gang(s, gang);
    if (!best)
        say(r, "needs %s on one node; no node of group '%s' has room for even one now", gang,
            s->group);
    else
        say(r, "needs %s on one node; the most any node of group '%s' has free is %u x (%s)", gang,
            s->group, best->fits, p->book->nodes[best->node].name);
}

/* What is free on the group's nodes that take work, GPUs being those that the session could use. */
static struct resources sum_free(const struct place *p, const struct shape *s, uint32_t *ret_nodes)
{
    const struct book *b = p->book;
    struct resources sum = {0};

    *ret_nodes = 0;
    for (uint32_t i = 0; i < b->node_count; i++) {
        const struct usage_node *n = &p->usage.nodes[i];
        struct resources r;

        if (b->nodes[i].closed || b->nodes[i].group != s->group)
            continue;
        r = (struct resources){
            .cpu_milli = (uint32_t)MAX_OF(n->cpu_milli, 0), .mem = (uint64_t)MAX_OF(n->mem, 0)};
        for (uint32_t g = 0; g < b->nodes[i].gpus; g++)
            r.gpus += n->gpu[g] == SHAPE_WHOLE && book_gpu_suits(&b->nodes[i], g, s);
        resources_add(&sum, &r);
        ++*ret_nodes;
    }
    return sum;
}

static void explain_resources(struct sched_reason *r, const struct place *p,
    const struct session *s, const struct shape *shape)
{
    char gang[REASON_GANG_MAX], left[REASON_TEXT_MAX];
    uint32_t nodes;
    struct resources sum = sum_free(p, shape, &nodes);

    reason_gang(s, gang);
    reason_resources(&sum, s->each.gpus > 0, s->gpu_model, left);
    if (s->size == 1)
        say(r, "needs %s; no node of group '%s' has room for it now (free on %u node%s: %s)", gang,
            s->group, nodes, nodes == 1 ? "" : "s", left);
    else
        say(r, "needs %s; group '%s' has room for %u now (free on %u node%s: %s)", gang, s->group,
            r->largest, nodes, nodes == 1 ? "" : "s", left);
}

static void explain_priority(struct sched_reason *r, const struct session *s)
{
    char gang[REASON_GANG_MAX];

    reason_gang(s, gang);
    say(r, "there is room for %s, but session %ju needs it before this one would be over", gang,
        (uintmax_t)r->blocker);
}

static void explain_closing(struct sched_reason *r, const struct session *s)
{
    char gang[REASON_GANG_MAX];

    reason_gang(s, gang);
    say(r, "there is room for %s, but nodes with it are drained before it would be over%s", gang,
        s->time_limit_usec ? "; less --time may do" : ", since it has no time limit");
}

static void explain_depends(struct sched_reason *r, const struct session *s)
{
    _cleanup_free_ char *list = strv_join(s->depends, ", ");

    say(r, "it is to start %s", list);
}

static void explain_leaving(struct sched_reason *r, const struct session *s)
{
    char gang[REASON_GANG_MAX], time[CLOCK_TEXT_MAX];

    reason_gang(s, gang);
    say(r, "sessions that borrow leave for it until %s, to make room for %s",
        r->start_usec ? clock_format(r->start_usec, time) : "soon", gang);
}

/* What bounds somebody, in words; Slurm's name for it beside. */
static const struct {
    const char *code, *slurm, *text;
} bounds[] = {
    [LEDGER_MAX] = {"quota_max", "AssocGrpGRES",
        "with it the account would have more GPUs than its maximum"},
    [LEDGER_DEBUG] = {"quota_deserved", "AssocGrpGRES",
        "debug sessions stay within the deserved quota of the account"},
    [LEDGER_GUARANTEE] = {"quota_guarantee", "Resources",
        "what is free is guaranteed to other accounts"},
    [LEDGER_SESSIONS] = {"user_sessions", "AssocMaxJobsLimit",
        "as many sessions of its owner run for the account as may at once"},
    [LEDGER_GPUS] = {"user_gpus", "QOSMaxGRESPerUser",
        "with it its owner would have more GPUs than each user of the account may have at once"},
    [LEDGER_DEBUG_GPUS] = {"user_debug_gpus", "QOSMaxGRESPerUser",
        "with it its owner would have more GPUs in debug sessions than each user of the account "
        "may have"},
    [LEDGER_WINDOW] = {"user_gpu_hours", "AssocGrpGRESMinutes",
        "its owner has used up the GPU-hours that each user of the account has"},
};

void explain_quota(const struct book *b, const struct session *session, const struct sched_note *n,
    struct sched_reason *ret)
{
    const char *name = n->account == TREE_NONE ? session->account
                                               : b->tree.accounts[n->account].name;

    if (n->code != CODE_QUOTA || n->word >= ARRAY_LEN(bounds) || !bounds[n->word].text)
        return;
    ret->code = bounds[n->word].code;
    ret->slurm = bounds[n->word].slurm;
    say(ret, "%s (account '%s')", bounds[n->word].text, name[0] ? name : "none");
}

static void explain_switches(struct sched_reason *r, const struct session *s)
{
    char gang[REASON_GANG_MAX], time[CLOCK_TEXT_MAX];

    reason_gang(s, gang);
    say(r, "there is room for %s, but not on %u switch%s; from %s on it takes any number of them",
        gang, s->switches, s->switches == 1 ? "" : "es",
        clock_format(s->submitted_usec + s->switch_wait_usec, time));
}

static uint32_t largest_now(
    const struct place *p, const struct shape *s, uint32_t count, uint64_t total)
{
    const struct place_candidate *best = best_node(p, count);
    uint64_t most = s->single_node ? (best ? best->fits : 0) : total;

    return (uint32_t)MIN_OF(most, (uint64_t)s->size - 1);
}

void explain_words(const struct session *session, enum sched_code code, struct sched_reason *ret)
{
    bool by_operator = code == CODE_HELD && session->hold == HOLD_OPERATOR;

    ret->code = code_words[code];
    ret->slurm = by_operator ? "JobHeldAdmin" : slurm_words[code];
}

void explain_reason(struct place *p, const struct session *session, const struct shape *shape,
    enum sched_code code, struct sched_reason *ret)
{
    char time[CLOCK_TEXT_MAX];
    uint64_t total = 0;
    uint32_t count = 0;

    if (code > CODE_DEPENDS && code != CODE_QUOTA) {
        count = place_scan(p, shape, &total);
        ret->largest = largest_now(p, shape, count, total);
    }
    if (code == CODE_RESOURCES && shape->switches && total >= shape->size)
        code = CODE_SWITCHES;
    explain_words(session, code, ret);
    switch (code) {
    case CODE_QUEUED:
        say(ret, "waits for the scheduler");
        break;
    case CODE_HELD:
        say(ret, "held by %s; it is not looked at until it is released",
            session->hold == HOLD_OPERATOR ? "an operator" : "its owner");
        break;
    case CODE_DEPENDS:
        explain_depends(ret, session);
        break;
    case CODE_BEGIN:
        say(ret, "it asked not to be started before %s", clock_format(session->begin_usec, time));
        break;
    case CODE_CLOSING:
        explain_closing(ret, session);
        break;
    case CODE_QUOTA: /* explain_quota has said it */
        break;
    case CODE_LEAVING:
        explain_leaving(ret, session);
        break;
    case CODE_PRIORITY:
        explain_priority(ret, session);
        break;
    case CODE_SWITCHES:
        explain_switches(ret, session);
        break;
    case CODE_SINGLE_NODE:
        explain_single_node(ret, p, session, count);
        break;
    case CODE_RESOURCES:
        explain_resources(ret, p, session, shape);
        break;
    default:
        explain_no_node(ret, p->book, shape->group);
    }
}
