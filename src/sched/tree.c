/*
 * The tree and the order of its leaves. Fairness sorts siblings and walks down: nobody below one
 * account comes before anybody below a sibling that has had less.
 */
#include "sched/tree.h"

#include <stdio.h>

void tree_init(struct tree *t)
{
    *t = (struct tree){0};
    map_init(&t->names);
    map_init(&t->leaf_index);
}

void tree_done(struct tree *t)
{
    for (uint32_t i = 0; i < t->account_count; i++) {
        free(t->accounts[i].name);
        free(t->accounts[i].quotas);
    }
    free(t->accounts);
    free(t->leaves);
    map_done(&t->names, NULL);
    map_done(&t->leaf_index, NULL);
}

void tree_copy(struct tree *to, const struct tree *from)
{
    *to = *from;
    to->accounts = xmemdup(from->accounts, from->account_cap * sizeof(*from->accounts));
    for (uint32_t i = 0; i < from->account_count; i++) {
        struct tree_account *a = &to->accounts[i];

        a->name = xstrdup(a->name);
        a->quotas = xmemdup(a->quotas, a->quota_count * sizeof(*a->quotas));
    }
    to->leaves = xmemdup(from->leaves, from->leaf_cap * sizeof(*from->leaves));
    map_copy(&to->names, &from->names);
    map_copy(&to->leaf_index, &from->leaf_index);
}

/* Handles live in maps as pointers, one higher: a map has no NULL. */
static uint32_t handle(const struct map *m, const char *key)
{
    return (uint32_t)(uintptr_t)map_get(m, key) - 1;
}

static void set_handle(struct map *m, const char *key, uint32_t to)
{
    map_set(m, key, (void *)(uintptr_t)(to + 1));
}

static bool limits_users(const struct tree_account *a)
{
    return a->user_sessions != TREE_NO_LIMIT || a->user_milli != TREE_NO_LIMIT ||
        a->user_debug_milli != TREE_NO_LIMIT || a->user_window != UINT64_MAX;
}

static void count(struct tree *t)
{
    t->quotas = 0;
    t->limits = false;
    for (uint32_t i = 0; i < t->account_count; i++) {
        t->quotas += t->accounts[i].quota_count;
        t->limits |= limits_users(&t->accounts[i]);
    }
}

uint32_t tree_find(const struct tree *t, const char *name)
{
    return handle(&t->names, name);
}

uint32_t tree_put(struct tree *t, const struct tree_account *account)
{
    uint32_t at = tree_find(t, account->name);
    struct tree_account *to;

    if (at == TREE_NONE) {
        at = t->account_count++;
        t->accounts = xgrow(t->accounts, &t->account_cap, t->account_count, sizeof(*t->accounts));
        t->accounts[at] = (struct tree_account){.name = xstrdup(account->name)};
        set_handle(&t->names, account->name, at);
    }
    to = &t->accounts[at];
    free(to->quotas);
    *to = (struct tree_account){.name = to->name,
        .parent = account->parent,
        .shares = MAX_OF(account->shares, 1u),
        .quotas = xmemdup(account->quotas, account->quota_count * sizeof(*account->quotas)),
        .quota_count = account->quota_count,
        .user_sessions = account->user_sessions,
        .user_milli = account->user_milli,
        .user_debug_milli = account->user_debug_milli,
        .user_window = account->user_window};
    count(t);
    return at;
}

void tree_close(struct tree *t, uint32_t account)
{
    const struct tree_account closed = {.name = t->accounts[account].name,
        .parent = TREE_NONE,
        .shares = 1,
        .user_sessions = TREE_NO_LIMIT,
        .user_milli = TREE_NO_LIMIT,
        .user_debug_milli = TREE_NO_LIMIT,
        .user_window = UINT64_MAX};

    tree_put(t, &closed);
}

uint32_t tree_leaf(struct tree *t, uint32_t account, uint32_t user)
{
    char key[32];
    uint32_t at;

    snprintf(key, sizeof(key), "%x/%x", account, user);
    at = handle(&t->leaf_index, key);
    if (at != TREE_NONE)
        return at;
    at = t->leaf_count++;
    t->leaves = xgrow(t->leaves, &t->leaf_cap, t->leaf_count, sizeof(*t->leaves));
    t->leaves[at] = (struct tree_leaf){.account = account, .user = user};
    set_handle(&t->leaf_index, key, at);
    return at;
}

/* --- fairness --------------------------------------------------------------------------------- */

struct sibling {
    uint32_t handle; /* of an account; with is_leaf of a leaf */
    bool is_leaf;
    uint32_t shares;
    uint64_t used;
};

struct ranking {
    const struct tree *tree;
    const uint64_t *used; /* by leaf */
    uint64_t *account_used;
    uint32_t *first_child, *next_child; /* of accounts; the top is at account_count */
    uint32_t *first_leaf, *next_leaf;
    uint32_t *rank; /* by leaf */
    uint32_t at;
};

static uint32_t slot_of(const struct tree *t, uint32_t account)
{
    return account == TREE_NONE ? t->account_count : account;
}

static void ranking_init(struct ranking *r, const struct tree *t, const uint64_t *used)
{
    *r = (struct ranking){.tree = t,
        .used = used,
        .account_used = xcalloc(t->account_count + 1, sizeof(*r->account_used)),
        .first_child = xnew_array(uint32_t, t->account_count + 1),
        .next_child = xnew_array(uint32_t, t->account_count + 1),
        .first_leaf = xnew_array(uint32_t, t->account_count + 1),
        .next_leaf = xnew_array(uint32_t, t->leaf_count + 1),
        .rank = xnew_array(uint32_t, t->leaf_count + 1)};
    memset(r->first_child, 0xff, (t->account_count + 1) * sizeof(*r->first_child));
    memset(r->first_leaf, 0xff, (t->account_count + 1) * sizeof(*r->first_leaf));
    for (uint32_t i = t->account_count; i-- > 0;) {
        uint32_t parent = slot_of(t, t->accounts[i].parent);

        r->next_child[i] = r->first_child[parent];
        r->first_child[parent] = i;
    }
    for (uint32_t i = t->leaf_count; i-- > 0;) {
        uint32_t slot = slot_of(t, t->leaves[i].account), up = t->leaves[i].account;

        r->next_leaf[i] = r->first_leaf[slot];
        r->first_leaf[slot] = i;
        for (int depth = 0; up != TREE_NONE && depth < TREE_DEPTH_MAX; depth++) {
            r->account_used[up] += used[i];
            up = t->accounts[up].parent;
        }
    }
}

static void ranking_done(struct ranking *r)
{
    free(r->account_used);
    free(r->first_child);
    free(r->next_child);
    free(r->first_leaf);
    free(r->next_leaf);
    free(r->rank);
}

/* used / shares, without division. */
static int compare_use(const struct sibling *x, const struct sibling *y)
{
    unsigned __int128 a = (unsigned __int128)x->used * y->shares;
    unsigned __int128 b = (unsigned __int128)y->used * x->shares;

    return a < b ? -1 : a > b;
}

static int by_use(const void *a, const void *b)
{
    const struct sibling *x = a, *y = b;
    int order = compare_use(x, y);

    if (order)
        return order;
    if (x->is_leaf != y->is_leaf)
        return x->is_leaf ? 1 : -1;
    return x->handle < y->handle ? -1 : x->handle > y->handle;
}

static struct sibling *siblings_below(const struct ranking *r, uint32_t slot, uint32_t *ret_count)
{
    struct sibling *list = NULL;
    size_t cap = 0;
    uint32_t n = 0;

    for (uint32_t i = r->first_child[slot]; i != TREE_NONE; i = r->next_child[i]) {
        list = xgrow(list, &cap, n + 1, sizeof(*list));
        list[n++] = (struct sibling){i, false, r->tree->accounts[i].shares, r->account_used[i]};
    }
    for (uint32_t i = r->first_leaf[slot]; i != TREE_NONE; i = r->next_leaf[i]) {
        list = xgrow(list, &cap, n + 1, sizeof(*list));
        list[n++] = (struct sibling){i, true, 1, r->used[i]};
    }
    if (n > 0)
        qsort(list, n, sizeof(*list), by_use);
    *ret_count = n;
    return list;
}

/* Leaves that have had equally much are equally early. */
static void rank_below(struct ranking *r, uint32_t slot, int depth)
{
    uint32_t n;
    _cleanup_free_ struct sibling *list = siblings_below(r, slot, &n);

    for (uint32_t i = 0; i < n && depth < TREE_DEPTH_MAX; i++) {
        bool tie = i > 0 && list[i - 1].is_leaf && compare_use(&list[i - 1], &list[i]) == 0;

        if (!list[i].is_leaf)
            rank_below(r, list[i].handle, depth + 1);
        else
            r->rank[list[i].handle] = tie ? r->rank[list[i - 1].handle] : r->at;
        r->at += list[i].is_leaf;
    }
}

void tree_fairness(struct tree *t, const uint64_t *used)
{
    struct ranking r;

    ranking_init(&r, t, used);
    rank_below(&r, t->account_count, 0);
    for (uint32_t i = 0; i < t->leaf_count; i++)
        t->leaves[i].fair = (uint16_t)(1000 * (uint64_t)(t->leaf_count - r.rank[i]) /
            t->leaf_count);
    ranking_done(&r);
}
