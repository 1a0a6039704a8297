/* Sums and quantiles. Bounded slowdown as Feitelson has it, with a threshold of 10 s. */
#include "sim/report.h"

#include "base/fs.h"

#define USEC 1e6
#define THRESHOLD 10.0
#define SVG_MAX ((size_t)64 << 20)
#define WIDTH 1000
#define HEIGHT 180
#define GAP 40

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double mean_of(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : 0;
}

/* v is sorted. */
static double quantile(const double *v, size_t n, size_t percent)
{
    return n ? v[MIN_OF(n * percent / 100, n - 1)] : 0;
}

struct per_job {
    double *completion, *wait, *slowdown;
    uint32_t *owner;
    size_t count;
};

static void collect(const struct workload *w, const struct replay_result *r, struct per_job *p)
{
    p->completion = xnew_array(double, w->count);
    p->wait = xnew_array(double, w->count);
    p->slowdown = xnew_array(double, w->count);
    p->owner = xnew_array(uint32_t, w->count);
    for (size_t i = 0; i < w->count; i++) {
        double duration = (double)w->jobs[i].duration / USEC, whole;

        if (r->end[i] == BOOK_FOREVER)
            continue;
        whole = (double)(r->end[i] - w->jobs[i].submit) / USEC;
        p->completion[p->count] = whole;
        p->wait[p->count] = (double)(r->start[i] - w->jobs[i].submit) / USEC;
        p->slowdown[p->count] = MAX_OF(whole / MAX_OF(duration, THRESHOLD), 1.0);
        p->owner[p->count++] = w->jobs[i].job.owner;
    }
}

static double fairness_of(const struct book *b, const struct per_job *p)
{
    _cleanup_free_ double *sum = xnew_array(double, b->text_count + 1);
    _cleanup_free_ uint64_t *count = xnew_array(uint64_t, b->text_count + 1);
    double all = 0, squares = 0;
    size_t users = 0;

    for (size_t i = 0; i < p->count; i++) {
        sum[p->owner[i]] += p->slowdown[i];
        count[p->owner[i]]++;
    }
    for (uint32_t u = 0; u < b->text_count; u++)
        if (count[u]) {
            double mean = sum[u] / (double)count[u];

            all += mean;
            squares += mean * mean;
            users++;
        }
    return users ? all * all / ((double)users * squares) : 1;
}

static uint64_t gpu_capacity(const struct book *b)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < b->node_count; i++)
        sum += (uint64_t)b->nodes[i].gpus * SHAPE_WHOLE;
    return sum;
}

static double use_of(const struct book *b, const struct workload *w, const struct replay_result *r)
{
    uint64_t until = w->jobs[w->count - 1].submit, capacity = gpu_capacity(b);
    double area = 0;

    for (size_t i = 0; i + 1 < r->sample_count && r->samples[i].at < until; i++)
        area += (double)r->samples[i].gpu_milli *
            (double)(MIN_OF(r->samples[i + 1].at, until) - r->samples[i].at);
    return until && capacity ? area / ((double)until * (double)capacity) : 0;
}

void report_make(const struct book *b, const struct workload *w, const struct replay_result *r,
    struct report *ret)
{
    struct per_job p = {0};

    collect(w, r, &p);
    *ret = (struct report){.jobs = p.count,
        .never = r->never,
        .completion_mean = mean_of(p.completion, p.count),
        .wait_mean = mean_of(p.wait, p.count),
        .slowdown_mean = mean_of(p.slowdown, p.count),
        .gpu_use = use_of(b, w, r),
        .fairness = fairness_of(b, &p),
        .passes = r->passes,
        .pass_mean_msec = r->passes ? (double)r->pass_nsec / 1e6 / (double)r->passes : 0,
        .pass_max_msec = (double)r->pass_max_nsec / 1e6};
    for (size_t i = 0; i < w->count; i++) {
        ret->preemptions += r->preempted[i];
        if (r->end[i] != BOOK_FOREVER)
            ret->makespan = MAX_OF(ret->makespan, (double)r->end[i] / USEC);
    }
    qsort(p.completion, p.count, sizeof(double), by_value);
    qsort(p.wait, p.count, sizeof(double), by_value);
    qsort(p.slowdown, p.count, sizeof(double), by_value);
    ret->completion_median = quantile(p.completion, p.count, 50);
    ret->completion_p99 = quantile(p.completion, p.count, 99);
    ret->wait_median = quantile(p.wait, p.count, 50);
    ret->wait_p99 = quantile(p.wait, p.count, 99);
    ret->slowdown_p99 = quantile(p.slowdown, p.count, 99);
    free(p.completion);
    free(p.wait);
    free(p.slowdown);
    free(p.owner);
}

/* One table for both forms of print. */
struct row {
    const char *key, *text, *unit;
    double value;
};

static size_t rows_of(const struct report *r, struct row rows[20])
{
    /* clang-format off */
    const struct row all[] = {
        { "jobs", "jobs", "", (double)r->jobs },
        { "never", "jobs that no empty cluster could hold", "", (double)r->never },
        { "completion_mean", "completion time, mean", " s", r->completion_mean },
        { "completion_median", "completion time, median", " s", r->completion_median },
        { "completion_p99", "completion time, 99 of 100 within", " s", r->completion_p99 },
        { "wait_mean", "wait, mean", " s", r->wait_mean },
        { "wait_median", "wait, median", " s", r->wait_median },
        { "wait_p99", "wait, 99 of 100 within", " s", r->wait_p99 },
        { "slowdown_mean", "bounded slowdown, mean", "", r->slowdown_mean },
        { "slowdown_p99", "bounded slowdown, 99 of 100 within", "", r->slowdown_p99 },
        { "makespan", "until the last end", " s", r->makespan },
        { "gpu_use", "GPUs in use while jobs came", "", r->gpu_use },
        { "fairness", "fairness between users (Jain)", "", r->fairness },
        { "preemptions", "preemptions", "", (double)r->preemptions },
        { "passes", "passes", "", (double)r->passes },
        { "pass_mean_msec", "a pass, mean", " ms", r->pass_mean_msec },
        { "pass_max_msec", "a pass, longest", " ms", r->pass_max_msec },
    };
    /* clang-format on */

    memcpy(rows, all, sizeof(all));
    return ARRAY_LEN(all);
}

void report_text(const struct report *r, FILE *to)
{
    struct row rows[20];
    size_t n = rows_of(r, rows);

    for (size_t i = 0; i < n; i++)
        fprintf(to, "%-40s %.*f%s\n", rows[i].text, rows[i].value < 100 ? 3 : 0, rows[i].value,
            rows[i].unit);
}

void report_json(const struct report *r, FILE *to)
{
    struct row rows[20];
    size_t n = rows_of(r, rows);

    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s\"%s\": %.6g", i ? ", " : "{", rows[i].key, rows[i].value);
    fputs("}\n", to);
}

/* --- a picture ---------------------------------------------------------------------------- */

static double value_of(const struct replay_sample *s, bool waiting)
{
    return waiting ? (double)s->waiting : (double)s->gpu_milli / SHAPE_WHOLE;
}

/* Steps; samples that fall on one pixel become the highest of them. */
static void curve(struct buf *b, const struct replay_result *r, bool waiting, double most, int top)
{
    double end = (double)r->samples[r->sample_count - 1].at;
    double high = 0;
    int last = -1;

    buf_puts(b, "<polyline fill=\"none\" stroke=\"#1f6feb\" points=\"");
    for (size_t i = 0; i < r->sample_count; i++) {
        int x = (int)((double)r->samples[i].at / MAX_OF(end, 1.0) * WIDTH);
        double v = value_of(&r->samples[i], waiting);

        high = x == last ? MAX_OF(high, v) : v;
        if (x != last)
            buf_printf(b, "%d,%.1f ", x, top + HEIGHT - high / MAX_OF(most, 1.0) * HEIGHT);
        last = x;
    }
    buf_puts(b, "\"/>\n");
}

static void panel(struct buf *b, const struct replay_result *r, bool waiting, double most, int top,
    const char *title)
{
    buf_printf(b,
        "<text x=\"0\" y=\"%d\">%s (to %.0f)</text>\n"
        "<rect x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n",
        top - 6, title, most, top, WIDTH, HEIGHT);
    curve(b, r, waiting, most, top);
}

int report_svg(
    const struct book *b, const struct replay_result *r, const char *path, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(SVG_MAX);
    double most = 0;

    if (r->sample_count == 0)
        return err_set(err, -ENODATA, "there is nothing to draw");
    for (size_t i = 0; i < r->sample_count; i++)
        most = MAX_OF(most, (double)r->samples[i].waiting);
    buf_printf(&out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-10 0 %d %d\" "
        "font-family=\"sans-serif\" "
        "font-size=\"13\">\n",
        WIDTH + 20, 2 * (HEIGHT + GAP) + 10);
    panel(&out, r, false, (double)gpu_capacity(b) / SHAPE_WHOLE, GAP - 10, "GPUs in use");
    panel(&out, r, true, most, HEIGHT + 2 * GAP - 10, "jobs waiting");
    buf_puts(&out, "</svg>\n");
    return fs_write(path, out.data, out.len, 0644, err);
}
