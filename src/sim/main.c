/*
 * muster-sim: replays a workload with a policy, so that last month can be had with another one
 * before it is switched. The scheduler is the manager's own.
 */
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/strv.h"
#include "sched/policy.h"
#include "sim/replay.h"
#include "sim/report.h"

#define POLICY_FILE_MAX (64 * 1024)

struct config {
    char *nodes, *svg, *jobs;
    char **policy;
    uint64_t interval_usec, gpus_per_node;
    bool fifo, srtf, swf_gpus, json, help, version;
};

#define O(m) offsetof(struct config, m)

/* clang-format off */
static const struct opt options[] = {
    { "nodes", OPT_STR, O(nodes), NULL, "FILE|SPEC",
      "a CSV file (name, cpus, mem, gpus, gpu_model, leaf, spine, group), or '8x cpus=96,mem=768G,gpus=8'" },
    { "policy", OPT_STRV, O(policy), NULL, "KEY=VALUE|FILE",
      "a knob of the scheduler, or what 'muster policy show -o json' printed; may be given several times" },
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
    printf("\nKnobs of --policy, with what they are if nothing is said:\n");
    for (const struct policy_knob *k = policy_knobs; k->name; k++)
        printf("  %s=%llu\n      %s\n", k->name, (unsigned long long)policy_get(&pass_default, k),
            k->help);
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

/* --- the policy ----------------------------------------------------------------------------- */

/* "patience=2d" is the knob "patience_usec". */
static int set_knob(struct pass_options *o, const char *word, struct err *err)
{
    size_t len = strcspn(word, "=");
    _cleanup_free_ char *key = xstrndup(word, len), *key_usec = xasprintf("%s_usec", key);
    const struct policy_knob *k = policy_find(key), *time = policy_find(key_usec);
    uint64_t value;
    int r;

    if (!k && !time)
        return err_set(err, -EINVAL, "--policy: there is no knob '%s'; see --help", key);
    if (k && str_to_u64(word + len + 1, UINT64_MAX, &value) < 0)
        return err_set(err, -EINVAL, "--policy: '%s' must be a whole number", key);
    r = k ? 0 : duration_parse(word + len + 1, &value, err);
    return r < 0 ? err_prefix(err, "--policy: '%s'", key) : policy_set(o, k ? k : time, value, err);
}

static int read_policy(struct pass_options *o, const char *path, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_(json_decrefp) json_t *body = NULL;
    size_t len;
    int r = fs_read(path, POLICY_FILE_MAX, &text, &len, err);

    if (r == 0)
        r = json_parse(text, len, POLICY_FILE_MAX, &body, err);
    if (r < 0)
        return err_prefix(err, "--policy");
    r = policy_read(body, o, err);
    return r < 0 ? err_prefix(err, "--policy: '%s'", path) : 0;
}

static int policy_of(const struct config *c, struct replay_options *ret, struct err *err)
{
    char **words = c->policy;
    int r = 0;

    *ret = (struct replay_options){
        .pass = pass_default, .pass_usec = c->interval_usec, .srtf = c->srtf};
    strv_for_each (word, words) {
        r = strchr(*word, '=') ? set_knob(&ret->pass, *word, err)
                               : read_policy(&ret->pass, *word, err);
        if (r < 0)
            return r;
    }
    if (c->fifo) {
        ret->pass.order = (struct order_options){0};
        ret->pass.patience_usec = 0;
    }
    return 0;
}

static int replay(const struct config *c, struct book *b, const struct workload *w, struct err *err)
{
    struct replay_options o;
    _cleanup_(replay_done) struct replay_result r = {0};
    struct report report;
    int e = policy_of(c, &o, err);

    if (e < 0)
        return e;
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
