/* Why a session waits, in a word and for a person. Inside sched only. */
#ifndef SCHED_EXPLAIN_H
#define SCHED_EXPLAIN_H

#include "sched/sched.h"

enum sched_code {
    CODE_QUEUED,
    CODE_HELD,
    CODE_BEGIN,
    CODE_DEPENDS,
    CODE_RESOURCES,
    CODE_SINGLE_NODE,
    CODE_SWITCHES,
    CODE_PRIORITY,
    CODE_CLOSING,
    CODE_QUOTA,
    CODE_LEAVING,
    CODE_NO_NODE,
    CODE_DRAINED,
    CODE_COUNT
};

/* How many nodes of a group are in which state. */
struct census {
    uint32_t nodes, by[BOOK_CLOSED_COUNT]; /* enum book_closed */
};

/* Of each group that there is, by the group's number; heap. */
struct census *explain_census(const struct book *b);
enum sched_code explain_code(
    const struct census *c, const struct shape *shape, enum verdict verdict);

/* Of a session that its account's or its user's bounds keep waiting: which. Nothing for others. */
void explain_quota(const struct book *b, const struct session *session, const struct sched_note *n,
    struct sched_reason *ret);
/* Its words: code and slurm. */
void explain_words(const struct session *session, enum sched_code code, struct sched_reason *ret);
/* The text and numbers for a session whose job is of this shape; code is set. p: what is free. */
void explain_reason(struct place *p, const struct session *session, const struct shape *shape,
    enum sched_code code, struct sched_reason *ret);

#endif
