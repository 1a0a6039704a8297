/*
 * muster-sim: replays a workload with a policy, so that last month can be had with another one
 * before it is switched. The scheduler is the manager's own.
 */
#include <time.h>

#include "base/opt.h"
#include "base/str.h"
#include "base/strv.h"
#include "sim/replay.h"
#include "sim/report.h"

struct config {
    char *nodes, *svg, *jobs;
    uint64_t reservations, work, expansion, age, patience_usec, turns, interval_usec, gpus_per_node;
    bool fifo, srtf, swf_gpus, json, help, version;
};

#define O(m) offsetof(struct config, m)

/* clang-format off */
static const struct opt options[] = {
    { "nodes", OPT_STR, O(nodes), NULL, "FILE|SPEC",
      "a CSV file (name, cpus, mem, gpus, gpu_model, leaf, spine, group), or '8x cpus=96,mem=768G,gpus=8'" },
    { "reservations", OPT_U64, O(reservations), "16", "N",
      "waiting jobs that hold a place in the future; 0: none" },
    { "work", OPT_U64, O(work), "1000", "POINTS", "for half the expected GPU time" },
    { "expansion", OPT_U64, O(expansion), "500", "POINTS",
      "for twice the time of wait and run over the run" },
    { "age", OPT_U64, O(age), "0", "POINTS", "for a day of waiting" },
    { "patience", OPT_DURATION, O(patience_usec), "1d", "TIME",
      "who has waited longer has a turn before others, the longest first; 0s: nobody" },
    { "turns", OPT_U64, O(turns), "5", "PERCENT", "of the cluster that goes by turns" },
    { "fifo", OPT_BOOL, O(fifo), NULL, NULL, "in the order of submission, whatever the points" },
    { "srtf", OPT_BOOL, O(srtf), NULL, NULL,
      "the reference instead: shortest remaining time first, known beforehand, preempting for free" },
    { "interval", OPT_DURATION, O(interval_usec), "0s", "TIME", "a pass at most so often" },
    { "gpus-per-node", OPT_U64, O(gpus_per_node), "0", "N",
      "a job of more GPUs becomes a gang of whole nodes; 0: never" },
    { "swf-gpus", OPT_BOOL, O(swf_gpus), NULL, NULL, "processors of an SWF file are GPUs" },
    { "json", OPT_BOOL, O(json), NULL, NULL, "print one line of JSON" },
    { "jobs", OPT_STR, O(jobs), NULL, "FILE", "write each job's submit, start and end (CSV, seconds)" },
    { "svg", OPT_STR, O(svg), NULL, "FILE", "draw GPUs in use and jobs waiting over time" },
    { "help", OPT_BOOL, O(help), NULL, NULL, "print this", 'h', true },
    { "version", OPT_BOOL, O(version), NULL, NULL, "print the version", 0, true },
    OPT_END
};
/* clang-format on */

static void print_help(void)
{
    printf("Usage: muster-sim [OPTION]... WORKLOAD\n\n"
           "Replay a workload (CSV, SWF, or what sacct --parsable2 prints) on a virtual clock.\n\n"
           "Example:\n"
           "  muster-sim --nodes '8x cpus=96,gpus=8' --svg month.svg month.csv\n\nOptions:\n");
    opt_print_help(options, stdout);
}

static uint64_t clock_nsec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int write_jobs(const char *path, const struct book *b, const struct workload *w,
    const struct replay_result *r, struct err *err)
{
    FILE *f = fopen(path, "we");

    if (!f)
        return err_sys(err, -errno, "cannot write '%s'", path);
    fputs("job,user,submit,start,end\n", f);
    for (size_t i = 0; i < w->count; i++) {
        const struct workload_job *j = &w->jobs[i];

        fprintf(f, "%ju,%s,%.6f", (uintmax_t)j->job.num, book_text(b, j->job.owner),
            (double)j->submit / 1e6);
        if (r->end[i] != BOOK_FOREVER)
            fprintf(f, ",%.6f,%.6f\n", (double)r->start[i] / 1e6, (double)r->end[i] / 1e6);
        else
            fputs(",,\n", f);
    }
    return fclose(f) == 0 ? 0 : err_sys(err, -errno, "cannot write '%s'", path);
}

static struct replay_options policy_of(const struct config *c)
{
    struct replay_options o = {
        .pass = pass_default, .pass_usec = c->interval_usec, .srtf = c->srtf};

    o.pass.reservations = (uint32_t)MIN_OF(c->reservations, (uint64_t)PLAN_RESERVATIONS_MAX);
    o.pass.order = (struct order_options){.work = (int32_t)MIN_OF(c->work, (uint64_t)1000000),
        .expansion = (int32_t)MIN_OF(c->expansion, (uint64_t)1000000),
        .age = (int32_t)MIN_OF(c->age, (uint64_t)1000000)};
    o.pass.patience_usec = c->fifo ? 0 : c->patience_usec;
    o.pass.turns_milli = (uint32_t)MIN_OF(c->turns, UINT64_C(100)) * 10;
    if (c->fifo)
        o.pass.order = (struct order_options){0};
    return o;
}

static int replay(const struct config *c, struct book *b, const struct workload *w, struct err *err)
{
    struct replay_options o = policy_of(c);
    _cleanup_(replay_done) struct replay_result r;
    struct report report;
    int e = 0;

    replay_run(b, w, &o, clock_nsec, &r);
    report_make(b, w, &r, &report);
    if (c->json)
        report_json(&report, stdout);
    else
        report_text(&report, stdout);
    if (c->svg)
        e = report_svg(b, &r, c->svg, err);
    if (e == 0 && c->jobs)
        e = write_jobs(c->jobs, b, w, &r, err);
    return e;
}

static int run(const struct config *c, const char *path, struct err *err)
{
    struct workload_options wo = {
        .swf_gpus = c->swf_gpus, .gpus_per_node = (uint32_t)MIN_OF(c->gpus_per_node, (uint64_t)64)};
    _cleanup_(book_done) struct book b;
    _cleanup_(workload_done) struct workload w = {0};
    int r;

    book_init(&b);
    if (!c->nodes)
        return err_set(err, -EINVAL, "--nodes is needed; see --help");
    r = workload_nodes(&b, c->nodes, err);
    if (r == 0)
        r = workload_read(&b, path, &wo, &w, err);
    if (r < 0)
        return r;
    if (w.skipped > 0)
        fprintf(stderr, "muster-sim: %zu lines are no jobs that have run; left out\n", w.skipped);
    return replay(c, &b, &w, err);
}

int main(int argc, char **argv)
{
    struct config c = {0};
    struct err err = ERR_INIT;
    int rest = 0, r;

    opt_defaults(options, &c);
    r = opt_parse(options, &c, argc, argv, &rest, &err);
    if (r == 0 && c.help)
        print_help();
    else if (r == 0 && c.version)
        puts("muster-sim " MUSTER_VERSION);
    else if (r == 0 && rest + 1 != argc)
        r = err_set(&err, -EINVAL, "one WORKLOAD is needed; see --help");
    else if (r == 0)
        r = run(&c, argv[rest], &err);
    opt_free(options, &c);
    if (r < 0)
        fprintf(stderr, "muster-sim: %s\n", err_text(&err));
    return r < 0 ? 1 : 0;
}
