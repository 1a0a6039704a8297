/* What came out of a replay, in numbers and as a picture. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "sim/replay.h"

struct report {
    size_t jobs, never;
    double completion_mean, completion_median, completion_p99; /* s, from submission to end */
    double wait_mean, wait_median, wait_p99;                   /* s, to the first start */
    double slowdown_mean, slowdown_p99;                        /* bounded: of at least 10 s */
    double makespan;                                           /* s */
    double gpu_use;  /* of all GPU time until the last job came, 0 to 1 */
    double fairness; /* Jain's index of the users' mean slowdowns, 0 to 1 */
    uint64_t preemptions, passes;
    double pass_mean_msec, pass_max_msec;
};

void report_make(const struct book *b, const struct workload *w, const struct replay_result *r,
    struct report *ret);
void report_text(const struct report *r, FILE *to);
void report_json(const struct report *r, FILE *to);
/* GPUs in use and jobs waiting over time, as SVG. */
int report_svg(
    const struct book *b, const struct replay_result *r, const char *path, struct err *err);

#endif
