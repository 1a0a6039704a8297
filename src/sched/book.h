/*
 * What the scheduler knows: nodes, the jobs that wait and the shares of those that run, in compact
 * tables. The manager keeps one such book up to date and the simulator another; a pass (pass.h)
 * reads it and decides. Pure: no clock, no I/O.
 *
 * A job is a session as the scheduler sees it. Names are numbers here: they are interned, and a
 * number keeps its name for the book's life. Nodes are kept in the order of their names, which
 * breaks ties, so that the same book gives the same decisions.
 *
 * Usage is never kept: usage_init (usage.h) adds up the shares each time it is asked.
 */
#ifndef SCHED_BOOK_H
#define SCHED_BOOK_H

#include "base/map.h"
#include "sched/shape.h"
#include "sched/tree.h"

#define BOOK_NONE UINT32_MAX
#define BOOK_MODELS_MAX 32 /* GPU models of a cluster */
#define BOOK_FOREVER UINT64_MAX
#define BOOK_WEIGHT 1000 /* of a GPU model of which nothing is said */

/* What keeps a node from taking new work. */
enum book_closed { BOOK_OPEN, BOOK_DRAINED, BOOK_UNREACHABLE, BOOK_LOST, BOOK_CLOSED_COUNT };

/* A node as it is when empty. */
struct book_node {
    char *name;
    uint32_t cpu_milli, gpus;
    uint64_t mem;
    uint8_t model[SHAPE_GPUS_MAX];                        /* of each GPU, a model's number */
    uint8_t numa[SHAPE_GPUS_MAX], nvlink[SHAPE_GPUS_MAX]; /* those with the same number are near
                                                             each other; 0: not known */
    uint64_t healthy;                                     /* bit i: GPU i may be used */
    uint32_t models;                                      /* bits of the models that it has */
    uint32_t group;                                       /* a name's number */
    uint16_t leaf, spine;                                 /* book_switch; 0 when not known */
    uint8_t closed;                                       /* enum book_closed */
    uint64_t close_from, close_to; /* usec: nothing runs there in between; equal: never */
};

/* A node that is away is expected to be back. */
static inline bool book_node_takes_work(const struct book_node *n, bool later)
{
    return n->closed == BOOK_OPEN || (later && n->closed == BOOK_UNREACHABLE);
}

/* May the shape use this GPU of the node? */
static inline bool book_gpu_suits(const struct book_node *n, uint32_t gpu, const struct shape *s)
{
    return s->models == 0 || (s->models >> n->model[gpu] & 1);
}

/* Where one container of a running job is. */
struct book_share {
    uint32_t node;  /* BOOK_NONE: nowhere any more */
    uint16_t milli; /* of each of its GPUs; 1000: whole */
    uint64_t gpus;  /* bits */
};

enum book_job_state { JOB_FREE, JOB_WAITS, JOB_RUNS };

struct book_job {
    uint64_t num; /* of the session; earlier ones first among equals */
    uint32_t shape;
    uint8_t state, kind; /* enum book_job_state, enum session_kind */
    bool held;           /* not to be started */
    bool depends;        /* waits for others to begin or end */
    bool spot;           /* always borrows */
    bool borrows;        /* runs: more than its account's right (ledger.h) */
    bool leaves;         /* runs: told to end for somebody else, or ends already */
    uint8_t tier;        /* quality of service; higher ones first */
    int32_t nice;
    uint32_t leaf;             /* of the tree */
    uint64_t claimed;          /* usec: since then others leave for it; 0: nobody does */
    uint64_t leaves_for;       /* number of the session that it leaves for; 0: nobody */
    uint64_t begin;            /* usec: not started before; 0: at once */
    uint64_t relax;            /* usec: from then on on any number of switches; 0: never */
    uint32_t owner;            /* a name's number */
    uint64_t submitted;        /* usec */
    uint64_t limit;            /* usec of running; BOOK_FOREVER: none */
    uint64_t estimate;         /* usec of running, as expected; 0: not known */
    uint64_t started;          /* runs: usec; waits: when it is planned to, 0: not planned */
    struct book_share *shares; /* runs: where; waits: where it is planned; size of the shape */
};

struct book {
    struct book_node *nodes; /* sorted by name; indices change when one comes or goes */
    uint32_t node_count;
    size_t node_cap;
    struct shape *shapes; /* interned */
    uint32_t *shape_jobs; /* jobs that have it */
    uint32_t shape_count;
    size_t shape_cap;
    struct book_job *jobs; /* with holes (JOB_FREE) */
    uint32_t job_count;    /* holes included */
    size_t job_cap;
    uint32_t hole; /* first of a chain through .shape; BOOK_NONE */
    uint32_t waiting, running;
    uint64_t turn_at; /* usec: not before, the one that waits longest has its turn (pass.h) */
    struct map shape_index, names, switches; /* text -> number + 1 */
    char **texts;
    uint32_t text_count;
    size_t text_cap;
    char *models[BOOK_MODELS_MAX];
    uint32_t model_weight[BOOK_MODELS_MAX]; /* what a GPU of it counts as, in thousandths */
    uint32_t model_count;
    struct tree tree;
};

void book_init(struct book *b);
void book_done(struct book *b);
/* The same again, handles and numbers too. */
void book_copy(struct book *to, const struct book *from);

/* The number of a name, given anew when it is not known. */
uint32_t book_name(struct book *b, const char *text);
const char *book_text(const struct book *b, uint32_t number);
/* The number of a GPU model. -ENOSPC when there are more than BOOK_MODELS_MAX. */
int book_model(struct book *b, const char *name, uint8_t *ret);
/* The bits of "h100", "a100|h100"; 0 for "". A model that nobody has gives a bit, too. */
int book_models(struct book *b, const char *names, uint32_t *ret);

/* The number of a switch, from 1; 0 for "". -ENOSPC when there are more than UINT16_MAX. */
int book_switch(struct book *b, const char *name, uint16_t *ret);

/* Add a node, or change it; the name is copied. Its index. */
uint32_t book_node_put(struct book *b, const struct book_node *n);
/* Nothing may run there; plans with it are forgotten. */
void book_node_remove(struct book *b, uint32_t node);
uint32_t book_node_find(const struct book *b, const char *name); /* BOOK_NONE */

/* The number of a shape. */
uint32_t book_shape(struct book *b, const struct shape *shape);
/* Forget shapes that no job has; the others get new numbers. */
void book_drop_shapes(struct book *b);

/* A job that waits; its handle. shares and state are not looked at. */
uint32_t book_job_add(struct book *b, const struct book_job *job);
/* One that waits is another one now; its plan is kept if its shape is the same. shares and state
 * are not looked at. */
void book_job_change(struct book *b, uint32_t job, const struct book_job *to);
/* It asks for something a little other (of the same size), and keeps its plan. */
void book_job_reshape(struct book *b, uint32_t job, uint32_t shape);
/* It runs: shares (of the shape's size) are copied. */
void book_job_start(
    struct book *b, uint32_t job, const struct book_share *shares, uint64_t now_usec);
/* It waits, and is planned to start then and there: shares are copied. NULL: not any more. */
void book_job_plan(
    struct book *b, uint32_t job, const struct book_share *shares, uint64_t start_usec);
/* It waits again. */
void book_job_stop(struct book *b, uint32_t job);
void book_job_remove(struct book *b, uint32_t job);
const struct shape *book_shape_of(const struct book *b, const struct book_job *job);

#define book_for_each_job(i, b) \
    for (uint32_t i = 0; i < (b)->job_count; i++) \
        if ((b)->jobs[i].state != JOB_FREE)

#endif
