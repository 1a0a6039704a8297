/*
 * The scheduler, for whoever has nodes and sessions: it is told of each as it changes, and asked to
 * run a pass; decisions come out, and the reasons of those that wait on demand. Pure: no clock, no
 * I/O; the same calls give the same decisions. What decides is below: book.h, order.h, place.h,
 * plan.h, pass.h.
 *
 * - the order is by priority (order.h), then by number;
 * - a gang is placed whole or not at all, inside one group;
 * - single-node: on one node, or it waits;
 * - multi-node: whole on one node if any can hold it now, else on the fewest nodes;
 * - the first that do not fit have reservations, which nobody behind them may delay.
 *
 * What is told is copied. Usage is never told: it is added up, pass by pass, from where sessions
 * are.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "model/account.h"
#include "model/node.h"
#include "model/session.h"
#include "sched/pass.h"

/* What is known of a session after a pass, by its handle in the book. */
struct sched_note {
    char id[UUID_TEXT_LEN + 1];
    uint8_t verdict; /* enum verdict */
    uint8_t code;    /* enum sched_code */
    bool seen;       /* by a pass since it waits */
    uint32_t position;
    uint8_t word;     /* VERDICT_QUOTA: enum ledger_word */
    uint32_t account; /* its, or TREE_NONE */
    uint64_t blocker; /* its number; 0: none */
    uint64_t start;
};

struct sched {
    struct book book;
    struct pass_options options; /* may be changed between passes */
    struct map handles;          /* session id -> handle, plus one */
    struct sched_note *notes;
    size_t note_cap;
    struct place after; /* what is free after the last pass, for reasons */
    bool has_after;
};

/* What somebody else holds on a node (quarantined containers). gpus: bits. */
struct sched_withheld {
    struct resources sum;
    uint64_t gpus;
};

struct sched_share {  /* one container's place */
    const char *node; /* borrowed from the book until the node is removed */
    uint64_t gpus;    /* bits */
};

struct sched_start {
    char session[UUID_TEXT_LEN + 1];
    struct sched_share *shares; /* size of them, by rank */
    uint32_t size;
};

struct sched_victim { /* has to leave, since this pass */
    char session[UUID_TEXT_LEN + 1], for_session[UUID_TEXT_LEN + 1];
};

struct sched_result {
    struct sched_start *started;
    size_t started_count;
    char (*news)[UUID_TEXT_LEN + 1]; /* of sessions that wait, and for another reason than before */
    size_t news_count;
    struct sched_victim *victims;
    size_t victim_count;
    uint64_t wake_usec; /* when another pass is due though nothing changes; BOOK_FOREVER */
};

/* Why a session waits, as things are after the last pass. */
struct sched_reason {
    const char *code;  /* "queued" (no pass has seen it), "resources", "priority", "held",
                          "begin_time", "no_node_up", "group_drained",
                          "single_node_too_small_now" */
    const char *slurm; /* the name that Slurm has for it (squeue(1)): "Priority" */
    char text[256]; /* "needs 4 x (2 CPUs, 4 GiB) on one node; the most any node of group 'default'
                       has free is 3 x (n2)" */
    uint32_t largest;    /* size of the same session that there is room for */
    uint32_t position;   /* in the queue, from 1; 0: not known */
    uint64_t start_usec; /* planned, at the latest; 0: not planned */
    uint64_t blocker;    /* "priority": the number of the session that needs the room; else 0 */
};

void sched_init(struct sched *s);
void sched_done(struct sched *s);

/* A node is new or has changed; withheld may be NULL. */
void sched_node_put(struct sched *s, const struct node *n, const struct sched_withheld *withheld);
void sched_node_remove(struct sched *s, const char *name);
/* An account is new or has changed; one whose parent is not known is at the top. */
void sched_account_put(struct sched *s, const struct account *a);
void sched_account_remove(struct sched *s, const char *name);
/* What somebody has had. */
void sched_use_put(
    struct sched *s, const struct account_use *u, uint32_t window_days, uint64_t now_usec);
/* What a GPU of this model counts as, in thousandths, when it comes to fairness. */
void sched_weight_put(struct sched *s, const char *gpu_model, uint32_t milli);
uint32_t sched_weight(const struct sched *s, const char *gpu_model);
/* A session is new or has changed: it waits, or holds what its containers hold, or is over. */
void sched_session_put(struct sched *s, const struct session *session, uint64_t now_usec);
void sched_session_remove(struct sched *s, const char *id);

/* What was started has its place in the scheduler already. */
void sched_run(struct sched *s, uint64_t now_usec, struct sched_result *ret);
void sched_result_done(struct sched_result *r);

/* Of a session that waits; brief: without text and largest, which take a look at all nodes. */
void sched_brief(const struct sched *s, const struct session *session, struct sched_reason *ret);
void sched_explain(struct sched *s, const struct session *session, struct sched_reason *ret);

/* The points of a session that waits, and their sum. */
int64_t sched_factors(
    const struct sched *s, const char *id, uint64_t now_usec, struct order_factors *ret);

/* The number of a session that waits, and is planned to have some of what this one holds; 0: none.
 */
uint64_t sched_wanted_by(const struct sched *s, const char *id);

struct sched_moved { /* a planned start that would be later, or none (BOOK_FOREVER) */
    uint64_t num, from, to;
};
/* Whose planned start would move if the running session were as here (longer, say): the first max
 * of them, by their place in the queue. */
size_t sched_would_move(const struct sched *s, const struct session *changed, uint64_t now_usec,
    struct sched_moved *ret, size_t max);

/* Since when others leave for it, usec; 0: they do not. */
uint64_t sched_claimed(const struct sched *s, const char *id);
/* Its handle in the book; BOOK_NONE: not there. */
uint32_t sched_job(const struct sched *s, const char *id);

struct sched_planned { /* what runs, and what is planned */
    const char *session;
    bool runs;
    uint64_t start_usec, end_usec;    /* at the latest; BOOK_FOREVER: no limit */
    const struct sched_share *shares; /* size of them; node NULL: nowhere any more */
    uint32_t size;
};

/* Each that runs or has a reservation since the last pass, for the call only. */
void sched_plan(
    const struct sched *s, void (*each)(const struct sched_planned *p, void *arg), void *arg);

/*
 * What would become of a session if it came now (one that waits: if it were as here). True when it
 * would start: *ret_start has where; else *ret_reason says why not.
 */
bool sched_try(const struct sched *s, const struct session *session, uint64_t now_usec,
    struct sched_start *ret_start, struct sched_reason *ret_reason);
void sched_start_done(struct sched_start *start);

/*
 * Could the session ever run on the group's nodes as they are when empty (whatever their state)?
 * 0, or -E2BIG with "asks for 4 x 8 GPUs = 32 on one node; the largest node of group 'default' (n1)
 * has 8", or -ENOENT when the group has no node at all. ret_largest: the largest size that could.
 */
int sched_could_ever(const struct session *s, const struct node *const *nodes, size_t count,
    uint32_t *ret_largest, struct err *err);

#endif
