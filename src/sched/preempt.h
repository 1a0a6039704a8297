/*
 * Who has to leave so that a job which is within its account's right starts: train sessions that
 * borrow, spot ones first, and nobody else; none before its minimum run time.
 *
 * Victims are taken by lowest quality of service, then least work lost, then fewest, until there is
 * room; then each that is not needed after all is spared. Reservations of others are left alone,
 * and so is what is guaranteed to others.
 */
#ifndef SCHED_PREEMPT_H
#define SCHED_PREEMPT_H

#include "sched/ledger.h"
#include "sched/plan.h"

struct preempt_options {
    uint64_t min_run_usec;  /* nobody leaves before he has run so long */
    uint64_t spot_run_usec; /* of spot sessions */
    uint64_t grace_usec;    /* from the word to the end */
};

/*
 * Handles of those that leave for the job; heap, *ret_count of them, NULL for none. They are marked
 * in the book (leaves, leaves_for), end at now + grace in the plan, and the job has a reservation
 * for then (the last of the plan). *ret_next: when another one could leave; BOOK_FOREVER.
 */
uint32_t *preempt_for(struct book *b, struct ledger *l, struct plan *plan, struct place *now,
    uint32_t job, const struct preempt_options *o, uint32_t *ret_count, uint64_t *ret_next);

#endif
