/*
 * Kinds of sessions are texts: the narrow one names image and command, the wide one only the
 * resources. The guess is the median of the last run times of the narrow kind when there are two,
 * else of the wide one when there are four.
 */
#include "sched/estimate.h"

#include "base/buf.h"
#include "base/str.h"

#define NARROW_MIN 2
#define WIDE_MIN 4
#define COMMAND_WORDS 4 /* the first ones tell what it is; the rest are numbers and paths */

struct estimate_kind {
    uint64_t usec[ESTIMATE_KEPT]; /* a ring */
    uint32_t count, next;
};

void estimator_init(struct estimator *e)
{
    *e = (struct estimator){0};
    map_init(&e->kinds);
}

void estimator_done(struct estimator *e)
{
    map_done(&e->kinds, free);
}

static char *wide_kind(const struct session *s)
{
    return xasprintf("%s/%s/%u/%u/%u/%s", s->owner, session_kind_name(s->kind), s->size,
        s->each.gpus, s->each.gpus ? 0 : s->each.cpu_milli, s->group);
}

static char *narrow_kind(const struct session *s)
{
    struct buf b = BUF_INIT(4096);
    _cleanup_free_ char *wide = wide_kind(s);

    buf_printf(&b, "%s/%s", wide, s->image);
    for (int i = 0; s->command && s->command[i] && i < COMMAND_WORDS; i++)
        buf_printf(&b, "/%.200s", s->command[i]);
    return buf_take(&b);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static uint64_t median(const struct estimate_kind *k)
{
    uint64_t sorted[ESTIMATE_KEPT];

    memcpy(sorted, k->usec, sizeof(sorted));
    qsort(sorted, k->count, sizeof(*sorted), by_value);
    return sorted[k->count / 2];
}

uint64_t estimator_guess(const struct estimator *e, const struct session *s)
{
    _cleanup_free_ char *narrow = narrow_kind(s), *wide = wide_kind(s);
    const struct estimate_kind *k = map_get(&e->kinds, narrow);
    uint64_t guess = 0;

    if (!k || k->count < NARROW_MIN) {
        k = map_get(&e->kinds, wide);
        if (!k || k->count < WIDE_MIN)
            return 0;
    }
    guess = MAX_OF(median(k), UINT64_C(1));
    return s->time_limit_usec ? MIN_OF(guess, s->time_limit_usec) : guess;
}

static void add_time(struct estimator *e, const char *kind, uint64_t usec)
{
    struct estimate_kind *k = map_get(&e->kinds, kind);

    if (!k) {
        if (map_count(&e->kinds) >= ESTIMATE_KINDS_MAX)
            return;
        k = xnew(struct estimate_kind);
        map_set(&e->kinds, kind, k);
    }
    k->usec[k->next] = usec;
    k->next = (k->next + 1) % ESTIMATE_KEPT;
    k->count = MIN_OF(k->count + 1, (uint32_t)ESTIMATE_KEPT);
}

static void compare(struct estimate_quality *q, const struct session *s, uint64_t took)
{
    if (s->estimate_usec) {
        q->count++;
        q->within_2x += took <= 2 * s->estimate_usec && s->estimate_usec <= 2 * took;
        q->below += took < s->estimate_usec;
        q->above += took > s->estimate_usec;
    }
    if (s->time_limit_usec) {
        q->limit_count++;
        q->limit_within_2x += s->time_limit_usec <= 2 * took;
    }
}

void estimator_learn(struct estimator *e, const struct session *s)
{
    _cleanup_free_ char *narrow = NULL, *wide = NULL;
    uint64_t took;

    if (s->result != RESULT_SUCCEEDED && s->result != RESULT_FAILED && s->result != RESULT_TIMEOUT)
        return;
    if (!s->started_usec || s->ended_usec < s->started_usec)
        return;
    took = MAX_OF(s->ended_usec - s->started_usec, UINT64_C(1));
    compare(&e->quality, s, took);
    narrow = narrow_kind(s);
    wide = wide_kind(s);
    add_time(e, narrow, took);
    add_time(e, wide, took);
}
