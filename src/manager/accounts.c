/*
 * The documents are of the kinds "account" and "use". Use is charged when a session gives its place
 * back, so that it is exact over restarts; what runs is added up by the scheduler.
 */
#include "manager/accounts.h"

#include "base/clock.h"
#include "base/strv.h"
#include "manager/launch.h"
#include "manager/state.h"
#include "wire/account.h"

/* --- the store ------------------------------------------------------------------------------ */

int accounts_load(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct account *a = xnew(struct account);
    int r = account_from_json_stored(body, a, err);

    if (r < 0) {
        free(a);
        return r;
    }
    map_set(&m->accounts, a->name, a);
    return 0;
}

int accounts_load_use(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err)
{
    struct account_use *u = xnew(struct account_use);
    int r = account_use_from_json_stored(body, u, err);

    if (r < 0)
        free(u);
    else
        map_set(&m->uses, doc->id, u);
    return r;
}

static void free_account(void *p)
{
    if (p)
        account_done(p);
    free(p);
}

void accounts_done(struct manager *m)
{
    map_done(&m->accounts, free_account);
    map_done(&m->uses, free);
}

/* --- telling the scheduler ------------------------------------------------------------------ */

static void tell_use(struct manager *m, const struct account_use *u)
{
    const struct account *a = account_find(m, u->account);

    sched_use_put(&m->sched, u, a ? a->window_days : 1, clock_real_usec());
}

/* Parents come first, whatever they are called: what is told twice is told better. */
void accounts_loaded(struct manager *m)
{
    for (int pass = 0; pass < 2; pass++)
        map_for_each (e, &m->accounts)
            sched_account_put(&m->sched, e->value);
    map_for_each (e, &m->uses)
        tell_use(m, e->value);
}

struct account *account_find(const struct manager *m, const char *name)
{
    return map_get(&m->accounts, name);
}

/* --- changes -------------------------------------------------------------------------------- */

static int check_tree(const struct manager *m, const struct account *a, struct err *err)
{
    const char *up = a->parent;
    char **users = a->users;

    for (int depth = 1; up[0]; depth++) {
        const struct account *parent = account_find(m, up);

        if (!parent)
            return err_set(err, -ENOENT, "there is no account '%s' to be the parent", up);
        if (str_eq(up, a->name))
            return err_set(err, -EINVAL, "account '%s' would be below itself", a->name);
        if (depth >= ACCOUNT_DEPTH_MAX)
            return err_set(err, -EINVAL, "accounts are at most %d deep", ACCOUNT_DEPTH_MAX);
        up = parent->parent;
    }
    strv_for_each (user, users)
        if (!map_get(&m->users, *user))
            return err_set(err, -ENOENT, "there is no user '%s'", *user);
    return 0;
}

int account_set(struct manager *m, const struct account *a, struct err *err)
{
    struct account *to;
    int r = check_tree(m, a, err);

    if (r < 0)
        return r;
    to = xnew(struct account);
    account_copy(to, a);
    free_account(map_set(&m->accounts, a->name, to));
    doc_put(m, (struct store_doc){.kind = "account", .id = a->name}, account_to_json_stored(a));
    store_event(m->store, "account.changed", a->name, "", "{}");
    sched_account_put(&m->sched, to);
    pass_want(m);
    return 0;
}

int account_remove(struct manager *m, const char *name, struct err *err)
{
    map_for_each (e, &m->accounts) {
        const struct account *a = e->value;
        if (str_eq(a->parent, name))
            return err_set(err, -ENOTEMPTY, "account '%s' has '%s' below it", name, a->name);
    }
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        if (str_eq(s->account, name))
            return err_set(err, -ENOTEMPTY, "account '%s' has sessions (%llu, say)", name,
                (unsigned long long)s->num);
    }
    free_account(map_remove(&m->accounts, name));
    store_del(m->store, "account", name);
    store_event(m->store, "account.removed", name, "", "{}");
    sched_account_remove(&m->sched, name);
    return 0;
}

/* --- sessions ------------------------------------------------------------------------------- */

static const struct account *first_of(const struct manager *m, const char *user)
{
    const struct account *first = NULL;

    map_for_each (e, &m->accounts) {
        const struct account *a = e->value;
        if (account_has_user(a, user) && (!first || strcmp(a->name, first->name) < 0))
            first = a;
    }
    return first;
}

int account_choose(struct manager *m, const struct user *u, struct session *s, struct err *err)
{
    const struct account *a = s->account[0] ? account_find(m, s->account) : first_of(m, u->name);

    if (s->account[0] && !a)
        return err_set(
            err, -ENOENT, "there is no account '%s'; see 'muster account ls'", s->account);
    if (s->account[0] && !account_has_user(a, u->name))
        return err_set(err, -EACCES,
            "you do not work for account '%s'; an administrator can change that", s->account);
    STR_SET(s->account, a ? a->name : "");
    return 0;
}

/* Milli-GPU-seconds (of 8 CPUs without GPUs). */
static uint64_t work_of(const struct session *s, uint64_t until_usec)
{
    uint64_t seconds = until_usec > s->placed_usec && s->placed_usec
        ? (until_usec - s->placed_usec) / USEC_PER_SEC
        : 0;

    return seconds * s->size *
        (s->each.gpus ? (uint64_t)s->each.gpus * 1000 : s->each.cpu_milli / 8);
}

/* Of the GPUs of main1's node. */
static uint64_t weight_of(const struct manager *m, const struct session *s)
{
    const struct mnode *n = s->containers ? map_get(&m->nodes, s->containers[0].node) : NULL;

    return n && s->each.gpus && n->node.capacity.gpus
        ? sched_weight(&m->sched, n->node.gpus[0].model)
        : BOOK_WEIGHT;
}

void account_charge(struct manager *m, const struct session *s, uint64_t until_usec)
{
    _cleanup_free_ char *id = xasprintf("%s/%s", s->account, s->owner);
    struct account_use *u = map_get(&m->uses, id);
    uint64_t work = work_of(s, until_usec);

    if (work == 0)
        return;
    if (!u) {
        u = xnew(struct account_use);
        STR_SET(u->account, s->account);
        STR_SET(u->user, s->owner);
        map_set(&m->uses, id, u);
    }
    account_use_add(u, work * weight_of(m, s) / BOOK_WEIGHT, s->each.gpus ? work : 0, until_usec,
        m->sched.options.order.half_life_usec);
    doc_put(m, (struct store_doc){.kind = "use", .id = id}, account_use_to_json_stored(u));
    tell_use(m, u);
}
