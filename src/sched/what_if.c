/*
 * Changes are tried from the least to the greatest, and those are kept that start earlier than any
 * lesser one of their kind, until one would start at once.
 */
#include "sched/what_if.h"

#include "sched/fill.h"

#define MINUTE (60 * UINT64_C(1000000))
#define NEVER BOOK_FOREVER

bool what_if_init(
    struct what_if *w, const struct sched *s, const struct session *session, uint64_t now_usec)
{
    uint32_t job = sched_job(s, session->id);
    const struct sched_note *note = job == BOOK_NONE ? NULL : &s->notes[job];

    *w = (struct what_if){.job = job, .options = s->options, .now_usec = now_usec};
    if (!note || !note->seen || s->book.jobs[job].state != JOB_WAITS ||
        (note->verdict != VERDICT_RESOURCES && note->verdict != VERDICT_PRIORITY &&
            note->verdict != VERDICT_QUOTA))
        return false;
    w->start_usec = note->start ? note->start : NEVER;
    book_copy(&w->book, &s->book);
    w->session = *session;
    w->session.num = 0; /* as one that comes now */
    w->session.submitted_usec = 0;
    return true;
}

void what_if_done(struct what_if *w)
{
    book_done(&w->book);
}

/* When the session would start if it were this one; NEVER: nobody knows. */
static uint64_t start_of(const struct what_if *w, const struct session *changed)
{
    uint64_t start = NEVER;
    struct pass_result r;
    struct book_job job;
    struct book b;

    book_copy(&b, &w->book);
    job = fill_job(&b, changed, w->now_usec);
    book_job_change(&b, w->job, &job);
    pass_run(&b, &w->options, w->now_usec, &r);
    for (uint32_t i = 0; i < r.count; i++)
        if (r.list[i].job == w->job && r.list[i].start)
            start = r.list[i].start;
    pass_result_done(&r);
    book_done(&b);
    return start;
}

/* *best: the earliest start of this kind of change so far. True: it cannot be earlier. */
static bool try_one(
    struct what_if *w, struct what_if_row row, const struct session *changed, uint64_t *best)
{
    uint64_t start = start_of(w, changed);

    if (start < *best && w->count < WHAT_IF_MAX) {
        *best = start;
        row.start_usec = start;
        row.now = start == w->now_usec;
        w->rows[w->count++] = row;
    }
    return start == w->now_usec || w->count == WHAT_IF_MAX;
}

/* --- the kinds of change -------------------------------------------------------------------- */

static void try_mode(struct what_if *w)
{
    struct session changed = w->session;
    uint64_t best = w->start_usec;

    if (changed.mode != MODE_SINGLE_NODE || changed.size == 1)
        return;
    changed.mode = MODE_MULTI_NODE;
    try_one(w, (struct what_if_row){.change = CHANGE_MODE}, &changed, &best);
}

/* Times that people ask for, longest first. */
static void try_times(struct what_if *w)
{
    static const uint32_t minutes[] = {7 * 1440, 3 * 1440, 1440, 720, 480, 240, 120, 60, 30, 15, 5};
    uint64_t limit = w->session.time_limit_usec ? w->session.time_limit_usec : NEVER;
    uint64_t best = w->start_usec;

    for (size_t i = 0; i < ARRAY_LEN(minutes); i++) {
        struct session changed = w->session;
        struct what_if_row row = {.change = CHANGE_TIME, .value = minutes[i] * MINUTE};

        changed.time_limit_usec = row.value;
        if (row.value < limit && try_one(w, row, &changed, &best))
            return;
    }
}

/* The next smaller one to try: half, by way of the largest power of two below. */
static uint32_t smaller(uint32_t n)
{
    uint32_t power = 1;

    while (power * 2 < n)
        power *= 2;
    return power;
}

static void try_sizes(struct what_if *w)
{
    uint64_t best = w->start_usec;

    for (uint32_t n = w->session.size; n > 1;) {
        struct session changed = w->session;

        n = n > 4 ? smaller(n) : n - 1;
        changed.size = n;
        if (try_one(w, (struct what_if_row){.change = CHANGE_SIZE, .value = n}, &changed, &best))
            return;
    }
}

static void try_gpus(struct what_if *w)
{
    uint64_t best = w->start_usec;

    for (uint32_t n = w->session.each.gpus; n > 1;) {
        struct session changed = w->session;

        n = smaller(n);
        changed.each.gpus = n;
        if (try_one(w, (struct what_if_row){.change = CHANGE_GPUS, .value = n}, &changed, &best))
            return;
    }
}

/* Each model by itself that the group has and the request does not allow, and any of them. */
static void try_models(struct what_if *w)
{
    uint32_t group = book_name(&w->book, w->session.group), have = 0, asked = 0;

    if (w->session.each.gpus == 0 || !w->session.gpu_model[0] ||
        book_models(&w->book, w->session.gpu_model, &asked) < 0)
        return;
    for (uint32_t i = 0; i < w->book.node_count; i++)
        if (w->book.nodes[i].group == group)
            have |= w->book.nodes[i].models;
    for (uint32_t bits = have & ~asked; bits; bits &= bits - 1) {
        struct what_if_row row = {.change = CHANGE_MODEL};
        struct session changed = w->session;
        uint64_t best = w->start_usec;

        STR_SET(row.model, w->book.models[__builtin_ctz(bits)]);
        STR_SET(changed.gpu_model, row.model);
        try_one(w, row, &changed, &best);
    }
}

void what_if_run(struct what_if *w)
{
    try_mode(w);
    try_times(w);
    try_sizes(w);
    try_gpus(w);
    try_models(w);
}
