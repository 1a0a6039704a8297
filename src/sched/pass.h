/*
 * One pass: the waiting jobs in their order, each started, or told why not. The book has the
 * started ones as running when it returns, and the first others as planned.
 *
 * Order by points alone would let small work keep large work waiting for ever where there is always
 * more than the cluster can do. So a share of the cluster goes by time of waiting: of those that
 * have waited longer than patience, the one that waits longest has its turn before all others, and
 * the next one when that share of the cluster would have done the work of the last.
 */
#ifndef SCHED_PASS_H
#define SCHED_PASS_H

#include "sched/ledger.h"
#include "sched/order.h"
#include "sched/preempt.h"

struct pass_options {
    struct order_options order;
    uint32_t reservations;  /* 0: jobs that fit start, whoever waits before them */
    uint64_t patience_usec; /* 0: nobody has a turn */
    uint32_t turns_milli;   /* the share of turns, in thousandths */
    struct preempt_options preempt;
    uint64_t lease_usec;        /* of a debug session that does not say how long it takes */
    uint64_t lease_notice_usec; /* from the word that somebody waits for it to its end */
};

extern const struct pass_options pass_default;

enum verdict {
    VERDICT_START,
    VERDICT_HELD,      /* by the user or an administrator */
    VERDICT_DEPENDS,   /* others have to begin or end first */
    VERDICT_BEGIN,     /* not before its time */
    VERDICT_RESOURCES, /* no room */
    VERDICT_PRIORITY,  /* room, but it is reserved for a job before it */
    VERDICT_QUOTA,     /* its account or its user has what it may have */
    VERDICT_LEAVING,   /* others have been told to leave for it */
};

struct decision {
    uint32_t job;
    uint8_t verdict;
    uint8_t word;     /* VERDICT_QUOTA: enum ledger_word */
    uint32_t blocker; /* VERDICT_PRIORITY: a job; VERDICT_QUOTA: an account, or TREE_NONE */
    uint64_t start;   /* planned; 0: not planned; VERDICT_START: now */
};

struct pass_victim {
    uint32_t job, for_job;
};

struct pass_result {
    struct decision *list; /* of all waiting jobs, in their order */
    uint32_t count, started;
    struct pass_victim *victims; /* that have to leave, since this pass */
    uint32_t victim_count;
    size_t victim_cap;
    uint64_t wake_usec; /* when somebody else could be told to; BOOK_FOREVER */
    uint64_t scanned;   /* nodes looked at */
};

void pass_run(
    struct book *b, const struct pass_options *o, uint64_t now_usec, struct pass_result *ret);
void pass_result_done(struct pass_result *r);

#endif
