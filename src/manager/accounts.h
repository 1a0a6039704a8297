/*
 * Accounts and what has been had for them: in memory, in the store, and told to the scheduler.
 */
#ifndef MANAGER_ACCOUNTS_H
#define MANAGER_ACCOUNTS_H

#include "manager/manager.h"
#include "store/store.h"

int accounts_load(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err);
int accounts_load_use(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err);
/* Everything is loaded: tell the scheduler. */
void accounts_loaded(struct manager *m);
void accounts_done(struct manager *m);

struct account *account_find(const struct manager *m, const char *name); /* NULL */
/* A copy of a is what the account of its name is now. -ENOENT for a parent or a user that is not
 * there, -EINVAL for a circle. */
int account_set(struct manager *m, const struct account *a, struct err *err);
/* -ENOTEMPTY "has accounts below it", "has sessions". */
int account_remove(struct manager *m, const char *name, struct err *err);

/* The account of a new session: what it asks for, or the first by name that its owner works for.
 * -ENOENT, or -EACCES when he does not. */
int account_choose(struct manager *m, const struct user *u, struct session *s, struct err *err);
/* A session has had its place until then: that counts. Staged with whatever else is. */
void account_charge(struct manager *m, const struct session *s, uint64_t until_usec);

#endif
