/*
 * What accounts and users have now, against what they may: made anew for each pass from the running
 * jobs, and kept up as the pass starts others.
 *
 * A job is within its right (firm) while it and all that is firm before it fits into the deserved
 * quota of its account and of all above; else it borrows. Debug sessions come first, then others by
 * the time of their start; spot always borrows. Only what borrows can be asked back.
 */
#ifndef SCHED_LEDGER_H
#define SCHED_LEDGER_H

#include "sched/place.h"

struct ledger_row { /* of one quota of one account */
    uint32_t account;
    const struct tree_quota *quota;
    uint64_t used;    /* milli-GPUs */
    uint64_t firm;    /* of them: within deserved */
    uint64_t debug;   /* of them: of debug sessions */
    uint64_t leaving; /* of them: of those that were told to leave */
};

struct ledger_user { /* of one leaf, now */
    uint32_t sessions;
    uint64_t milli, debug_milli;
};

struct ledger {
    const struct book *book;
    struct ledger_row *rows;
    uint32_t *first;           /* by account: its rows, to first[account + 1] */
    struct ledger_user *users; /* by leaf */
    uint32_t *moving;          /* jobs that leave, and those for which they do */
    uint32_t moving_count;
    size_t moving_cap;
    bool nothing;    /* there is no quota and no limit: all may */
    bool guarantees; /* there are some */
};

enum ledger_word {
    LEDGER_FIRM,      /* it may, by right */
    LEDGER_BORROWS,   /* it may, while nobody else needs it */
    LEDGER_MAX,       /* its account would have more than its maximum */
    LEDGER_DEBUG,     /* debug sessions stay within the deserved quota */
    LEDGER_GUARANTEE, /* what is free is kept for others */
    LEDGER_SESSIONS,
    LEDGER_GPUS,
    LEDGER_DEBUG_GPUS,
    LEDGER_WINDOW, /* limits of each user */
};

static inline bool ledger_may(enum ledger_word w)
{
    return w == LEDGER_FIRM || w == LEDGER_BORROWS;
}

/* Sets `borrows` of every running job; those that are promised something count as if they had it.
 */
void ledger_init(struct ledger *l, struct book *b);
void ledger_done(struct ledger *l);
/* The job runs from now on (has its shares). */
void ledger_started(struct ledger *l, uint32_t job, bool borrows);
/* It does not yet, but something is being given back for it; or: that is not so any more. */
void ledger_promise(struct ledger *l, uint32_t job);
void ledger_withdraw(struct ledger *l, uint32_t job);
/* It is told to leave since this pass, or somebody is for it. */
void ledger_moves(struct ledger *l, uint32_t job);
/* It runs, and leaves: what is guaranteed to its account will be wanted again. sign -1: it stays.
 */
void ledger_leaves(struct ledger *l, uint32_t job, int sign);

/*
 * May the job start, but for guarantees? *ret_models: the GPU models that are allowed to it (bits;
 * 0: all that it takes) when it may. *ret_account (may be NULL): whose quota or limit says no.
 */
enum ledger_word ledger_ask(
    const struct ledger *l, uint32_t job, uint32_t *ret_models, uint32_t *ret_account);
/* With the job placed in after: is all that is guaranteed to others still free there, but for what
 * is promised? */
bool ledger_keeps_guarantees(const struct ledger *l, const struct place *after, uint32_t job);

#endif
