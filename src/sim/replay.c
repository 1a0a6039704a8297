/*
 * The event loop: jobs come, a pass decides, jobs end. Time stands still while a pass decides. Jobs
 * that could not run on the empty cluster are left out from the start: they would wait for ever.
 */
#include "sim/replay.h"

#include "sim/srtf.h"

struct running { /* a heap by end */
    uint64_t end;
    size_t job;
};

struct state {
    struct book *book;
    const struct workload *w;
    const struct replay_options *o;
    struct replay_result *r;
    uint32_t *handles; /* of each job of the workload */
    size_t *job_of;    /* of each handle */
    size_t job_of_cap;
    struct running *heap;
    size_t heap_count;
    uint64_t now, gpu_milli;
    size_t next;
};

/* --- a heap of ends ------------------------------------------------------------------------ */

static bool is_before(const struct running *a, const struct running *b)
{
    return a->end != b->end ? a->end < b->end : a->job < b->job;
}

static void heap_push(struct state *s, struct running item)
{
    size_t i = s->heap_count++;

    while (i > 0 && is_before(&item, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = item;
}

static struct running heap_pop(struct state *s)
{
    struct running first = s->heap[0], last = s->heap[--s->heap_count];
    size_t i = 0;

    for (;;) {
        size_t k = 2 * i + 1;

        if (k >= s->heap_count)
            break;
        if (k + 1 < s->heap_count && is_before(&s->heap[k + 1], &s->heap[k]))
            k++;
        if (!is_before(&s->heap[k], &last))
            break;
        s->heap[i] = s->heap[k];
        i = k;
    }
    s->heap[i] = last;
    return first;
}

/* --- events ------------------------------------------------------------------------------- */

static uint64_t gpus_of(const struct state *s, size_t job)
{
    const struct shape *shape = &s->book->shapes[s->w->jobs[job].job.shape];

    return (uint64_t)shape->gpu_milli * shape->size;
}

static void submit(struct state *s, size_t job)
{
    uint32_t h = book_job_add(s->book, &s->w->jobs[job].job);

    s->handles[job] = h;
    s->job_of = xgrow(s->job_of, &s->job_of_cap, h + 1, sizeof(*s->job_of));
    s->job_of[h] = job;
}

static void started(struct state *s, uint32_t handle)
{
    size_t job;

    assert(s->job_of); /* it was submitted */
    job = s->job_of[handle];
    s->r->start[job] = s->now;
    s->gpu_milli += gpus_of(s, job);
    heap_push(s, (struct running){s->now + s->w->jobs[job].duration, job});
}

static void ended(struct state *s, const struct running *item)
{
    book_job_remove(s->book, s->handles[item->job]);
    s->r->end[item->job] = item->end;
    s->gpu_milli -= gpus_of(s, item->job);
}

void replay_sample_add(struct replay_result *r, struct replay_sample sample)
{
    r->samples = xgrow(r->samples, &r->sample_cap, r->sample_count + 1, sizeof(*r->samples));
    r->samples[r->sample_count++] = sample;
}

static void run_pass(struct state *s, uint64_t (*nsec)(void))
{
    uint64_t before = nsec ? nsec() : 0, took;
    struct pass_result result;

    pass_run(s->book, &s->o->pass, s->now, &result);
    took = nsec ? nsec() - before : 0;
    s->r->passes++;
    s->r->pass_nsec += took;
    s->r->pass_max_nsec = MAX_OF(s->r->pass_max_nsec, took);
    for (uint32_t i = 0; i < result.count; i++)
        if (result.list[i].verdict == VERDICT_START)
            started(s, result.list[i].job);
    pass_result_done(&result);
}

/* Would it run if it were alone? */
static bool could_ever(struct state *s, size_t job)
{
    const struct shape *shape = &s->book->shapes[s->w->jobs[job].job.shape];
    _cleanup_free_ struct book_share *shares = xnew_array(struct book_share, shape->size);
    struct place p;
    bool fits;

    place_init(&p, s->book); /* nothing runs yet */
    fits = place_job(&p, shape, shares);
    place_done(&p);
    return fits;
}

/* By shape, once. */
static void leave_out(struct state *s, bool *out)
{
    _cleanup_free_ int8_t *known = xnew_array(int8_t, s->book->shape_count);

    for (size_t i = 0; i < s->w->count; i++) {
        int8_t *k = &known[s->w->jobs[i].job.shape];

        if (!*k)
            *k = could_ever(s, i) ? 1 : -1;
        out[i] = *k < 0;
        s->r->never += out[i];
    }
}

static uint64_t next_event(const struct state *s)
{
    uint64_t at = s->next < s->w->count ? s->w->jobs[s->next].submit : BOOK_FOREVER;

    return s->heap_count ? MIN_OF(at, s->heap[0].end) : at;
}

static void replay_events(struct state *s, const bool *out, uint64_t (*nsec)(void))
{
    for (uint64_t at = next_event(s); at != BOOK_FOREVER; at = next_event(s)) {
        uint64_t every = s->o->pass_usec;

        s->now = every ? (at + every - 1) / every * every : at;
        while (s->heap_count && s->heap[0].end <= s->now) {
            struct running item = heap_pop(s);

            ended(s, &item);
        }
        for (; s->next < s->w->count && s->w->jobs[s->next].submit <= s->now; s->next++)
            if (!out[s->next])
                submit(s, s->next);
        run_pass(s, nsec);
        replay_sample_add(s->r, (struct replay_sample){s->now, s->gpu_milli, s->book->waiting});
    }
}

void replay_run(struct book *b, const struct workload *w, const struct replay_options *o,
    uint64_t (*nsec)(void), struct replay_result *ret)
{
    struct state s = {.book = b, .w = w, .o = o, .r = ret};
    _cleanup_free_ bool *out = xnew_array(bool, w->count);

    *ret = (struct replay_result){.start = xnew_array(uint64_t, w->count),
        .end = xnew_array(uint64_t, w->count),
        .preempted = xnew_array(uint64_t, w->count)};
    memset(ret->start, 0xff, w->count * sizeof(*ret->start));
    memset(ret->end, 0xff, w->count * sizeof(*ret->end));
    s.handles = xnew_array(uint32_t, w->count);
    s.heap = xnew_array(struct running, w->count);
    leave_out(&s, out);
    if (o->srtf)
        srtf_run(b, w, out, ret);
    else
        replay_events(&s, out, nsec);
    free(s.handles);
    free(s.job_of);
    free(s.heap);
}

void replay_done(struct replay_result *r)
{
    free(r->start);
    free(r->end);
    free(r->preempted);
    free(r->samples);
    *r = (struct replay_result){0};
}
