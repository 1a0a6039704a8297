/*
 * Reading of workloads. A line that cannot be understood ends the reading with its number; one that
 * is no job that has run (no end, no time) is counted and left out.
 */
#include "sim/workload.h"

#include <time.h>

#include "base/str.h"
#include "model/resources.h"
#include "sim/fields.h"

#define USEC 1e6
#define DEFAULT_CPUS_MILLI 1000

struct reader {
    struct book *book;
    const struct workload_options *options;
    struct workload *to;
    struct columns columns;
    struct fields fields;
    uint64_t first; /* submit of the first job, usec */
};

typedef int read_line_fn(struct reader *r, char *line, struct err *err);

uint32_t workload_group(struct book *b, const char *name)
{
    return book_name(b, name[0] ? name : "default");
}

/* --- one job ------------------------------------------------------------------------------ */

/* A job of more GPUs than a node has is a gang of whole nodes. */
static void fold(const struct workload_options *o, struct shape *s)
{
    uint32_t gpus = s->gpu_milli / SHAPE_WHOLE;

    if (!o->gpus_per_node || gpus <= o->gpus_per_node)
        return;
    s->size *= (gpus + o->gpus_per_node - 1) / o->gpus_per_node;
    s->gpu_milli = o->gpus_per_node * SHAPE_WHOLE;
}

static void add_job(
    struct reader *r, uint64_t submit, uint64_t duration, struct shape *s, struct book_job *job)
{
    struct workload *w = r->to;

    fold(r->options, s);
    job->shape = book_shape(r->book, s);
    job->num = w->count + 1;
    w->jobs = xgrow(w->jobs, &w->cap, w->count + 1, sizeof(*w->jobs));
    w->jobs[w->count++] = (struct workload_job){
        .submit = submit, .duration = MAX_OF(duration, UINT64_C(1)), .job = *job};
}

static int mem_of(const struct fields *f, const char *name, uint64_t *ret, struct err *err)
{
    const char *text = fields_get(f, name);

    *ret = 0;
    return text[0] ? size_parse(text, ret, err) : 0;
}

/* --- CSV ---------------------------------------------------------------------------------- */

static int csv_shape(struct reader *r, struct shape *s, struct err *err)
{
    const struct fields *f = &r->fields;
    uint64_t cpus = 0, gpus = 0, size = 0, single = 0;
    int e = fields_number(f, "cpus", 1000, DEFAULT_CPUS_MILLI, &cpus, err);

    if (e == 0)
        e = fields_number(f, "gpus", SHAPE_WHOLE, 0, &gpus, err);
    if (e == 0)
        e = fields_number(f, "size", 1, 1, &size, err);
    if (e == 0)
        e = fields_number(f, "single_node", 1, 0, &single, err);
    if (e == 0)
        e = mem_of(f, "mem", &s->mem, err);
    if (e == 0)
        e = book_models(r->book, fields_get(f, "gpu_model"), &s->models);
    if (e < 0)
        return e;
    if (size == 0 || size > UINT16_MAX || cpus > UINT32_MAX || gpus > UINT32_MAX)
        return err_set(err, -ERANGE, "size, cpus or gpus are out of range");
    s->cpu_milli = (uint32_t)cpus;
    s->gpu_milli = (uint32_t)(gpus > SHAPE_WHOLE ? gpus / SHAPE_WHOLE * SHAPE_WHOLE : gpus);
    s->size = (uint32_t)size;
    s->single_node = single != 0;
    s->group = workload_group(r->book, fields_get(f, "group"));
    return 0;
}

/* The one number that may be below zero. */
static int csv_nice(const struct fields *f, int32_t *ret, struct err *err)
{
    const char *text = fields_get(f, "nice");
    int64_t n = 0;

    if (text[0] && str_to_i64(text, INT32_MIN, INT32_MAX, &n) < 0)
        return err_set(err, -EINVAL, "'nice' is '%.40s', not a whole number", text);
    *ret = (int32_t)n;
    return 0;
}

static int csv_line(struct reader *r, char *line, struct err *err)
{
    struct shape s = {0};
    struct book_job job = {0};
    uint64_t submit = 0, duration = 0;
    int e;

    fields_split(&r->fields, line, ',');
    e = fields_number(&r->fields, "submit", USEC, 0, &submit, err);
    if (e == 0)
        e = fields_number(&r->fields, "duration", USEC, 0, &duration, err);
    if (e == 0)
        e = fields_number(&r->fields, "limit", USEC, BOOK_FOREVER, &job.limit, err);
    if (e == 0)
        e = fields_number(&r->fields, "estimate", USEC, 0, &job.estimate, err);
    if (e == 0)
        e = csv_nice(&r->fields, &job.nice, err);
    if (e == 0)
        e = csv_shape(r, &s, err);
    if (e < 0)
        return e;
    job.owner = book_name(r->book, fields_get(&r->fields, "user"));
    job.leaf = tree_leaf(&r->book->tree, TREE_NONE, job.owner);
    add_job(r, submit, duration, &s, &job);
    return 0;
}

/* --- SWF ---------------------------------------------------------------------------------- */

/* Fields of the Standard Workload Format, from 0. */
enum {
    SWF_SUBMIT = 1,
    SWF_RUN = 3,
    SWF_PROCS = 4,
    SWF_REQ_PROCS = 7,
    SWF_REQ_TIME = 8,
    SWF_USER = 11
};

static int swf_line(struct reader *r, char *line, struct err *err)
{
    double v[18];
    struct shape s = {.size = 1, .group = workload_group(r->book, "")};
    struct book_job job = {.limit = BOOK_FOREVER};
    char user[32], *at = line, *end;
    double procs;

    if (line[0] == ';')
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(v); i++, at = end) {
        v[i] = strtod(at, &end);
        if (end == at)
            return err_set(err, -EINVAL, "field %zu of 18 is missing", i + 1);
    }
    procs = v[SWF_REQ_PROCS] > 0 ? v[SWF_REQ_PROCS] : v[SWF_PROCS];
    if (v[SWF_RUN] <= 0 || procs <= 0 || procs > 1e6 || v[SWF_SUBMIT] < 0) {
        r->to->skipped++;
        return 0;
    }
    if (r->options->swf_gpus)
        s.gpu_milli = (uint32_t)procs * SHAPE_WHOLE;
    s.cpu_milli = r->options->swf_gpus ? DEFAULT_CPUS_MILLI : (uint32_t)procs * 1000;
    if (v[SWF_REQ_TIME] > 0)
        job.limit = (uint64_t)(v[SWF_REQ_TIME] * USEC);
    snprintf(user, sizeof(user), "user%.0f", v[SWF_USER]);
    job.owner = book_name(r->book, user);
    job.leaf = tree_leaf(&r->book->tree, TREE_NONE, job.owner);
    add_job(r, (uint64_t)(v[SWF_SUBMIT] * USEC), (uint64_t)(v[SWF_RUN] * USEC), &s, &job);
    return 0;
}

/* --- sacct -------------------------------------------------------------------------------- */

/* "2026-11-30T12:00:00" as usec, in an unspecified zone: only differences count. */
static bool sacct_time(const char *text, uint64_t *ret)
{
    struct tm tm = {.tm_isdst = -1};
    time_t t;

    if (sscanf(text, "%d-%d-%dT%d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
            &tm.tm_min, &tm.tm_sec) != 6)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    t = timegm(&tm);
    *ret = t > 0 ? (uint64_t)t * 1000000 : 0;
    return t > 0;
}

/* "1-12:00:00", "12:00:00", "30:00", "UNLIMITED". */
static uint64_t sacct_limit(const char *text)
{
    unsigned days = 0, n[3] = {0};
    const char *dash = strchr(text, '-');
    int count;

    if (dash) {
        days = (unsigned)strtoul(text, NULL, 10);
        text = dash + 1;
    }
    count = sscanf(text, "%u:%u:%u", &n[0], &n[1], &n[2]);
    if (count < 1)
        return BOOK_FOREVER;
    if (count == 2 && !dash) /* minutes and seconds */
        return ((uint64_t)n[0] * 60 + n[1]) * 1000000;
    return (((uint64_t)days * 24 + n[0]) * 3600 + n[1] * 60 + n[2]) * 1000000;
}

/* The value of "gres/gpu=4" and the like in "cpu=8,mem=64G,node=2,gres/gpu:h100=4". */
static uint64_t tres(const char *text, const char *key)
{
    size_t n = strlen(key);
    uint64_t sum = 0;

    for (; *text; text += strcspn(text, ","), text += *text == ',') {
        const char *eq = text + strcspn(text, "=,");

        if (strncmp(text, key, n) == 0 && (text[n] == '=' || text[n] == ':') && *eq == '=')
            sum = MAX_OF(sum, strtoull(eq + 1, NULL, 10));
    }
    return sum;
}

static uint64_t tres_mem(const char *text)
{
    const char *at = strstr(text, "mem=");
    _cleanup_free_ char *one = at ? xstrndup(at + 4, strcspn(at + 4, ",")) : NULL;
    uint64_t bytes = 0;

    if (one && size_parse(one, &bytes, NULL) < 0)
        bytes = 0;
    return bytes;
}

static void sacct_shape(const struct fields *f, struct shape *s)
{
    const char *t = fields_get(f, "reqtres");
    uint64_t nodes = tres(t, "node"), cpus = tres(t, "cpu");

    if (!cpus)
        cpus = MAX_OF(strtoull(fields_get(f, "reqcpus"), NULL, 10), 1ULL);
    s->size = nodes > 1 ? (uint32_t)MIN_OF(nodes, (uint64_t)UINT16_MAX) : 1;
    s->cpu_milli = (uint32_t)MIN_OF(cpus * 1000 / s->size, (uint64_t)UINT32_MAX);
    s->gpu_milli = (uint32_t)MIN_OF(tres(t, "gres/gpu") / s->size, UINT64_C(1000)) * SHAPE_WHOLE;
    s->mem = tres_mem(t) / s->size;
}

static int sacct_line(struct reader *r, char *line, struct err *err UNUSED)
{
    struct shape s = {.group = workload_group(r->book, "")};
    struct book_job job = {.limit = BOOK_FOREVER};
    uint64_t submit, start, end;

    fields_split(&r->fields, line, '|');
    if (strchr(fields_get(&r->fields, "jobid"), '.'))
        return 0; /* a step */
    if (!sacct_time(fields_get(&r->fields, "submit"), &submit) ||
        !sacct_time(fields_get(&r->fields, "start"), &start) ||
        !sacct_time(fields_get(&r->fields, "end"), &end) || end <= start) {
        r->to->skipped++;
        return 0;
    }
    sacct_shape(&r->fields, &s);
    job.limit = sacct_limit(fields_get(&r->fields, "timelimit"));
    job.owner = book_name(r->book, fields_get(&r->fields, "user"));
    job.leaf = tree_leaf(&r->book->tree, TREE_NONE, job.owner);
    add_job(r, submit, end - start, &s, &job);
    return 0;
}

/* --- files -------------------------------------------------------------------------------- */

static int by_submit(const void *a, const void *b)
{
    const struct workload_job *x = a, *y = b;

    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    return x->job.num < y->job.num ? -1 : x->job.num > y->job.num;
}

/* From zero, in order, numbered in that order. */
static void settle(struct workload *w)
{
    qsort(w->jobs, w->count, sizeof(*w->jobs), by_submit);
    for (size_t i = w->count; i-- > 0;) {
        w->jobs[i].submit -= w->jobs[0].submit;
        w->jobs[i].job.submitted = w->jobs[i].submit;
        w->jobs[i].job.num = i + 1;
    }
}

static read_line_fn *reader_for(struct reader *r, const char *path, char *first)
{
    if (str_ends(path, ".swf"))
        return swf_line;
    columns_read(&r->columns, first, strchr(first, '|') ? '|' : ',');
    r->fields.columns = &r->columns;
    return columns_have(&r->columns, "start") && columns_have(&r->columns, "end") ? sacct_line
                                                                                  : csv_line;
}

static int read_lines(struct reader *r, const char *path, FILE *f, struct err *err)
{
    _cleanup_free_ char *line = xcalloc(1, FIELDS_LINE_MAX);
    read_line_fn *read_line = NULL;
    unsigned long number = 0;

    while (fgets(line, FIELDS_LINE_MAX, f)) {
        int e = 0;

        number++;
        if (!strchr(line, '\n') && !feof(f))
            return err_set(err, -E2BIG, "line %lu is too long", number);
        if (line[0] == '#' || line[strspn(line, " \t\r\n")] == '\0')
            continue;
        if (!read_line) {
            read_line = reader_for(r, path, line);
            if (r->fields.columns)
                continue;
        }
        e = read_line(r, line, err);
        if (e < 0)
            return err_prefix(err, "line %lu", number);
        if (r->to->count > WORKLOAD_JOBS_MAX)
            return err_set(err, -E2BIG, "there are more than %d jobs", WORKLOAD_JOBS_MAX);
    }
    return ferror(f) ? err_set(err, -EIO, "cannot be read") : 0;
}

int workload_read(struct book *b, const char *path, const struct workload_options *o,
    struct workload *ret, struct err *err)
{
    struct reader r = {.book = b, .options = o, .to = ret};
    FILE *f = fopen(path, "re");
    int e;

    *ret = (struct workload){0};
    if (!f)
        return err_sys(err, -errno, "cannot open '%s'", path);
    e = read_lines(&r, path, f, err);
    fclose(f);
    columns_done(&r.columns);
    if (e < 0)
        return err_prefix(err, "workload '%s'", path);
    if (ret->count == 0)
        return err_set(err, -ENODATA, "workload '%s' has no job that has run", path);
    settle(ret);
    return 0;
}

void workload_done(struct workload *w)
{
    free(w->jobs);
    *w = (struct workload){0};
}
