/*
 * Who is first: one integer for each waiting job from weighted factors, greater is earlier.
 *
 *   work       expected GPU-seconds (CPU-seconds / 8 without GPUs): small work first
 *   expansion  (wait + estimate) / estimate: who has waited long for what takes little time
 *   age        time since submission
 *   fair       who has had least of what is his share (tree.h)
 *   nice       as the user said
 *
 * work and expansion count in powers of two, so that no unit matters and none of the two can be
 * outweighed for good.
 */
#ifndef SCHED_ORDER_H
#define SCHED_ORDER_H

#include "sched/ledger.h"

#define ORDER_CPUS_FOR_A_GPU 8 /* where there are no GPUs to count */

struct order_options {
    int32_t work, expansion; /* points for a factor of two */
    int32_t age;             /* points a day */
    int32_t fair;            /* points for who has had least of what is his */
    uint64_t half_life_usec; /* of what somebody has had */
};

struct order_factors {
    int32_t work, expansion, age, fair, nice;
};

/* What a job is worth now. */
int64_t order_priority(const struct book *b, const struct book_job *j,
    const struct order_options *o, uint64_t now_usec, struct order_factors *ret);
/*
 * Handles of all waiting jobs; heap. First by quality of service; then those for which others
 * leave, those within their right, and the rest; then by priority, then by number. Sets fairness
 * anew.
 */
uint32_t *order_jobs(struct book *b, const struct ledger *l, const struct order_options *o,
    uint64_t now_usec, uint32_t *ret_count);
/* GPU-seconds in thousandths (of 8 CPUs without GPUs) that it is expected to take. */
uint64_t order_work(const struct book *b, const struct book_job *j);
/* usec that the job is expected to run: its estimate, or its limit, or a day. */
uint64_t order_expected(const struct book_job *j);

#endif
