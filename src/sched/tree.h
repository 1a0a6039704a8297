/*
 * Accounts: a tree that shares the cluster. An account has shares (its weight among its siblings)
 * and quotas: rows of a group of nodes and a GPU model, each with
 *
 *   guarantee   kept for it, lent to nobody
 *   deserved    its right: others may use it while it does not, and give it back when it needs it
 *   max         more it never has
 *
 * in thousandths of a GPU. What a session takes counts for its account and all above it. Who works
 * for an account is a leaf of the tree.
 *
 * Handles of accounts and leaves are good for the tree's life: one that is removed is closed, and
 * opened again by its name.
 */
#ifndef SCHED_TREE_H
#define SCHED_TREE_H

#include "base/map.h"

#define TREE_NONE UINT32_MAX
#define TREE_DEPTH_MAX 16
#define TREE_ANY_MODEL 255
#define TREE_NO_LIMIT UINT32_MAX

struct tree_quota {
    uint32_t group;                    /* a name's number of the book; TREE_NONE: any */
    uint8_t model;                     /* a model's number; TREE_ANY_MODEL: all together */
    uint32_t guarantee, deserved, max; /* milli-GPUs; no guarantee: 0, else TREE_NO_LIMIT */
};

struct tree_account {
    char *name;
    uint32_t parent; /* TREE_NONE: at the top */
    uint32_t shares; /* at least 1 */
    struct tree_quota *quotas;
    uint32_t quota_count;
    uint32_t user_sessions;    /* of each of its users: running at once; TREE_NO_LIMIT */
    uint32_t user_milli;       /* GPUs at once, in thousandths */
    uint32_t user_debug_milli; /* in debug sessions */
    uint64_t user_window;      /* milli-GPU-seconds in the window; UINT64_MAX */
};

/* Somebody who works for an account. */
struct tree_leaf {
    uint32_t account, user; /* TREE_NONE: for none; the user's number */
    uint64_t used;          /* weighted milli-GPU-seconds, decayed until used_at */
    uint64_t used_at;       /* usec */
    uint64_t window;        /* milli-GPU-seconds of the last days, as told */
    uint16_t fair;          /* 1000: nobody has had less of what is his; set by a pass */
};

struct tree {
    struct tree_account *accounts;
    uint32_t account_count;
    size_t account_cap;
    struct tree_leaf *leaves;
    uint32_t leaf_count;
    size_t leaf_cap;
    struct map names, leaf_index; /* name, "ACCOUNT/USER" -> handle + 1 */
    uint32_t quotas;              /* rows of all accounts */
    bool limits;                  /* any account limits its users */
};

void tree_init(struct tree *t);
void tree_done(struct tree *t);
void tree_copy(struct tree *to, const struct tree *from);

/* Add an account, or change it: name and quotas are copied, parent is a handle. */
uint32_t tree_put(struct tree *t, const struct tree_account *account);
uint32_t tree_find(const struct tree *t, const char *name); /* TREE_NONE */
/* It has no quotas and no limits any more; who still works for it does so without. */
void tree_close(struct tree *t, uint32_t account);
/* The leaf of a user who works for an account (or TREE_NONE). */
uint32_t tree_leaf(struct tree *t, uint32_t account, uint32_t user);

/*
 * Who has had least of what is his: for each leaf (fair) 1000 (nobody has had less) down to 0,
 * given what each has used. Siblings are compared by use / shares, the accounts at the top first
 * (Fair Tree, Cox and Moore 2015, as in Slurm's priority/multifactor). used: by leaf.
 */
void tree_fairness(struct tree *t, const uint64_t *used);

#endif
