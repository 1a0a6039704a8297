/*
 * The reference that no real cluster can be: shortest remaining time first, with durations known
 * and preemption for free. At each event all jobs are placed anew, the one that needs least time
 * first.
 */
#include "sim/srtf.h"

struct open_job {
    size_t job;
    uint64_t left; /* usec of running */
    bool runs;
};

struct state {
    struct book *book;
    const struct workload *w;
    struct replay_result *r;
    struct open_job *open;
    size_t count, next;
    uint64_t now;
};

static int by_left(const void *a, const void *b)
{
    const struct open_job *x = a, *y = b;

    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static void place_all(struct state *s)
{
    _cleanup_free_ struct book_share *shares = NULL;
    uint64_t gpu_milli = 0;
    uint32_t room = 0, waiting = 0;
    struct place p;

    qsort(s->open, s->count, sizeof(*s->open), by_left);
    place_init(&p, s->book);
    for (size_t i = 0; i < s->count; i++) {
        struct open_job *o = &s->open[i];
        const struct shape *shape = &s->book->shapes[s->w->jobs[o->job].job.shape];
        bool ran = o->runs;

        if (shape->size > room) {
            free(shares);
            room = shape->size;
            shares = xnew_array(struct book_share, room);
        }
        o->runs = place_job(&p, shape, shares);
        gpu_milli += o->runs ? (uint64_t)shape->gpu_milli * shape->size : 0;
        waiting += !o->runs;
        s->r->preempted[o->job] += ran && !o->runs;
        if (o->runs && s->r->start[o->job] == BOOK_FOREVER)
            s->r->start[o->job] = s->now;
    }
    place_done(&p);
    s->r->passes++;
    replay_sample_add(s->r, (struct replay_sample){s->now, gpu_milli, waiting});
}

static uint64_t next_event(const struct state *s)
{
    uint64_t at = s->next < s->w->count ? s->w->jobs[s->next].submit : BOOK_FOREVER;

    for (size_t i = 0; i < s->count; i++)
        if (s->open[i].runs)
            at = MIN_OF(at, s->now + s->open[i].left);
    return at;
}

static void advance(struct state *s, uint64_t to)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct open_job o = s->open[i];

        if (o.runs)
            o.left -= MIN_OF(o.left, to - s->now);
        if (o.left == 0)
            s->r->end[o.job] = to;
        else
            s->open[kept++] = o;
    }
    s->count = kept;
    s->now = to;
}

void srtf_run(struct book *b, const struct workload *w, const bool *out, struct replay_result *r)
{
    struct state s = {.book = b, .w = w, .r = r};

    s.open = xnew_array(struct open_job, w->count);
    for (uint64_t at = next_event(&s); at != BOOK_FOREVER; at = next_event(&s)) {
        advance(&s, at);
        for (; s.next < w->count && w->jobs[s.next].submit <= at; s.next++)
            if (!out[s.next])
                s.open[s.count++] = (struct open_job){
                    .job = s.next, .left = w->jobs[s.next].duration};
        place_all(&s);
    }
    free(s.open);
}
